"""Short questions about a workload."""

from __future__ import annotations

from typing import Any

from pilotage.jobs.adapters import marks
from pilotage.model.kueue import Workload
from pilotage.model.meta import TimedCondition


def condition(workload: Workload, type_: str) -> TimedCondition | None:
    return next((one for one in workload.status.conditions if one.type == type_), None)


def is_true(workload: Workload, type_: str) -> bool:
    found = condition(workload, type_)
    return found is not None and found.status == "True"


def should_run(workload: Workload) -> bool:
    return workload.spec.active and is_true(workload, "Admitted") and not is_true(workload, "Evicted")


def holds_quota(workload: Workload) -> bool:
    return is_true(workload, "QuotaReserved")


def is_leaving(workload: Workload) -> bool:
    return workload.metadata.deletion_timestamp is not None


def why_stopped(workload: Workload) -> str:
    """Why its job must not run."""
    evicted = condition(workload, "Evicted")
    if evicted is not None and evicted.status == "True":
        return evicted.message or evicted.reason
    if not workload.spec.active:
        return "The workload is deactivated"
    return "Not admitted by cluster queue"


def release_patch(workload: Workload) -> dict[str, Any] | None:
    """Let a workload go; None if we do not hold it."""
    if marks.WORKLOAD_FINALIZER not in workload.metadata.finalizers:
        return None
    rest = [one for one in workload.metadata.finalizers if one != marks.WORKLOAD_FINALIZER]
    identity = {"uid": workload.uid, "resourceVersion": workload.resource_version}
    return {"metadata": {**identity, "finalizers": rest or None}}
