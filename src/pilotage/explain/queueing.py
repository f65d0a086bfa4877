"""Workload queueing that only thinks: an engine filled from an API server or from manifests, asked, never obeyed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from pilotage.clock import Clock
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.engine import JobQueueing
from pilotage.jobs.filling import FOR_THE_ENGINE, NAMESPACE, LeftOut, filled
from pilotage.jobs.reports import PendingWorkload, WorkloadReport
from pilotage.kube.client import KubeClient, ListOptions
from pilotage.kube.errors import ApiStatusError
from pilotage.model import KINDS, kind_of
from pilotage.model.kueue import Workload
from pilotage.rng import seeded

_PAGE: Final = 500
_NOT_FOUND: Final = 404
_READ: Final = tuple(kind.plural for name in (NAMESPACE, *FOR_THE_ENGINE) if (kind := kind_of(name)) is not None)
_MOST_CYCLES: Final = 10_000


class NoQueueing(Exception):
    """The API server does not have the kinds of workload queueing."""


@dataclass(frozen=True, slots=True)
class QueueingView:
    """The queues as they are, and what would happen next."""

    engine: JobQueueing
    workloads: dict[str, Workload]

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

    def judged(self, workload: Workload) -> WorkloadReport | None:
        """What the queues say about a workload when they have been looked through once more."""
        for _ in range(_MOST_CYCLES):
            if not self.engine.cycle():
                break
        return self.engine.explain(workload.key)


def owner_of(workload: Workload) -> str:
    """The name of the job; "" if nobody owns the workload."""
    owner = workload.metadata.controller
    return owner.name if owner is not None else ""


def view_of_objects(objects: Iterable[Any], clock: Clock, configuration: QueueingConfiguration) -> QueueingView:
    """Decoded objects, in any order."""
    by_kind: dict[str, list[Any]] = {}
    for obj in objects:
        by_kind.setdefault(type(obj).__name__, []).append(obj)
    engine = filled(lambda: JobQueueing(clock, seeded(0), configuration), lambda kind: by_kind.get(kind, ()), LeftOut())
    return QueueingView(engine, {one.key: one for one in by_kind.get("Workload", ())})


def view_of_manifests(
    manifests: Iterable[dict[str, Any]], clock: Clock, configuration: QueueingConfiguration
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
    return view_of_objects(objects, clock, configuration)


async def view_of_server(client: KubeClient, clock: Clock, configuration: QueueingConfiguration) -> QueueingView:
    """Everything that queueing reads, listed once; NoQueueing if the server does not know workloads."""
    objects = [obj for resource in _READ async for obj in _all(client, resource)]
    return view_of_objects(objects, clock, configuration)


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
