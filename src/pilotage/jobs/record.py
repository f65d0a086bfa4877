"""What the engine knows of one workload.

The record is the truth for everything that workload queueing itself writes; `seen` is the object as it last came from
the watch, kept to find out what others changed. A record is changed by its methods alone; what they mean for queues and
quota is the business of their callers: `Queues`, `Workloads` and the admission cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import structs

from pilotage.jobs import conditions as c
from pilotage.jobs.quota import FlavorResource
from pilotage.jobs.rejections import QuotaRejection
from pilotage.jobs.room import PodTrouble
from pilotage.jobs.shapes import WorkloadShape
from pilotage.model.kueue import Admission, AdmissionCheckState, Workload, WorkloadStatus

if TYPE_CHECKING:
    from pilotage.jobs.pending import PendingGroup


class WorkloadPlace(Enum):
    """Where a workload is; always exactly one."""

    UNQUEUED = "unqueued"
    """Pending, but there is no queue that could take it (missing, stopped) or it is gated."""
    QUEUED = "queued"
    """In a group of its ClusterQueue, to be tried or inadmissible."""
    BACKOFF = "backoff"
    """In its ClusterQueue, but not eligible yet."""
    QUOTA_RESERVED = "quota reserved"
    """Its quota is reserved."""
    INACTIVE = "inactive"
    FINISHED = "finished"


_IN_QUEUE: Final = (WorkloadPlace.QUEUED, WorkloadPlace.BACKOFF)
_WAITING: Final = (WorkloadPlace.UNQUEUED, *_IN_QUEUE)

READY: Final = "Ready"
RETRY: Final = "Retry"
REJECTED: Final = "Rejected"
PENDING: Final = "Pending"


@dataclass(slots=True)
class CheckState:
    """The state of one admission check; `since` and `requeue_after` are of its last change."""

    state: str = PENDING
    message: str = ""
    since: int = 0
    requeue_after: int | None = None
    retries: int = 0
    updates: tuple[Any, ...] = ()

    def reset(self, now: int) -> CheckState:
        retries = self.retries + (self.state == RETRY)
        since = self.since if self.state == PENDING else now
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


class Attempt(NamedTuple):
    """How far the search for quota has come."""

    waits_for: frozenset[str] = frozenset()
    """UIDs of the workloads on their way out that this one waits for."""
    chosen: Chosen | None = None
    """What victims were chosen for: it is nominated so until they are gone."""
    resumption: Resumption = AFRESH


NO_ATTEMPT: Final = Attempt()


@dataclass(slots=True, eq=False)
class WorkloadRecord:
    """One workload. Others read its fields; they are written by its own methods only."""

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
    """Where it waits, or where its quota is reserved; "" if there is no such queue."""
    usage: dict[FlavorResource, int] = field(default_factory=dict)
    """What is reserved for it; empty unless QUOTA_RESERVED."""
    group: PendingGroup | None = None
    """If QUEUED."""
    attempt: Attempt = NO_ATTEMPT
    rejection: QuotaRejection | None = None
    """Of the last admission cycle that looked at it."""
    is_charged: bool = False
    """Its LocalQueue was charged for it (admission fair sharing)."""
    trouble: PodTrouble | None = None
    """Pods of it that no node takes."""
    trouble_since: int = 0
    reported_at: int = 0
    """When its reason for waiting was last written."""
    _written: Workload | None = None

    # --- what can be read ---------------------------------------------------------------------------------------------

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
    def is_waiting(self) -> bool:
        """For quota, in a queue or for a queue."""
        return self.place in _WAITING

    @property
    def is_queued(self) -> bool:
        """In a ClusterQueue, to be tried or not yet."""
        return self.place in _IN_QUEUE

    @property
    def reserved_at(self) -> int:
        found = self.conditions.get(c.QUOTA_RESERVED)
        return found.since if found is not None and found.is_true else 0

    @property
    def waiting_since(self) -> int:
        """Creation, or when it was last queued again."""
        requeued = self.conditions.get(c.REQUEUED)
        return requeued.since if requeued is not None and requeued.is_true else self.created

    @property
    def execution_deadline(self) -> int | None:
        limit, admitted = self.seen.spec.maximum_execution_time_seconds, self.conditions.get(c.ADMITTED)
        if limit is None or admitted is None or not admitted.is_true:
            return None
        return admitted.since + max(0, limit - self.past_seconds)

    @property
    def priority_class(self) -> str:
        reference = self.seen.spec.priority_class_ref
        return reference.name if reference is not None else ""

    @property
    def pending_reason(self) -> tuple[str, str]:
        """Reason and message of QuotaReserved=False."""
        found = self.conditions.get(c.QUOTA_RESERVED)
        return (found.reason, found.message) if found is not None and not found.is_true else ("", "")

    def count_of(self, pod_set: int) -> int:
        """Pods of a pod set that still need quota."""
        need = self.shape.pod_sets[pod_set]
        return max(0, need.count - self.reclaimable.get(need.name, 0))

    def is_eligible(self, now: int) -> bool:
        if self.conditions.is_false(c.REQUEUED):
            return False
        return self.requeue_at is None or self.requeue_at <= now

    def written(self, status: Callable[[WorkloadRecord], WorkloadStatus]) -> Workload:
        """The object with the status of this record; made on request, and kept until something changes."""
        if self._written is None:
            self._written = structs.replace(self.seen, status=status(self))
        return self._written

    def check(self) -> None:
        written = self._written
        own = () if written is None else tuple(one for one in written.status.conditions if one.type in c.OWN)
        assert written is None or own == self.conditions.written(), "what is remembered is true"
        assert written is None or written.resource_version == self.seen.resource_version, "of the newest version"

    # --- what its object says -----------------------------------------------------------------------------------------

    def see(self, workload: Workload) -> Workload:
        """Another version of the object came; returns the one before."""
        old, self.seen = self.seen, workload
        if self._written is not None:
            is_same = _given_through(old.status) == _given_through(workload.status)
            self._written = structs.replace(workload, status=self._written.status) if is_same else None
        return old

    def reshape(self, shape: WorkloadShape) -> None:
        """It needs something else: what was found out about it is void."""
        self.shape = shape
        self.set_resumption(AFRESH)

    def rename_queue(self, name: str) -> None:
        self.queue_name = name

    def set_priority(self, priority: int) -> None:
        self.priority = priority

    def set_active(self, is_active: bool) -> None:
        self.is_active = is_active

    def set_reclaimable(self, counts: dict[str, int]) -> None:
        self.reclaimable = counts

    # --- status -------------------------------------------------------------------------------------------------------

    def changed(self) -> None:
        """The status is to be made anew."""
        self._written = None

    def set_condition(self, kind: str, is_true: bool, reason: str, message: str, now: int) -> bool:
        """Whether anything changed."""
        is_new = self.conditions.set(kind, is_true, reason, message, now)
        if is_new:
            self._written = None
        return is_new

    def remove_condition(self, kind: str) -> None:
        self.conditions.remove(kind)
        self._written = None

    def report_pending(self, reason: str, message: str, now: int) -> bool:
        """Why there is no quota. Whether that is new."""
        is_new = self.set_condition(c.QUOTA_RESERVED, False, reason, message, now)
        if not self.conditions.is_false(c.ADMITTED):
            is_new |= self.set_condition(c.ADMITTED, False, c.NO_RESERVATION, "The workload has no reservation", now)
        if is_new:
            self.reported_at = now
        return is_new

    def requeue_not_before(self, time: int) -> None:
        """Whatever else it waits for."""
        self.requeue_at = max(self.requeue_at or 0, time)

    def bound_backoff(self, latest: int) -> bool:
        """Whether its back-off would have ended later."""
        if self.requeue_at is None or self.requeue_at <= latest:
            return False
        self.requeue_at = latest
        return True

    def end_backoff(self) -> None:
        self.requeue_at = None

    def count_requeue(self) -> None:
        self.requeue_count = (self.requeue_count or 0) + 1

    def forget_requeues(self) -> None:
        self.requeue_count = self.requeue_at = None

    def count_eviction(self, reason: str, cause: str) -> int:
        """How often that was the reason so far."""
        times = self.evictions[reason, cause] = self.evictions.get((reason, cause), 0) + 1
        return times

    def add_past_seconds(self, seconds: int) -> None:
        self.past_seconds += seconds

    def forget_past_seconds(self) -> None:
        self.past_seconds = 0

    def note_trouble(self, trouble: PodTrouble | None, now: int) -> None:
        if self.trouble is None:
            self.trouble_since = now
        self.trouble = trouble

    # --- admission checks ---------------------------------------------------------------------------------------------

    @property
    def is_barred(self) -> bool:
        """An admission check has said no before there was a reservation: it is not tried until that changes."""
        return bool(self.checks) and any(check.state in (RETRY, REJECTED) for check in self.checks.values())

    @property
    def are_checks_ready(self) -> bool:
        return all(check.state == READY for check in self.checks.values())

    @property
    def checks_retry_at(self) -> int | None:
        """The latest time before which a check in Retry does not want to see the workload again."""
        times = [
            check.since + check.requeue_after
            for check in self.checks.values()
            if check.state == RETRY and check.requeue_after is not None
        ]
        return max(times, default=None)

    def checks_in(self, *states: str) -> list[str]:
        return [name for name, check in self.checks.items() if check.state in states]

    def assigned_flavors(self) -> list[str] | None:
        if self.admission is None:
            return None
        return [flavor for one in self.admission.pod_set_assignments for flavor in one.flavors.values()]

    def require_checks(self, names: list[str], now: int) -> bool:
        """Exactly these are needed: new ones are Pending, obsolete ones go. Whether the list changed."""
        if list(self.checks) == names:
            return False
        self.checks = {name: self.checks.get(name) or CheckState(since=now) for name in names}
        return True

    def take_checks(self, found: Mapping[str, CheckState]) -> None:
        self.checks |= found

    def amend_check(self, name: str, message: str, updates: tuple[Any, ...]) -> None:
        """Its controller says more about a check whose state is the same."""
        self.checks[name].message, self.checks[name].updates = message, updates
        self._written = None

    def reset_checks(self, now: int) -> None:
        """After an eviction every check begins anew."""
        self.checks = {name: check.reset(now) for name, check in self.checks.items()}

    # --- where it is --------------------------------------------------------------------------------------------------

    def assign_queue(self, cluster_queue: str) -> None:
        self.cluster_queue = cluster_queue

    def join(self, group: PendingGroup) -> None:
        self.group = group
        self.place = WorkloadPlace.QUEUED

    def begin_backoff(self) -> None:
        self.place = WorkloadPlace.BACKOFF

    def leave_queue(self) -> None:
        self.group = None
        self.place = WorkloadPlace.UNQUEUED
        self.set_resumption(AFRESH)

    def reserve(self, cluster_queue: str, usage: dict[FlavorResource, int]) -> None:
        """Quota is reserved for it."""
        self.usage = usage
        self.place = WorkloadPlace.QUOTA_RESERVED
        self.cluster_queue = cluster_queue

    def set_usage(self, usage: dict[FlavorResource, int]) -> None:
        self.usage = usage

    def release(self) -> None:
        self.usage, self.trouble = {}, None
        self.place = WorkloadPlace.UNQUEUED

    def set_admission(self, admission: Admission | None) -> None:
        self.admission = admission
        self._written = None

    def rest(self, place: WorkloadPlace) -> None:
        """INACTIVE or FINISHED."""
        self.place = place

    # --- how the search for quota goes --------------------------------------------------------------------------------

    def note_charged(self) -> None:
        self.is_charged = True

    def reject(self, rejection: QuotaRejection) -> None:
        self.rejection = rejection

    def set_resumption(self, resumption: Resumption) -> None:
        if self.attempt.resumption is not resumption:
            self.attempt = self.attempt._replace(resumption=resumption)

    def wait_for_victims(self, uids: frozenset[str], chosen: Chosen) -> None:
        self.attempt = Attempt(uids, chosen)

    def give_up_victims(self) -> None:
        if self.attempt.chosen is not None or self.attempt.waits_for:
            self.attempt = Attempt(resumption=self.attempt.resumption)

    def end_attempt(self) -> None:
        """It has its quota."""
        self.attempt, self.rejection = NO_ATTEMPT, None


def _given_through(status: WorkloadStatus) -> tuple[Any, ...]:
    """The part of a status that others write, and that is written back as it is."""
    return status.reclaimable_pods, [one for one in status.conditions if one.type not in c.OWN]


def check_state(written: AdmissionCheckState, since: int) -> CheckState:
    return CheckState(
        written.state or PENDING,
        written.message,
        since,
        written.requeue_after_seconds,
        written.retry_count or 0,
        written.pod_set_updates,
    )
