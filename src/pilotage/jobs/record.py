"""What the engine knows of one workload.

The record is the truth for everything that workload queueing itself writes; `seen` is the object as it last came from
the watch, kept to tell what others changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from pilotage.jobs import conditions as c
from pilotage.jobs.quota import FlavorResource
from pilotage.jobs.shapes import WorkloadShape
from pilotage.model.kueue import Admission, AdmissionCheckState, Workload, WorkloadStatus

if TYPE_CHECKING:
    from pilotage.jobs.pending import PendingGroup


class WorkloadPlace(Enum):
    """Where a workload is; always exactly one."""

    UNQUEUED = "unqueued"
    """Pending, but there is no queue that could take it (missing, stopped) or it is gated."""
    QUEUED = "queued"
    """In a group of its ClusterQueue, to be tried or put aside."""
    BACKOFF = "backoff"
    """In its ClusterQueue, but not eligible yet."""
    QUOTA_RESERVED = "holding"
    """Its quota is booked."""
    INACTIVE = "inactive"
    FINISHED = "finished"


@dataclass(slots=True)
class CheckState:
    """The state of one admission check; `since` and `requeue_after` are of its last change."""

    state: str = "Pending"
    message: str = ""
    since: int = 0
    requeue_after: int | None = None
    retries: int = 0
    updates: tuple[Any, ...] = ()

    def reset(self, now: int) -> CheckState:
        retries = self.retries + (self.state == "Retry")
        since = self.since if self.state == "Pending" else now
        return replace(CheckState(message="Reset to Pending after eviction", since=since), retries=retries)


Tried = Mapping[tuple[int, str], int]
"""(pod set, resource) -> the last flavor tried; -1 if that was the last there is."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """Where the search for flavors goes on, for a workload that could not get those that it tried."""

    tried: Tried = field(default_factory=dict)
    before: frozenset[tuple[tuple[tuple[int, str], int], ...]] = frozenset()
    """Where it went on since quota became free: neither pod sets with several flavors each, nor the heads of several
    queues, must take turns for ever."""
    generation: int = -1
    """Of the ClusterQueue's free quota at that time."""
    cycle: int = -1

    def after(self, tried: Tried, generation: int, cycle: int) -> Resumption:
        """The next step of the search; nothing is tried if it is over."""
        if not self.before and all(at < 0 for at in tried.values()):
            return AFRESH
        place = tuple(sorted(tried.items()))
        if place in self.before or all(at < 0 for at in tried.values()):
            return Resumption({}, self.before, generation, cycle)
        return Resumption(tried, self.before | {place}, generation, cycle)

    def is_outdated(self, generation: int, cycle: int) -> bool:
        """Quota became free since, and the search is over or there was a cycle in between."""
        return generation != self.generation and (cycle > self.cycle + 1 or not self.tried)


AFRESH: Final = Resumption()


@dataclass(frozen=True, slots=True)
class Chosen:
    counts: tuple[int, ...]
    """Pods of each pod set."""
    resumption: Resumption
    """Where the search for flavors had begun."""


@dataclass(slots=True, eq=False)
class WorkloadRecord:
    seen: Workload
    key: str
    uid: str
    namespace: str
    created: int
    shape: WorkloadShape
    priority: int = 0
    is_active: bool = True
    queue_name: str = ""

    conditions: c.Conditions = field(default_factory=c.Conditions)
    admission: Admission | None = None
    requeue_count: int | None = None
    requeue_at: int | None = None
    evictions: dict[tuple[str, str], int] = field(default_factory=dict)
    checks: dict[str, CheckState] = field(default_factory=dict)
    reclaimable: dict[str, int] = field(default_factory=dict)
    past_seconds: int = 0
    """Admitted seconds of earlier runs."""

    place: WorkloadPlace = WorkloadPlace.UNQUEUED
    cluster_queue: str = ""
    """Where it waits, or where its quota is booked; "" if there is no such queue."""
    usage: dict[FlavorResource, int] = field(default_factory=dict)
    """What is booked for it; empty unless QUOTA_RESERVED."""
    group: PendingGroup | None = None
    """If QUEUED."""
    due: int | None = None
    """When its next timer fires."""
    waits_for: frozenset[str] = frozenset()
    """UIDs of the workloads on their way out that this one waits for."""
    chosen: Chosen | None = None
    """What victims were chosen for: it is judged so until they are gone."""
    resumption: Resumption = AFRESH
    reported_at: int = 0
    """When its reason for waiting was last written."""
    rejection: Any = None
    """The last `Refusal` of a cycle."""
    written: WorkloadStatus | None = None
    """The present status as it stands in the API, if that was made already."""

    @property
    def local_queue_key(self) -> str:
        return f"{self.namespace}/{self.queue_name}"

    @property
    def has_reservation(self) -> bool:
        return self.conditions.is_true(c.QUOTA_RESERVED)

    @property
    def is_admitted(self) -> bool:
        return self.conditions.is_true(c.ADMITTED)

    @property
    def is_evicted(self) -> bool:
        return self.conditions.is_true(c.EVICTED)

    @property
    def is_finished(self) -> bool:
        return self.conditions.is_true(c.FINISHED)

    @property
    def reserved_at(self) -> int:
        found = self.conditions.get(c.QUOTA_RESERVED)
        return found.since if found is not None and found.is_true else 0

    @property
    def priority_class(self) -> str:
        reference = self.seen.spec.priority_class_ref
        return reference.name if reference is not None else ""

    @property
    def is_barred(self) -> bool:
        """An admission check has said no before there was a reservation: it is not tried until that changes."""
        return bool(self.checks) and any(check.state in ("Retry", "Rejected") for check in self.checks.values())

    def count_of(self, pod_set: int) -> int:
        """Pods of a pod set that still need quota."""
        need = self.shape.pod_sets[pod_set]
        return max(0, need.count - self.reclaimable.get(need.name, 0))

    def is_eligible(self, now: int) -> bool:
        if self.conditions.is_false(c.REQUEUED):
            return False
        return self.requeue_at is None or self.requeue_at <= now


def check_state(written: AdmissionCheckState, since: int) -> CheckState:
    return CheckState(
        written.state or "Pending",
        written.message,
        since,
        written.requeue_after_seconds,
        written.retry_count or 0,
        written.pod_set_updates,
    )
