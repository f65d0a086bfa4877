"""Jobs of several kinds under an API server that fails, with controllers that are killed and admissions taken away.

Whatever happens: stored workloads never hold more than the quota, no more pods than that are ever bound, and in the end
everything has run.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import msgspec
import pytest

from pilotage.jobs.adapters import marks
from pilotage.jobs.adapters.kinds.pods_in_spec import at
from pilotage.kube.transport import Response, Transport
from pilotage.model.custom_jobs import plural_of
from pilotage.rng import seeded
from pilotage.sandbox.errors import ApiError
from tests.jobs.kind_samples import JOB_SET, SAMPLES, Sample
from tests.jobs.kinds import definitions
from tests.jobs.live.test_creation import pod
from tests.jobs.live.test_faults import Flaky, StoredUse
from tests.jobs.live.world import QueueingWorld, job, living, queue

Json = dict[str, Any]
QUOTA = 8
KINDS = (JOB_SET, SAMPLES["PyTorchJob"], SAMPLES["RayJob"])
_MERGE = "application/merge-patch+json"


class Conflicting(Flaky):
    """And now and then it says that an object was changed meanwhile, although it was not."""

    async def request(self, method: str, path: str, **options: Any) -> Response:
        if method == "PATCH" and self._rng.random() < 0.05:
            return Response(409, {}, b'{"kind":"Status","code":409,"reason":"Conflict","message":"modified"}')
        return await super().request(method, path, **options)


class Operators:
    """The controllers of the custom kinds: pods come at once, go a second after the switch, and end after a while."""

    def __init__(self, cluster: QueueingWorld) -> None:
        self.api = cluster.cluster.api
        self.ran: dict[str, int] = {}

    def install(self) -> None:
        for sample in KINDS:
            definition = definitions()[sample.kind]
            self.api.create("customresourcedefinitions.apiextensions.k8s.io", "", definition)

    def second(self) -> None:
        for sample in KINDS:
            for obj in self.api.list(_resource(sample), "default"):
                self._act(sample, obj)

    def _act(self, sample: Sample, obj: Json) -> None:
        name = obj["metadata"]["name"]
        if at(obj["spec"], sample.switch) is True:
            if obj.get("status"):
                self._report(sample, name, sample.stopped)
            return
        self.ran[name] = self.ran.get(name, 0) + 1
        self._report(sample, name, sample.finished if self.ran[name] > 15 else sample.running)

    def _report(self, sample: Sample, name: str, status: Json) -> None:
        body = msgspec.json.encode({"status": status})
        self.api.patch(_resource(sample), "default", name, body, _MERGE, "status")

    def unfinished(self) -> list[str]:
        return [
            obj["metadata"]["name"]
            for sample in KINDS
            for obj in self.api.list(_resource(sample), "default")
            if self.ran.get(obj["metadata"]["name"], 0) <= 15
        ]


def _resource(sample: Sample) -> str:
    return f"{plural_of(sample.kind)}.{sample.api_version.partition('/')[0]}"


def _withdraw(cluster: QueueingWorld, rng: random.Random) -> None:
    """Somebody takes an admission out of a status, or deletes a workload."""
    workloads = cluster.objects("Workload")
    if not workloads:
        return
    name = rng.choice(workloads)["metadata"]["name"]
    try:
        if rng.random() < 0.3:
            cluster.delete("Workload", name)
        else:
            cluster.change_status("Workload", name, {"admission": None})
    except ApiError:
        pass  # it is not allowed now


def _submissions(cluster: QueueingWorld, operators: Operators, rng: random.Random) -> list[Callable[[], None]]:
    def custom(sample: Sample, name: str) -> None:
        operators.api.create(_resource(sample), "default", deepcopy(sample.job(name)))

    found: list[Callable[[], None]] = []
    for number in range(4):
        found += [lambda s=sample, n=number: custom(s, f"{s.kind.lower()}-{n}") for sample in KINDS]  # type: ignore[misc]
        found.append(lambda n=number: cluster.create(job(f"job-{n}", cpu=2, parallelism=2, seconds=15)))  # type: ignore[misc]
    for number in range(6):
        lone = pod(f"pod-{number}")
        lone["metadata"]["annotations"] = {"sandbox.pilotage.dev/run-for": "10s"}
        lone["spec"]["restartPolicy"] = "Never"
        found.append(lambda made=lone: cluster.create(made))  # type: ignore[misc]
    rng.shuffle(found)
    return found


def _bound(cluster: QueueingWorld) -> int:
    """Cores of bound pods that name a queue or were steered, and have not ended."""
    return sum(
        int(one["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        for one in cluster.objects("Pod")
        if one["spec"].get("nodeName")
        and one["status"].get("phase") not in ("Succeeded", "Failed")
        and "deletionTimestamp" not in one["metadata"]
        and {marks.QUEUE_NAME, marks.POD_SET} & one["metadata"]["labels"].keys()
    )


@pytest.mark.parametrize("seed", range(3))
async def test_quota_holds_and_everything_runs_in_the_end(seed: int) -> None:
    rng = random.Random(seed)

    def wrapped(transport: Transport) -> Transport:
        return Conflicting(transport, seeded(seed))

    configuration = {"waitForPodsReady": {"enable": False}}
    async with living(nodes=3, wrap=wrapped, admits=True, configuration=configuration) as cluster:
        operators, stored = Operators(cluster), StoredUse(cluster)
        operators.install()
        cluster.create(*queue(cpu=QUOTA))
        await cluster.run(60)
        history = History(cluster, operators, rng)
        await history.go_on(kills=3)
        assert history.left() == []
        assert stored.most <= QUOTA


class History:
    def __init__(self, cluster: QueueingWorld, operators: Operators, rng: random.Random) -> None:
        self._cluster = cluster
        self._operators = operators
        self._rng = rng
        self._waiting = _submissions(cluster, operators, rng)

    async def go_on(self, kills: int) -> None:
        for _ in range(3):
            for _ in range(min(2, len(self._waiting))):
                self._waiting.pop()()
            await self._run(self._rng.randint(1, 12))
            _withdraw(self._cluster, self._rng)
            # Of what is withdrawn while nobody looks it is not known in whose quota its pods run until they are gone.
            await self._run(3)
        if kills:
            async with self._cluster.restarted():
                await self.go_on(kills - 1)
            return
        for submit in self._waiting:
            submit()
        for _ in range(60):
            if not self.left():
                break
            await self._run(10)

    async def _run(self, seconds: int) -> None:
        for _ in range(seconds):
            self._operators.second()
            await self._cluster.run(1)
            assert _bound(self._cluster) <= QUOTA

    def left(self) -> list[str]:
        """What has not ended."""
        jobs = [one["metadata"]["name"] for one in self._cluster.objects("Job") if not _has_ended(one)]
        lone = [one["metadata"]["name"] for one in self._cluster.objects("Pod") if one["status"]["phase"] == "Pending"]
        return self._operators.unfinished() + jobs + lone


def _has_ended(job: Json) -> bool:
    return bool(job["status"].get("completionTime"))
