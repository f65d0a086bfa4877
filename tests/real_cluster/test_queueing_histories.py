"""Jobs of several kinds, pods and groups at a server, while controllers are killed, writes conflict, admissions
are withdrawn: at no version that the server stored does more run, or hold quota, than there is, and in the end
everything has run.

At the real server with the definitions and policies of `deploy/`. Nobody runs jobs and pods here; the test plays
their controllers and kubelets. The scheduler is in the test's process, so that its requests can be made to fail.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.clock import SystemClock
from pilotage.jobs.adapters import marks
from pilotage.jobs.adapters.kinds.pods_in_spec import at
from pilotage.jobs.configuration.load import queueing_of
from pilotage.kube.client import KubeClient
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.model.custom_jobs import plural_of
from pilotage.rng import seeded
from tests.jobs.kind_samples import JOB_SET, SAMPLES, Sample
from tests.jobs.kinds import definitions
from tests.jobs.live.test_kind_histories import Conflicting

from .client import MERGE, Client, Json, Refused
from .objects import node
from .queueing_kinds import DEFINITIONS, GROUP, queue_admission, queueing_kinds
from .servers import Server, eventually
from .test_workload_queueing import HEAD, STARTED, job
from .world import World

QUOTA = 8
KINDS = (JOB_SET, SAMPLES["PyTorchJob"], SAMPLES["RayJob"])
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
WORKLOADS = f"{GROUP}/namespaces/default/workloads"
TURNS_OF_A_RUN = 4
MOST_TURNS = 240


def path_of(sample: Sample) -> str:
    return f"/apis/{sample.api_version}/namespaces/default/{plural_of(sample.kind)}"


WATCHED = {"workloads": WORKLOADS, "jobs": JOBS, "pods": PODS} | {one.kind: path_of(one) for one in KINDS}


class Operators:
    """The controllers of all kinds of jobs, and a kubelet: who may run runs, for a few turns, and then is over."""

    def __init__(self, api: Client) -> None:
        self.api = api
        self.ran: dict[str, int] = {}
        self.pods: dict[str, Json] = {}
        """Those that somebody wants, who makes them again as long as they have not run to their end."""
        self.done: set[str] = set()

    def act(self) -> None:
        for sample in KINDS:
            for obj in self.api.request("GET", path_of(sample))["items"]:
                if at(obj["spec"], sample.switch) is True:
                    self._report(path_of(sample), obj, sample.stopped if obj.get("status") else {})
                else:
                    self._report(path_of(sample), obj, sample.finished if self._has_run(obj) else sample.running)
        for obj in self.api.request("GET", JOBS)["items"]:
            self._run_job(obj)
        self._run_pods(self.api.request("GET", PODS)["items"])

    def _has_run(self, obj: Json) -> bool:
        name = obj["metadata"]["name"]
        self.ran[name] = self.ran.get(name, 0) + 1
        if self.ran[name] > TURNS_OF_A_RUN:
            self.done.add(name)
        return name in self.done

    def _run_job(self, obj: Json) -> None:
        status, count = obj.get("status", {}), obj["spec"]["parallelism"]
        if obj["spec"]["suspend"]:
            self._report(JOBS, obj, {"active": 0, "ready": 0} if status.get("active") else {})
        elif status.get("completionTime"):
            return
        elif self._has_run(obj):
            ended = [
                {"type": kind, "status": "True", "reason": "CompletionsReached", "message": "done"}
                | {"lastProbeTime": STARTED, "lastTransitionTime": STARTED}
                for kind in ("SuccessCriteriaMet", "Complete")
            ]
            times = {"startTime": status.get("startTime", STARTED), "completionTime": STARTED}
            self._report(JOBS, obj, {"active": 0, "ready": 0, "succeeded": count, **times, "conditions": ended})
        else:
            began = {} if status.get("startTime") else {"startTime": STARTED}
            self._report(JOBS, obj, {"active": count, "ready": count, **began})

    def _run_pods(self, found: list[Json]) -> None:
        for obj in found:
            path = f"{PODS}/{obj['metadata']['name']}"
            if "deletionTimestamp" in obj["metadata"]:
                with suppress(Refused):
                    self.api.request("DELETE", path, {"gracePeriodSeconds": 0})
            elif obj["spec"].get("nodeName") and obj["status"].get("phase") != "Succeeded":
                ready = [{"type": "Ready", "status": "True", "lastTransitionTime": STARTED}]
                phase = "Succeeded" if self._has_run(obj) else "Running"
                self._report(PODS, obj, {"phase": phase, "conditions": ready})
        there = {obj["metadata"]["name"] for obj in found}
        for name, wanted in self.pods.items():
            if name not in there and name not in self.done:
                self.api.request("POST", PODS, wanted)

    def _report(self, path: str, obj: Json, status: Json) -> None:
        if status and any(obj.get("status", {}).get(key) != value for key, value in status.items()):
            with suppress(Refused):  # it has changed meanwhile: the next turn
                self.api.request("PATCH", f"{path}/{obj['metadata']['name']}/status", {"status": status}, MERGE)


def submissions(operators: Operators) -> list[Callable[[], Any]]:
    api = operators.api

    def pod(name: str, group: str = "") -> None:
        metadata: Json = {"name": name, "labels": {marks.QUEUE_NAME: "lq"}}
        if group:
            metadata["labels"][marks.GROUP_NAME] = group
            metadata["annotations"] = {marks.GROUP_TOTAL_COUNT: "2"}
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        spec = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
        operators.pods[name] = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        api.request("POST", PODS, operators.pods[name])

    found: list[Callable[[], Any]] = []
    for number in range(2):
        for sample in KINDS:
            obj = sample.job(f"{sample.kind.lower()}-{number}")
            found.append(lambda sample=sample, obj=obj: eventually("it is taken", lambda: _posted(api, sample, obj)))
        made = job(f"job-{number}")
        made["spec"]["template"]["spec"]["nodeSelector"] = {}
        found.append(lambda made=made: api.request("POST", JOBS, made))
        found.append(lambda number=number: pod(f"lone-{number}"))
        found.append(lambda number=number: [pod(f"member-{number}-{one}", f"group-{number}") for one in range(2)])
    return found


def _posted(api: Client, sample: Sample, obj: Json) -> bool:
    try:
        api.request("POST", path_of(sample), deepcopy(obj))
    except Refused as refused:
        if refused.code != 503:  # its policies wait for the schema of a new kind
            raise
        return False
    return True


class Stored:
    """Everything that the server stored since the beginning, in the order in which it did."""

    def __init__(self, api: Client) -> None:
        self._api = api
        self._since = {name: api.request("GET", path)["metadata"]["resourceVersion"] for name, path in WATCHED.items()}

    def check(self) -> None:
        held: dict[str, int] = {}
        running: dict[str, int] = {}
        for _, change, obj in sorted(self._changes(), key=lambda one: one[0]):
            name = f"{obj['kind']}/{obj['metadata']['name']}"
            is_gone = change == "DELETED"
            if obj["kind"] == "Workload":
                held[name] = 0 if is_gone else _held(obj)
                assert sum(held.values()) <= QUOTA, (obj["metadata"]["resourceVersion"], held)
            else:
                running[name] = 0 if is_gone else _running(obj)
                assert sum(running.values()) <= QUOTA, (obj["metadata"]["resourceVersion"], running, held)
        assert held and running, "the test must have tested something"

    def _changes(self) -> Iterator[tuple[int, str, Json]]:
        for name, path in WATCHED.items():
            for line in self._api.lines(f"{path}?watch=1&resourceVersion={self._since[name]}&timeoutSeconds=1"):
                change = json.loads(line)
                assert change["type"] in ("ADDED", "MODIFIED", "DELETED"), change
                yield int(change["object"]["metadata"]["resourceVersion"]), change["type"], change["object"]


def _held(workload: Json) -> int:
    status = workload.get("status", {})
    true = {one["type"] for one in status.get("conditions") or () if one["status"] == "True"}
    if "QuotaReserved" not in true or "Finished" in true:
        return 0
    given_back = {one["name"]: one["count"] for one in status.get("reclaimablePods") or ()}
    return sum(
        int(one["resourceUsage"]["cpu"]) * (one["count"] - given_back.get(one["name"], 0)) // one["count"]
        for one in (status.get("admission") or {}).get("podSetAssignments", ())
    )


def _running(obj: Json) -> int:
    """Cores that its pods take, or could take now."""
    metadata, spec, status = obj["metadata"], obj["spec"], obj.get("status", {})
    if obj["kind"] == "Pod":
        is_over = status.get("phase") in ("Succeeded", "Failed") or "deletionTimestamp" in metadata
        return int(bool(spec.get("nodeName")) and not is_over)
    if obj["kind"] == "Job":
        return 0 if spec["suspend"] or status.get("completionTime") else spec["parallelism"]
    sample = next(one for one in KINDS if one.kind == obj["kind"])
    is_over = any(one["status"] == "True" for one in status.get("conditions", ()) if one["type"] != "Running")
    is_over |= status.get("jobStatus") == "SUCCEEDED"
    # Each of the workers' Jobs has two pods.
    ended = sum(2 * one["succeeded"] for one in status.get("replicatedJobsStatus", ()) if one.get("succeeded"))
    return 0 if at(spec, sample.switch) is True or is_over else sum(sample.pod_sets.values()) - ended


class History:
    def __init__(self, api: Client, seed: int) -> None:
        self._api = api
        self._rng = random.Random(seed)
        self._operators = Operators(api)
        self._waiting = submissions(self._operators)
        self._rng.shuffle(self._waiting)

    def turn(self) -> None:
        if self._waiting and self._rng.random() < 0.7:
            self._waiting.pop()()
        self._operators.act()
        if self._waiting and self._rng.random() < 0.3:
            self._withdraw()

    def _withdraw(self) -> None:
        """Somebody takes an admission out of a status, or deletes a workload."""
        names = [one["metadata"]["name"] for one in self._api.request("GET", WORKLOADS)["items"]]
        if not names:
            return
        path = f"{WORKLOADS}/{self._rng.choice(names)}"
        with suppress(Refused):  # it is not allowed now
            if self._rng.random() < 0.3:
                self._api.request("DELETE", path, {})
            else:
                self._api.request("PATCH", f"{path}/status", {"status": {"admission": None}}, MERGE)

    @property
    def is_young(self) -> bool:
        return bool(self._waiting)

    def left(self) -> set[str]:
        """What has been submitted, or is still to be, and has not run to its end."""
        there = {one["metadata"]["name"] for path in WATCHED.values() if path != WORKLOADS
                 for one in self._api.request("GET", path)["items"]}  # fmt: skip
        there |= set(self._operators.pods) | {f"waits-{number}" for number in range(len(self._waiting))}
        return there - self._operators.done


def create_queue(api: Client) -> None:
    group = {
        "coveredResources": ["cpu"],
        "flavors": [{"name": "std", "resources": [{"name": "cpu", "nominalQuota": QUOTA}]}],
    }
    for plural, kind, name, spec in (
        ("resourceflavors", "ResourceFlavor", "std", {}),
        ("clusterqueues", "ClusterQueue", "cq", {"namespaceSelector": {}, "resourceGroups": [group]}),
        ("namespaces/default/localqueues", "LocalQueue", "lq", {"clusterQueue": "cq"}),
    ):
        api.request("POST", f"{GROUP}/{plural}", {**HEAD, "kind": kind, "metadata": {"name": name}, "spec": spec})


@pytest.fixture
def api(server: Server, world: World) -> Iterator[Client]:
    with queueing_kinds(server) as client, queue_admission(client):
        for sample in KINDS:
            client.request("POST", DEFINITIONS, definitions()[sample.kind])
            eventually("the kind is served", lambda sample=sample: _is_served(client, path_of(sample)))
        world.create(*(node(f"n{number}", cpu="8", labels={"kubernetes.io/os": "linux"}) for number in range(3)))
        create_queue(client)
        yield client
        for path in (JOBS, PODS):
            client.request("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
        for sample in KINDS:
            client.request("DELETE", f"{DEFINITIONS}/{definitions()[sample.kind]['metadata']['name']}")


def _is_served(client: Client, path: str) -> bool:
    try:
        client.request("GET", path)
    except Refused:
        return False
    return True


async def live(kubeconfig: Path, history: History, seed: int) -> int:
    """One controller after the other, each killed in the middle, the last one to the end. How often a write failed."""
    options = replace(SchedulerOptions(), queueing=queueing_of({"waitForPodsReady": {"enable": False}}))
    failures = 0
    for life in range(4):
        transport = HttpTransport(load_connection(str(kubeconfig), None, clock=SystemClock()))
        failing = Conflicting(transport, seeded(seed + life))
        process = SchedulerProcess(KubeClient(failing), SystemClock(), seeded(life), options)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(process.run(), name="scheduler and queueing")
            for turn in range(8 if life < 3 else MOST_TURNS):
                await asyncio.to_thread(history.turn)
                await asyncio.sleep(0.1)
                if turn % 10 == 0 and not history.is_young and not await asyncio.to_thread(history.left):
                    break
            running.cancel()
        failures += failing.failures
        await transport.close()
    return failures


@pytest.mark.parametrize("seed", range(2))
async def test_quota_holds_at_every_version_and_everything_runs_in_the_end(
    server: Server, api: Client, seed: int
) -> None:
    stored, history = Stored(api), History(api, seed)
    failures = await live(server.admin, history, seed)
    assert history.left() == set(), "nobody is stuck, nobody is lost"
    assert failures > 10, "the test must have tested something"
    stored.check()
