"""Workload queueing as a whole: an API server, the controller, its watches and its writes, in virtual time.

15,000 workloads of five priorities are created in 30 ClusterQueues of six cohorts, faster than the quota can hold them;
they are admitted, preempted by more important ones, admitted again, run for half a minute to five minutes, and finish.
Workloads are objects in the API server of the sandbox; every status is written to it and comes back by a watch.

With nodes, a workload is admitted only if its pods fit on them: each holds one large pod or several small ones. There
are no pods: room is kept for all of them as long as the workload runs.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.bench.cluster_objects import create_object
from pilotage.bench.measure import peak_memory_mib
from pilotage.bench.progress import ProgressLine
from pilotage.bench.queueing_jobs import NAMESPACE, JobRunner, QueueingTally
from pilotage.bench.workloads import Object
from pilotage.clock import SystemClock, cpu_seconds
from pilotage.jobs.cluster_queue import NODE_AWARE
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.kube.client import KubeClient
from pilotage.model import KINDS
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.testing.virtual_clock import VirtualClock

NAME: Final = "WorkloadQueueing"
WORKLOADS: Final = 15_000
QUEUES: Final = 30
COHORTS: Final = 6
PRIORITIES: Final = (0, 10, 20, 50, 100)
_KUEUE: Final = "kueue.x-k8s.io/v1beta2"
_CPU_PER_QUEUE: Final = 200
PER_SECOND: Final = 20
_CPU_PER_NODE: Final = 8
_PREEMPTION: Final = {
    "withinClusterQueue": "LowerPriority",
    "reclaimWithinCohort": "LowerPriority",
    "borrowWithinCohort": {"policy": "LowerPriority"},
}
_LONGEST_SECONDS: Final = 86_400.0


class NeverFinished(Exception):
    """Workloads are left for which nothing happens any more."""


@dataclass(frozen=True, slots=True)
class QueueingFigures:
    workloads: int
    tally: QueueingTally
    cpu_seconds: float
    virtual_seconds: float
    peak_memory_mib: float


@dataclass(frozen=True, slots=True)
class QueueingLoad:
    workloads: int = WORKLOADS
    per_second: int = PER_SECOND
    """How many are created."""
    nodes: int = 0
    is_node_aware: bool = True


class QueueingBench:
    """One run."""

    def __init__(self, load: QueueingLoad, seed: int) -> None:
        self._load = load
        self._workloads = load.workloads
        self._clock = VirtualClock()
        self._rng = seeded(seed)
        self._progress = ProgressLine(SystemClock())

    async def run(self) -> QueueingFigures:
        options = EmbeddedOptions(nodes=0, port=None)
        async with EmbeddedCluster.running(options, self._clock, seeded(0)) as cluster:
            client = KubeClient(cluster.transport())
            for number in range(self._load.nodes):
                await create_object(client, _node(number))
            for obj in queueing_objects(is_node_aware=self._load.is_node_aware):
                await create_object(client, obj)
            runner = self._runner(client)
            cluster.api.store.subscribe("workloads.kueue.x-k8s.io", runner.on_change)
            process = self._process(cluster)
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(process.run(), name="scheduler and queueing")
                await self._clock.advance(1)
                gc.collect()
                gc.freeze()
                figures = await self._measure(client, runner)
                gc.unfreeze()
                running.cancel()
        return figures

    def _runner(self, client: KubeClient) -> JobRunner:
        cohorts = {_queue(number): _cohort(number) for number in range(QUEUES)}
        quota = dict.fromkeys(cohorts.values(), 1000 * _CPU_PER_QUEUE * QUEUES // COHORTS)
        return JobRunner(client, self._clock, seeded(self._rng.randrange(2**32)), cohorts, quota)

    def _process(self, cluster: EmbeddedCluster) -> SchedulerProcess:
        queueing = QueueingConfiguration(wait_for_pods_ready=None)
        options = replace(SchedulerOptions(), queueing=queueing)
        return SchedulerProcess(KubeClient(cluster.transport()), self._clock, seeded(0), options)

    async def _measure(self, client: KubeClient, runner: JobRunner) -> QueueingFigures:
        begin, since = cpu_seconds(), self._clock.monotonic()
        made = 0
        while made < self._workloads:
            for _ in range(min(self._load.per_second, self._workloads - made)):
                workload = self._workload(made)
                await client.create(KINDS["workloads"], NAMESPACE, msgspec.json.encode(workload))
                made += 1
            await self._second(runner)
        while runner.tally.finished < self._workloads:
            await self._second(runner)
            if self._clock.monotonic() - since > _LONGEST_SECONDS:
                raise NeverFinished(f"{runner.tally.finished:,} of {self._workloads:,} workloads finished in a day")
        spent = cpu_seconds() - begin
        self._progress.finish(f"finished: {self._workloads:,}")
        virtual = self._clock.monotonic() - since
        return QueueingFigures(self._workloads, runner.tally, spent, virtual, peak_memory_mib())

    async def _second(self, runner: JobRunner) -> None:
        await self._clock.advance(1)
        await runner.end_due()
        self._progress.show("finished", runner.tally.finished, self._workloads)

    def _workload(self, number: int) -> Object:
        rng = self._rng
        cpu = rng.randint(1, 8)
        requests = {"cpu": str(cpu), "memory": f"{2 * cpu}Gi"}
        template = {"spec": {"containers": [{"name": "main", "image": "work", "resources": {"requests": requests}}]}}
        spec = {
            "queueName": f"lq-{_queue(rng.randrange(QUEUES))}",
            "priority": rng.choice(PRIORITIES),
            "podSets": [{"name": "main", "count": rng.randint(1, 8), "template": template}],
        }
        return _object("Workload", f"workload-{number:05}", spec, NAMESPACE)


def _queue(number: int) -> str:
    return f"cq-{number:02}"


def _cohort(number: int) -> str:
    return f"cohort-{number % COHORTS}"


def _node(number: int) -> Object:
    amounts = {"cpu": str(_CPU_PER_NODE), "memory": f"{2 * _CPU_PER_NODE}Gi", "pods": "110"}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number:05}"}, "status": status}


def queueing_objects(*, is_node_aware: bool = True) -> Iterator[Object]:
    """The flavor, the ClusterQueues and the LocalQueues."""
    yield _object("ResourceFlavor", "std", {})
    memory = f"{4 * _CPU_PER_QUEUE}Gi"
    quotas = [{"name": "cpu", "nominalQuota": _CPU_PER_QUEUE}, {"name": "memory", "nominalQuota": memory}]
    group = {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "std", "resources": quotas}]}
    for number in range(QUEUES):
        spec = {
            "cohortName": _cohort(number),
            "namespaceSelector": {},
            "resourceGroups": [group],
            "preemption": _PREEMPTION,
        }
        queue = _object("ClusterQueue", _queue(number), spec)
        queue["metadata"]["annotations"] = {NODE_AWARE: str(is_node_aware).lower()}
        yield queue
        yield _object("LocalQueue", f"lq-{_queue(number)}", {"clusterQueue": _queue(number)}, NAMESPACE)


def _object(kind: str, name: str, spec: dict[str, Any], namespace: str = "") -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": _KUEUE, "kind": kind, "metadata": metadata, "spec": spec}
