"""An API server that fails, forgets to answer, or is written to by others: nothing is lost, no quota is exceeded."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec

from pilotage.kube.transport import Response, Transport, TransportError
from pilotage.rng import seeded
from pilotage.sandbox.storage.records import Change
from pilotage.testing import VirtualClock
from tests.jobs.live.world import Json, QueueingWorld, job, living, priority_class, queue
from tests.passing_transport import PassingTransport


class Flaky(PassingTransport):
    """Every few writes something goes wrong: not sent, refused, or done without an answer."""

    def __init__(self, transport: Transport, rng: random.Random) -> None:
        super().__init__(transport)
        self._rng = rng
        self.failures = 0

    async def request(self, method: str, path: str, **options: Any) -> Response:
        luck = self._rng.random() if method != "GET" else 1.0
        if luck < 0.08:
            self.failures += 1
            raise TransportError("connection refused", sent=False)
        if luck < 0.16:
            self.failures += 1
            return Response(503, {}, b'{"kind":"Status","message":"try later"}')
        answer = await super().request(method, path, **options)
        if luck < 0.24:
            self.failures += 1
            raise TransportError("connection reset", sent=True)
        return answer


def used_cpu(cluster: QueueingWorld) -> int:
    """What pods ask for that are neither over nor on their way out, in cores."""
    return sum(
        int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        for pod in cluster.objects("Pod")
        if pod["status"].get("phase") not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]
    )


class StoredUse:
    """What stored workloads hold, looked at after every single write: the most that it ever was, in cores."""

    def __init__(self, cluster: QueueingWorld) -> None:
        self._held: dict[str, int] = {}
        self.most = 0
        cluster.cluster.api.store.subscribe("workloads.kueue.x-k8s.io", self._on_change)

    def _on_change(self, change: Change) -> None:
        status = change.record.object().get("status", {})
        true = {one["type"] for one in status.get("conditions") or () if one["status"] == "True"}
        holds = "QuotaReserved" in true and "Finished" not in true and change.type != "DELETED"
        sets = (status.get("admission") or {}).get("podSetAssignments", ()) if holds else ()
        given_back = {one["name"]: one["count"] for one in status.get("reclaimablePods") or ()}
        self._held[change.record.key.name] = sum(
            int(one["resourceUsage"]["cpu"]) * (one["count"] - given_back.get(one["name"], 0)) // one["count"]
            for one in sets
        )
        self.most = max(self.most, sum(self._held.values()))


def all_done(cluster: QueueingWorld, jobs: list[Json]) -> bool:
    return all(cluster.condition(one["metadata"]["name"], "Finished") == "True/Succeeded" for one in jobs)


async def test_all_jobs_finish_although_every_fourth_write_goes_wrong() -> None:
    flaky: list[Flaky] = []

    def wrapped(transport: Transport) -> Transport:
        flaky.append(Flaky(transport, seeded(11)))
        return flaky[-1]

    async with living(nodes=3, wrap=wrapped) as cluster:
        stored = StoredUse(cluster)
        cluster.create(priority_class("p0", 0), priority_class("p1", 10))
        cluster.create(*queue(cpu=6, preemption={"withinClusterQueue": "LowerPriority"}))
        jobs = [job(f"j{i}", cpu=1 + i % 3, priority=f"p{i % 2}", seconds=10, suspend=True) for i in range(20)]
        for one in jobs:
            cluster.create(one)
            await cluster.run(1)
            assert used_cpu(cluster) <= 6
        for _ in range(60):
            await cluster.run(10)
            assert used_cpu(cluster) <= 6
            if all_done(cluster, jobs):
                break
        assert all_done(cluster, jobs)
        assert flaky[0].failures > 20, "the test must have tested something"
        assert stored.most == 6, "all of the quota and never more, at any moment"


async def test_what_others_write_into_a_status_is_not_overwritten() -> None:
    """An admission check controller answers while we write; its answer counts."""
    async with living() as cluster:
        check = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": {"name": "budget"}}
        cluster.create({**check, "spec": {"controllerName": "example.com/budget"}})
        active = {"type": "Active", "status": "True", "reason": "Active", "message": ""}
        active["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        cluster.change_status("AdmissionCheck", "budget", {"conditions": [active]})
        cluster.create(*queue(admissionChecksStrategy={"admissionChecks": [{"name": "budget"}]}), job("train"))
        await cluster.run(5)
        assert cluster.condition("train", "QuotaReserved") == "True/QuotaReserved"
        assert cluster.is_suspended("train"), "the check has not answered"
        workload = cluster.workload("train")
        [state] = workload["status"]["admissionChecks"]
        assert (state["name"], state["state"]) == ("budget", "Pending")
        update = [{"name": "main", "nodeSelector": {"kubernetes.io/os": "linux"}}]
        ready = {**state, "state": "Ready", "message": "granted", "podSetUpdates": update}
        cluster.change_status("Workload", workload["metadata"]["name"], {"admissionChecks": [ready]})
        await cluster.run(5)
        assert cluster.condition("train", "Admitted") == "True/Admitted"
        assert cluster.job("train")["spec"]["template"]["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}


async def test_conditions_of_other_controllers_are_theirs() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), job("train", cpu=2), job("waits", cpu=2))
        await cluster.run(5)
        theirs = {"type": "example.com/Costed", "status": "True", "reason": "Cheap", "message": "2 EUR"}
        theirs["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        for name in ("train", "waits"):
            known = cluster.workload(name)
            conditions = [*known["status"]["conditions"], theirs]
            cluster.change_status("Workload", known["metadata"]["name"], {"conditions": conditions})
        await cluster.run(5)
        cluster.delete("Job", "train")
        await cluster.run(5)
        assert cluster.condition("waits", "Admitted") == "True/Admitted", "we have written since"
        assert cluster.condition("waits", "example.com/Costed") == "True/Cheap"
        known = cluster.workload("waits")
        dear = {**theirs, "status": "False", "reason": "Dear"}
        mine = [one for one in known["status"]["conditions"] if one["type"] != theirs["type"]]
        cluster.change_status("Workload", known["metadata"]["name"], {"conditions": [*mine, dear]})
        await cluster.run(5)
        cluster.change("Workload", known["metadata"]["name"], {"spec": {"active": False}})
        await cluster.run(5)
        assert cluster.condition("waits", "QuotaReserved") == "False/Deactivated"
        assert cluster.condition("waits", "example.com/Costed") == "False/Dear"


async def test_an_admission_that_is_withdrawn_from_outside_is_taken_in() -> None:
    async with living() as cluster:
        cluster.create(priority_class("high", 9), *queue(cpu=2), job("train", cpu=2))
        await cluster.run(5)
        cluster.create(job("urgent", cpu=2, priority="high"))
        await cluster.run(5)
        assert cluster.condition("train", "Admitted") == "True/Admitted" and cluster.is_suspended("urgent")
        name = cluster.workload("train")["metadata"]["name"]
        cluster.change_status("Workload", name, {"admission": None})
        for _ in range(10):
            await cluster.run(1)
            assert used_cpu(cluster) <= 2
        assert cluster.is_suspended("train") and not cluster.is_suspended("urgent")
        assert cluster.condition("train", "Evicted") == "True/AdmissionWithdrawn"
        assert cluster.condition("train", "Requeued") == "True/AdmissionWithdrawn"
        cluster.delete("Job", "urgent")
        await cluster.run(5)
        assert cluster.condition("train", "Admitted") == "True/Admitted"


async def test_one_conflict_without_a_newer_version_holds_nothing_up() -> None:
    for doomed in ("jobs/", "workloads/"):
        async with living(wrap=lambda transport, doomed=doomed: OneConflict(transport, doomed)) as cluster:  # type: ignore[misc]
            cluster.create(*queue(), job("train"))
            await cluster.run(30)
            assert not cluster.is_suspended("train"), doomed


class OneConflict(PassingTransport):
    """The first change of an object of this kind is answered by a conflict that there is not."""

    def __init__(self, transport: Transport, doomed: str) -> None:
        super().__init__(transport)
        self._doomed = doomed

    async def request(self, method: str, path: str, **options: Any) -> Response:
        if method in ("PATCH", "PUT") and self._doomed and self._doomed in path:
            self._doomed = ""
            return Response(409, {}, b'{"kind":"Status","reason":"Conflict","message":"try again"}')
        return await super().request(method, path, **options)


async def test_a_standby_writes_nothing_and_takes_over_where_the_leader_was() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), job("first", cpu=2, seconds=60))
        await cluster.run(5)
        standby = cluster.another_process()
        async with asyncio.TaskGroup() as tasks:
            watches = standby.watch(tasks)
            following = tasks.create_task(standby.follow(), name="standby")
            cluster.create(job("second", cpu=2))
            await cluster.run(5)
            assert cluster.is_suspended("second")
            cluster.crash()
            await cluster.clock.advance(90)
            assert cluster.is_suspended("second"), "nobody leads"
            following.cancel()
            leading = tasks.create_task(standby.lead("leader"), name="new leader")
            await cluster.clock.advance(10)
            assert cluster.condition("first", "Finished") == "True/Succeeded"
            assert not cluster.is_suspended("second")
            for task in (leading, *watches):
                task.cancel()


class SlowStatus(Flaky):
    """Statuses of workloads take two seconds; what is written is remembered in order."""

    def __init__(self, transport: Transport, clock: VirtualClock) -> None:
        super().__init__(transport, seeded(0))
        self._clock = clock
        self.writes: list[str] = []

    async def request(self, method: str, path: str, **options: Any) -> Response:
        if method == "PATCH" and "/workloads/" in path and path.endswith("/status"):
            await self._clock.sleep(2)
        answer = await super().request(method, path, **options)
        if method == "PATCH" and answer.status < 300:
            body = msgspec.json.decode(options["body"])
            if b'"type":"Admitted","status":"True"' in answer.body.replace(b" ", b"") and path.endswith("/status"):
                self.writes.append("admitted")
            if body.get("spec", {}).get("suspend") is False:
                self.writes.append("started")
        return answer


async def test_a_job_is_started_only_after_its_admission_is_stored() -> None:
    made: list[SlowStatus] = []

    def wrapped(transport: Transport) -> Transport:
        made.append(SlowStatus(transport, clocks[0]))
        return made[-1]

    clocks: list[VirtualClock] = []
    async with living(wrap=wrapped, on_clock=clocks.append) as cluster:
        cluster.create(*queue(), job("train", suspend=True))
        for step in range(20):
            # Every change of the Job is an occasion to look at it.
            cluster.change("Job", "train", {"metadata": {"annotations": {"step": str(step)}}})
            await cluster.run(0.5)
        await cluster.run(10)
        assert not cluster.is_suspended("train")
    assert made[0].writes[0] == "admitted" and made[0].writes.count("started") == 1


async def test_an_admission_that_is_withdrawn_while_nobody_looks_is_taken_in_by_the_next() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), job("train", cpu=2))
        await cluster.run(5)
        cluster.crash()
        await cluster.clock.advance(1)
        cluster.change_status("Workload", cluster.workload("train")["metadata"]["name"], {"admission": None})
        async with cluster.restarted():
            await cluster.run(10)
            assert "EvictedDueToAdmissionWithdrawn" in cluster.events(cluster.workload("train")["metadata"]["name"])
            assert cluster.condition("train", "Admitted") == "True/Admitted", "it was stopped and has its turn again"
            assert cluster.workload("train")["status"]["admission"]
