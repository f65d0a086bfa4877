"""Workload queueing that only thinks: an engine filled from an API server or from manifests, asked, never obeyed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from pilotage.clock import Clock
from pilotage.jobs.adapters import batch_job
from pilotage.jobs.adapters.workload_draft import DraftProblem, PriorityClasses, job_draft
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.engine import JobQueueing
from pilotage.jobs.filling import FOR_THE_ENGINE, NAMESPACE, LeftOut, filled
from pilotage.jobs.reports import PendingWorkload, WorkloadReport
from pilotage.jobs.room_on_nodes import NodeRoom
from pilotage.kube.client import KubeClient, ListOptions
from pilotage.kube.errors import ApiStatusError
from pilotage.model import KINDS, kind_of
from pilotage.model.kueue import Workload
from pilotage.rng import seeded

_PAGE: Final = 500
_NOT_FOUND: Final = 404
_FOR_JOBS: Final = ("Job", "PriorityClass", "WorkloadPriorityClass")
_READ: Final = tuple(
    kind.plural for name in (NAMESPACE, *FOR_THE_ENGINE, *_FOR_JOBS) if (kind := kind_of(name)) is not None
)
_MOST_CYCLES: Final = 10_000

ObjectsByKind = Mapping[str, Sequence[Any]]


class NoQueueing(Exception):
    """The API server does not have the kinds of workload queueing."""


@dataclass(frozen=True, slots=True)
class UnqueuedJob:
    key: str
    queue: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class QueueingView:
    """The queues as they are, and what would happen next."""

    engine: JobQueueing
    workloads: dict[str, Workload]
    unqueued: tuple[UnqueuedJob, ...] = ()
    """Jobs that name a queue and have no workload."""
    make_engine: Callable[[ObjectsByKind], JobQueueing] | None = None
    """Another one, for other objects."""
    objects: ObjectsByKind = field(default_factory=dict)
    """All that the engine was filled with, by kind."""
    configuration: QueueingConfiguration = field(default_factory=QueueingConfiguration)
    room: NodeRoom | None = None

    def pending(self) -> Iterator[tuple[str, PendingWorkload]]:
        """Everything that waits, with its cluster queue, in the order of the queues."""
        for queue in self.engine.cluster_queues():
            yield from ((queue.name, one) for one in self.engine.pending(queue.name))

    def find(self, name: str, namespace: str) -> Workload | None:
        """By its own name, or by that of the job that it stands for."""
        exact = self.workloads.get(f"{namespace}/{name}")
        if exact is not None:
            return exact
        own = [one for one in self.workloads.values() if one.namespace == namespace and owner_of(one) == name]
        return max(own, key=lambda one: one.metadata.creation_timestamp or "", default=None)

    def find_unqueued(self, name: str, namespace: str) -> UnqueuedJob | None:
        return next((one for one in self.unqueued if one.key == f"{namespace}/{name}"), None)

    def judged(self, workload: Workload) -> WorkloadReport | None:
        """What the queues say about a workload when they have been looked through once more."""
        _look_through(self.engine, self.room)
        return self.engine.explain(workload.key)

    def admits(self, key: str, changed: Iterable[Any], gone: Collection[str] = ()) -> bool:
        """Whether a workload would get quota with other versions of some objects, and without some workloads."""
        assert self.make_engine is not None
        others: dict[tuple[str, str], Any] = {(type(one).__name__, one.key): one for one in changed}
        objects: dict[str, list[Any]] = {
            kind: [others.get((kind, one.key), one) for one in known] for kind, known in self.objects.items()
        }
        objects["Workload"] = [one for one in objects.get("Workload", ()) if one.key not in gone]
        with nullcontext() if self.room is None else self.room.without(gone):
            engine = self.make_engine(objects)
            _look_through(engine, self.room)
            report = engine.explain(key)
        return report is not None and report.state in ("reserved", "admitted")


def _look_through(engine: JobQueueing, room: NodeRoom | None) -> None:
    """Until nothing changes."""
    for _ in range(_MOST_CYCLES):
        has_more = engine.cycle()
        if room is not None and room.take_changes()[0]:
            engine.nodes_changed()
            has_more = True
        if not has_more:
            break


def owner_of(workload: Workload) -> str:
    """The name of the job; "" if nobody owns the workload."""
    owner = workload.metadata.controller
    return owner.name if owner is not None else ""


def view_of_objects(
    objects: Iterable[Any], clock: Clock, configuration: QueueingConfiguration, room: NodeRoom | None = None
) -> QueueingView:
    """Decoded objects, in any order; `room`: on the nodes that there are."""
    by_kind: dict[str, list[Any]] = {}
    for obj in objects:
        by_kind.setdefault(type(obj).__name__, []).append(obj)

    def make_engine(known: ObjectsByKind) -> JobQueueing:
        return filled(
            lambda: JobQueueing(clock, seeded(0), configuration, room), lambda kind: known.get(kind, ()), LeftOut()
        )

    workloads = {one.key: one for one in by_kind.get("Workload", ())}
    unqueued = tuple(_unqueued(by_kind))
    return QueueingView(make_engine(by_kind), workloads, unqueued, make_engine, by_kind, configuration, room)


def _unqueued(by_kind: Mapping[str, list[Any]]) -> Iterator[UnqueuedJob]:
    """Jobs that name a queue and have no workload, with what is wrong with them."""
    classes = PriorityClasses()
    classes.of_workloads |= {one.name: one for one in by_kind.get("WorkloadPriorityClass", ())}
    classes.of_pods |= {one.name: one for one in by_kind.get("PriorityClass", ())}
    owners = {owner.uid for one in by_kind.get("Workload", ()) for owner in one.metadata.owner_references}
    for job in by_kind.get("Job", ()):
        queue = batch_job.queue_of(job)
        if not queue or job.uid in owners or batch_job.run_facts(job).ending is not None:
            continue
        draft = job_draft(job, classes, queue)
        if isinstance(draft, DraftProblem):
            yield UnqueuedJob(job.key, queue, draft.reason, draft.message)
        else:
            yield UnqueuedJob(job.key, queue, "NoWorkload", f"no workload yet: kubectl describe job {job.name}")


def view_of_manifests(
    manifests: Iterable[dict[str, Any]],
    clock: Clock,
    configuration: QueueingConfiguration,
    room: NodeRoom | None = None,
) -> QueueingView:
    """Objects as they stand in files; DecodeError if one cannot be read."""
    objects = []
    for raw in manifests:
        kind = kind_of(str(raw.get("kind", "")))
        if kind is not None and kind.plural in _READ:
            metadata = {"uid": f"{kind.kind}/{raw.get('metadata', {}).get('name')}", **(raw.get("metadata") or {})}
            if kind.namespaced:
                metadata.setdefault("namespace", "default")
            objects.append(kind.decode(msgspec.json.encode({**raw, "metadata": metadata})))
    known = {obj.name for obj in objects if type(obj).__name__ == "Namespace"}
    missing = {obj.namespace for obj in objects if type(obj).__name__ == "Workload"} - known
    namespace = KINDS["namespaces"]
    objects += [namespace.decode(msgspec.json.encode({"metadata": {"name": name}})) for name in sorted(missing)]
    return view_of_objects(objects, clock, configuration, room)


async def view_of_server(
    client: KubeClient, clock: Clock, configuration: QueueingConfiguration, room: NodeRoom | None = None
) -> QueueingView:
    """Everything that queueing reads, listed once; NoQueueing if the server does not know workloads."""
    objects = [obj for resource in _READ async for obj in _all(client, resource)]
    return view_of_objects(objects, clock, configuration, room)


async def _all(client: KubeClient, resource: str) -> AsyncIterator[Any]:
    token = ""
    while True:
        try:
            page = await client.list_page(KINDS[resource], ListOptions(limit=_PAGE, continue_token=token))
        except ApiStatusError as error:
            if error.code != _NOT_FOUND:
                raise
            if resource == "workloads":
                raise NoQueueing from error
            return
        for obj in page.items:
            yield obj
        token = page.continue_token
        if not token:
            return
