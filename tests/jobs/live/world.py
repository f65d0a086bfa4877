"""A whole cluster in virtual time: API server, kubelets, Job controller, the real scheduler, and workload queueing.

async with living(nodes=[node("a", pool="spot")]) as cluster:
    cluster.create(*queue(cpu=4), job("train", cpu=2))
    await cluster.run(10)
    assert cluster.job("train")["spec"]["suspend"] is False
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import msgspec

from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.jobs.adapters import marks
from pilotage.jobs.configuration.load import queueing_of
from pilotage.jobs.engine import JobQueueing
from pilotage.kube.client import KubeClient
from pilotage.kube.transport import Transport
from pilotage.model.queue_admission import FRAMEWORKS
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.testing import VirtualClock

Json = dict[str, Any]
KUEUE = "kueue.x-k8s.io/v1beta2"
NAMESPACED = {"Deployment", "ReplicaSet", "StatefulSet", "Job", "Pod", "Workload", "LocalQueue", "LimitRange"}
PLURALS = {
    "Node": "nodes",
    "Namespace": "namespaces",
    "LimitRange": "limitranges",
    "RuntimeClass": "runtimeclasses.node.k8s.io",
    "PriorityClass": "priorityclasses.scheduling.k8s.io",
    "Job": "jobs.batch",
    "Deployment": "deployments.apps",
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
    "Pod": "pods",
    "Event": "events",
    "Workload": "workloads.kueue.x-k8s.io",
    "LocalQueue": "localqueues.kueue.x-k8s.io",
    "ClusterQueue": "clusterqueues.kueue.x-k8s.io",
    "Cohort": "cohorts.kueue.x-k8s.io",
    "ResourceFlavor": "resourceflavors.kueue.x-k8s.io",
    "WorkloadPriorityClass": "workloadpriorityclasses.kueue.x-k8s.io",
    "AdmissionCheck": "admissionchecks.kueue.x-k8s.io",
}


Wrap = Callable[[Transport], Transport]
"""What the way to the API server is wrapped in."""


class QueueingWorld:
    """Everything runs already; time moves by `run`."""

    def __init__(
        self, cluster: EmbeddedCluster, clock: VirtualClock, configuration: Mapping[str, Any], wrap: Wrap
    ) -> None:
        self.cluster = cluster
        self.clock = clock
        self._configuration = configuration
        self._wrap = wrap
        self.process = self.another_process()
        self._running: asyncio.Task[None] | None = None

    def another_process(self) -> SchedulerProcess:
        options = replace(SchedulerOptions(), queueing=queueing_of(self._configuration))
        return SchedulerProcess(KubeClient(self._wrap(self.cluster.transport())), self.clock, seeded(7), options)

    def crash(self) -> None:
        """The process is gone."""
        assert self._running is not None
        self._running.cancel()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            self._running = tasks.create_task(self.process.run(), name="scheduler and queueing")
            await self.run(1)
            yield
            assert self._running.cancelling() or not self._running.done(), "nothing ends by itself"
            self._running.cancel()

    @asynccontextmanager
    async def restarted(self) -> AsyncIterator[None]:
        """Another process takes over what this one leaves behind; the old one is gone, as after a crash."""
        assert self._running is not None
        old, self.process = self._running, self.another_process()
        old.cancel()
        async with self.running():
            yield
        self._running = old

    @property
    def engine(self) -> JobQueueing:
        assert self.process.queueing is not None and self.process.queueing.controller.engine is not None
        return self.process.queueing.controller.engine

    async def run(self, seconds: float) -> None:
        """Let that much time pass; the engine's invariants hold afterwards."""
        await self.clock.advance(seconds)
        self.engine.check()

    # --- objects -----------------------------------------------------------------------------------------------

    def create(self, *objects: Json) -> None:
        for obj in objects:
            namespace = "default" if obj["kind"] in NAMESPACED else ""
            self.cluster.api.create(PLURALS[obj["kind"]], namespace, obj)

    def get(self, kind: str, name: str) -> Json:
        namespace = "default" if kind in NAMESPACED else ""
        return dict(self.cluster.api.get(PLURALS[kind], namespace, name))

    def find(self, kind: str, name: str) -> Json | None:
        namespace = "default" if kind in NAMESPACED else ""
        found = self.cluster.api.find(PLURALS[kind], namespace, name)
        return None if found is None else dict(found)

    def objects(self, kind: str) -> list[Json]:
        return [record.object() for record in self.cluster.api.store.list(PLURALS[kind])]

    def change(self, kind: str, name: str, change: Json) -> None:
        """A merge patch."""
        namespace = "default" if kind in NAMESPACED else ""
        body = msgspec.json.encode(change)
        self.cluster.api.patch(PLURALS[kind], namespace, name, body, "application/merge-patch+json")

    def change_status(self, kind: str, name: str, change: Json) -> None:
        """A merge patch of the status, as another controller would write it."""
        namespace = "default" if kind in NAMESPACED else ""
        body = msgspec.json.encode({"status": change})
        self.cluster.api.patch(PLURALS[kind], namespace, name, body, "application/merge-patch+json", "status")

    def delete(self, kind: str, name: str, propagation: str = "Background") -> None:
        namespace = "default" if kind in NAMESPACED else ""
        self.cluster.api.delete(PLURALS[kind], namespace, name, {"propagationPolicy": propagation})

    # --- questions ---------------------------------------------------------------------------------------------

    def job(self, name: str) -> Json:
        return self.get("Job", name)

    def is_suspended(self, name: str) -> bool:
        return bool(self.job(name)["spec"].get("suspend"))

    def workload(self, owner: str) -> Json:
        """The workload of a Job or pod."""
        found = [
            one
            for one in self.objects("Workload")
            if any(ref["name"] == owner for ref in one["metadata"].get("ownerReferences") or ())
            or one["metadata"]["name"] == owner
        ]
        assert len(found) == 1, f"{len(found)} workloads of {owner}"
        return found[0]

    def condition(self, owner: str, type_: str) -> str:
        """ "True/Reason", or "" if there is none."""
        conditions = self.workload(owner).get("status", {}).get("conditions") or ()
        return next((f"{one['status']}/{one['reason']}" for one in conditions if one["type"] == type_), "")

    def flavors(self, owner: str) -> dict[str, str]:
        admission = self.workload(owner).get("status", {}).get("admission") or {}
        assignments = admission.get("podSetAssignments") or []
        return {resource: flavor for one in assignments for resource, flavor in one.get("flavors", {}).items()}

    def pods(self, owner: str) -> list[Json]:
        """Pods of a Job that have not ended."""
        return [
            one
            for one in self.objects("Pod")
            if any(ref["name"] == owner for ref in one["metadata"].get("ownerReferences") or ())
            and one["status"].get("phase") not in ("Succeeded", "Failed")
        ]

    def events(self, name: str) -> list[str]:
        """Reasons of the events about an object, in order."""
        found = [
            one for one in self.objects("Event") if (one.get("regarding") or one["involvedObject"])["name"] == name
        ]
        return [one["reason"] for one in sorted(found, key=lambda one: str(one["metadata"]["name"]))]


@asynccontextmanager
async def living(
    *,
    nodes: list[Json] | int = 2,
    configuration: Mapping[str, Any] | None = None,
    wrap: Wrap = lambda transport: transport,
    on_clock: Callable[[VirtualClock], None] = lambda clock: None,
    admits: bool = False,
) -> AsyncIterator[QueueingWorld]:
    """Runs until the block ends. `admits`: what names a queue is held back already when it is created."""
    clock, rng = VirtualClock(), seeded(5)
    on_clock(clock)
    count = nodes if isinstance(nodes, int) else 0
    async with EmbeddedCluster.running(_options(count, admits), clock, rng) as cluster:
        world = QueueingWorld(cluster, clock, configuration or {}, wrap)
        if not isinstance(nodes, int):
            world.create(*nodes)
        async with world.running():
            yield world


def _options(nodes: int, admits: bool) -> EmbeddedOptions:
    return EmbeddedOptions(nodes=nodes, port=None, queued=FRAMEWORKS if admits else frozenset())


# --- objects in few words ---------------------------------------------------------------------------------------------


def node(name: str, cpu: int = 8, **labels: str) -> Json:
    amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def flavor(name: str, **labels: str) -> Json:
    return {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": {"nodeLabels": labels}}


def cluster_queue(name: str = "cq", flavors: Mapping[str, Any] | None = None, **spec: Any) -> Json:
    """`flavors`: cpu by flavor, a number or a ResourceQuota."""
    quotas = []
    for flavor_name, cpu in (flavors or {"std": 4}).items():
        quota = cpu if isinstance(cpu, dict) else {"nominalQuota": cpu}
        quotas.append({"name": flavor_name, "resources": [{"name": "cpu", **quota}]})
    group = {"coveredResources": ["cpu"], "flavors": quotas}
    return {
        "apiVersion": KUEUE,
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {"namespaceSelector": {}, "resourceGroups": [group], **spec},
    }


def by_quota_alone(*objects: Json) -> list[Json]:
    """The same, with ClusterQueues that do not ask whether pods fit on nodes."""
    for one in objects:
        if one["kind"] == "ClusterQueue":
            one["metadata"].setdefault("annotations", {})["queueing.pilotage.dev/node-aware-admission"] = "false"
    return list(objects)


def local_queue(name: str = "lq", cluster_queue: str = "cq") -> Json:
    spec = {"clusterQueue": cluster_queue}
    return {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": {"name": name}, "spec": spec}


def queue(cpu: int = 4, **spec: Any) -> list[Json]:
    """One flavor, one queue."""
    return [flavor("std"), cluster_queue(flavors={"std": cpu}, **spec), local_queue()]


def job(
    name: str,
    *,
    cpu: int = 1,
    parallelism: int = 1,
    completions: int | None = None,
    queue: str = "lq",
    seconds: int = 100_000,
    is_ready: bool = True,
    suspend: bool = False,
    priority: str = "",
    annotations: Mapping[str, str] | None = None,
    **pod: Any,
) -> Json:
    """`seconds`: how long its pods run; `is_ready`: whether they ever become ready."""
    labels = {marks.QUEUE_NAME: queue} if queue else {}
    if priority:
        labels[marks.PRIORITY_CLASS] = priority
    lasting = {"sandbox.pilotage.dev/run-for": f"{seconds}s"}
    if not is_ready:
        lasting["sandbox.pilotage.dev/never-ready"] = "true"
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": str(cpu)}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels, "annotations": dict(annotations or {})},
        "spec": {
            "parallelism": parallelism,
            "completions": parallelism if completions is None else completions,
            "suspend": suspend,
            "template": {
                "metadata": {"labels": {"app": name}, "annotations": lasting},
                "spec": {"containers": [container], "restartPolicy": "Never", **pod},
            },
        },
    }


def priority_class(name: str, value: int) -> Json:
    return {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": value}
