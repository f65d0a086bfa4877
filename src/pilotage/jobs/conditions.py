"""Conditions of a workload: their names, their reasons, and the one rule for changing them.

The time of a condition changes only when its status does: a new reason or message alone keeps it. Timers and the order
of the queue depend on that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from pilotage.clock import parse_rfc3339, rfc3339
from pilotage.escaping import visible
from pilotage.model.meta import TimedCondition

QUOTA_RESERVED: Final = "QuotaReserved"
ADMITTED: Final = "Admitted"
PODS_READY: Final = "PodsReady"
EVICTED: Final = "Evicted"
PREEMPTED: Final = "Preempted"
REQUEUED: Final = "Requeued"
DEACTIVATION_TARGET: Final = "DeactivationTarget"
FINISHED: Final = "Finished"
WAITING_FOR_REPLACEMENT_PODS: Final = "WaitingForReplacementPods"

OWN: Final = frozenset(
    {
        QUOTA_RESERVED,
        ADMITTED,
        PODS_READY,
        EVICTED,
        PREEMPTED,
        REQUEUED,
        DEACTIVATION_TARGET,
        FINISHED,
        WAITING_FOR_REPLACEMENT_PODS,
    }
)
"""Every other condition belongs to another controller."""

# Why quota is not reserved.
PENDING_EVALUATION: Final = "PendingEvaluation"
WAITING_FOR_QUOTA: Final = "WaitingForQuota"
EXCEEDS_MAX_QUOTA: Final = "ExceedsMaxQuota"
NO_MATCHING_FLAVOR: Final = "NoMatchingFlavor"
WAITING_FOR_NODES: Final = "WaitingForNodes"
"""There is quota, but no room for all of its pods."""
WAITING_FOR_PREEMPTED: Final = "WaitingForPreemptedWorkloads"
WAITING_FOR_PODS_READY: Final = "WaitingForPodsReady"
MISCONFIGURED: Final = "Misconfigured"
SUSPENDED: Final = "Suspended"
DEACTIVATED: Final = "Deactivated"
ADMISSION_GATED: Final = "AdmissionGated"

# Why a workload is evicted.
PODS_READY_TIMEOUT: Final = "PodsReadyTimeout"
PODS_UNSCHEDULABLE: Final = "PodsUnschedulable"
"""No node has taken one of its pods for too long."""
ADMISSION_CHECK: Final = "AdmissionCheck"
CLUSTER_QUEUE_STOPPED: Final = "ClusterQueueStopped"
LOCAL_QUEUE_STOPPED: Final = "LocalQueueStopped"
NODE_FAILURES: Final = "NodeFailures"
ADMISSION_WITHDRAWN: Final = "AdmissionWithdrawn"
"""Somebody else took the admission out of the status."""
REQUEUING_LIMIT_EXCEEDED: Final = "RequeuingLimitExceeded"
MAXIMUM_EXECUTION_TIME_EXCEEDED: Final = "MaximumExecutionTimeExceeded"

# How pods became, or have not become, ready.
WAIT_FOR_START: Final = "WaitForStart"
WAIT_FOR_RECOVERY: Final = "WaitForRecovery"
STARTED: Final = "Started"
RECOVERED: Final = "Recovered"

NO_RESERVATION: Final = "NoReservation"
UNSATISFIED_CHECKS: Final = "UnsatisfiedAdmissionChecks"
BACKOFF_FINISHED: Final = "BackoffFinished"
REACTIVATED: Final = "Reactivated"
CLUSTER_QUEUE_RESTARTED: Final = "ClusterQueueRestarted"
LOCAL_QUEUE_RESTARTED: Final = "LocalQueueRestarted"

_LONGEST_MESSAGE: Final = 32768


def epoch(text: str | None) -> int:
    """Whole seconds; 0 if there is no time, or none that can be read."""
    try:
        return int(parse_rfc3339(text)) if text else 0
    except (ValueError, OverflowError):
        return 0


class WorkloadCondition(NamedTuple):
    is_true: bool
    reason: str
    message: str
    since: int
    """Epoch seconds of the last change of the status."""


class Conditions:
    """The conditions of one workload, in the order in which they first appeared."""

    __slots__ = ("_by_type",)

    def __init__(self) -> None:
        self._by_type: dict[str, WorkloadCondition] = {}

    def get(self, kind: str) -> WorkloadCondition | None:
        return self._by_type.get(kind)

    def is_true(self, kind: str) -> bool:
        found = self._by_type.get(kind)
        return found is not None and found.is_true

    def is_false(self, kind: str) -> bool:
        """There and False; absent is neither."""
        found = self._by_type.get(kind)
        return found is not None and not found.is_true

    def set(self, kind: str, is_true: bool, reason: str, message: str, now: int) -> bool:
        """Whether anything changed."""
        old = self._by_type.get(kind)
        message = visible(message)[:_LONGEST_MESSAGE]
        if old is not None and old.is_true is is_true:
            if old.reason == reason and old.message == message:
                return False
            now = old.since
        self._by_type[kind] = WorkloadCondition(is_true, reason, message, now)
        return True

    def remove(self, kind: str) -> None:
        self._by_type.pop(kind, None)

    def __iter__(self) -> Iterator[tuple[str, WorkloadCondition]]:
        return iter(self._by_type.items())

    def take(self, written: Iterable[TimedCondition]) -> None:
        """Take over what stands in the API."""
        for one in written:
            if one.type not in OWN:
                continue
            time = epoch(one.last_transition_time)
            self._by_type[one.type] = WorkloadCondition(one.status == "True", one.reason, one.message, time)

    def written(self) -> tuple[TimedCondition, ...]:
        """As they stand in the API."""
        return tuple(
            TimedCondition(
                type=kind,
                status="True" if one.is_true else "False",
                reason=one.reason,
                message=one.message,
                last_transition_time=rfc3339(one.since),
            )
            for kind, one in self._by_type.items()
        )
