"""What people ask about queues and workloads, as data: the commands and the visibility API render it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pilotage.model.meta import ObjectMeta

WorkloadState = Literal["pending", "reserved", "admitted", "evicting", "inactive", "finished"]
QueuePlace = Literal["active", "inadmissible", "none"]
"""active: tried in turn; inadmissible: not tried until something changes, or in back-off; none: in no queue."""


@dataclass(frozen=True, slots=True)
class QuotaReport:
    """One resource of one flavor in a ClusterQueue. cpu in thousandths, everything else in units."""

    flavor: str
    resource: str
    nominal: int
    borrowing_limit: int | None
    lending_limit: int | None
    used: int
    borrowed: int
    available: int
    """What a new workload could get now, by borrowing too."""
    admitted: int = 0
    """Of what is used: by workloads that are admitted."""


@dataclass(frozen=True, slots=True)
class ClusterQueueReport:
    name: str
    cohort: str
    strategy: str
    is_active: bool
    reason: str
    """Of the condition Active."""
    message: str
    pending: int
    """All that wait: active and inadmissible."""
    inadmissible: int
    reserving: int
    admitted: int
    weighted_share: int
    quotas: tuple[QuotaReport, ...] = ()
    preemption_skips: int = 0
    """Heads of the last cycle that found victims and lost them to others."""


@dataclass(frozen=True, slots=True)
class CohortQuotaReport:
    """One resource of one flavor in a cohort and everything below it."""

    flavor: str
    resource: str
    nominal: int
    """Of the cohort itself: it is lent to everybody below."""
    total: int
    """With what the cohorts and ClusterQueues below have."""
    used: int
    """By the ClusterQueues below."""


@dataclass(frozen=True, slots=True)
class CohortReport:
    name: str
    parent: str
    weighted_share: int
    quotas: tuple[CohortQuotaReport, ...] = ()


@dataclass(frozen=True, slots=True)
class UnadmittedCount:
    """Workloads of one LocalQueue that are not admitted for the same reason."""

    cluster_queue: str
    namespace: str
    local_queue: str
    reason: str
    underlying_cause: str
    count: int


@dataclass(frozen=True, slots=True)
class LocalQueueReport:
    namespace: str
    name: str
    cluster_queue: str
    is_active: bool
    reason: str
    message: str
    pending: int
    reserving: int
    admitted: int
    inadmissible: int = 0
    """Of those that wait: inadmissible, or in no queue at all."""
    reserved_usage: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(flavor, resource) -> amount, of workloads with a reservation."""
    admitted_usage: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PendingWorkload:
    """One line of a queue, in queue order."""

    key: str
    uid: str
    local_queue: str
    priority: int
    position_in_cluster_queue: int
    position_in_local_queue: int
    place: QueuePlace
    reason: str
    """Of QuotaReserved=False."""
    message: str
    requeue_count: int | None
    requeue_at: int | None
    """Epoch seconds."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A workload whose quota, or whose pods, others wait for."""

    key: str
    cluster_queue: str
    amount: int | None = None
    """Of the resource that is waited for; None if it is not a matter of amounts."""


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a pending workload waits for, and who has it."""

    reason: str
    """WaitingForQuota, WaitingForPreemptedWorkloads or WaitingForPodsReady."""
    holders: tuple[Holder, ...] = ()
    """The largest first; not more than a few, and only those who may be named."""
    others: int = 0
    """How many more there are."""
    others_amount: int | None = None
    pod_set: str = ""
    flavor: str = ""
    resource: str = ""
    need: int | None = None
    free: int | None = None


@dataclass(frozen=True, slots=True)
class QueueLine:
    """One line of a queue with everything that the visibility API says about it."""

    metadata: ObjectMeta
    place: PendingWorkload
    is_eligible: bool
    """It may be tried; False in back-off, or while its queue is drained."""
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why one flavor does not take one pod set, or why none may."""

    pod_set: str
    flavor: str
    resource: str
    code: str
    """NoMatchingFlavor, ExceedsMaxQuota or WaitingForQuota; Misconfigured: the API server would reject the pods."""
    message: str
    need: int = 0
    have: int = 0
    most: int = 0
    """What the flavor could give if no other queue used it."""
    exceeded_by: int = 0
    """How much more is in use than there is quota: it was lowered."""
    holders: tuple[tuple[str, int], ...] = ()
    """Who uses it: (workload key, amount), largest first."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """An admission check of a workload."""

    name: str
    controller: str
    """Who answers it; "" if there is no such check."""
    state: str
    message: str


@dataclass(frozen=True, slots=True)
class WorkloadReport:
    key: str
    uid: str
    state: WorkloadState
    place: QueuePlace
    local_queue: str
    cluster_queue: str
    priority: int
    position: int | None
    """In its ClusterQueue, from 0; None if it does not wait."""
    reason: str
    message: str
    requeue_count: int | None
    requeue_at: int | None
    next_due: int | None
    """When a timer of this workload fires next (back-off over, readiness timeout, execution limit)."""
    waits_for: tuple[str, ...] = ()
    """Kinds of events that would make it be tried again."""
    shortages: tuple[Shortage, ...] = ()
    victims: tuple[str, ...] = ()
    """Workloads on their way out that it waits for."""
    blocked_by: tuple[str, ...] = ()
    """With blockAdmission: whose pods are not ready."""
    behind: str = ""
    """In a StrictFIFO queue: the first, which none may pass."""
    checks: tuple[CheckReport, ...] = ()
    not_ready: str = ""
    """Of an admitted workload: why its pods are not ready, the scheduler's words included."""
    would_be_admitted_if: tuple[str, ...] = ()
    """What was tried out and helps; each by itself."""
