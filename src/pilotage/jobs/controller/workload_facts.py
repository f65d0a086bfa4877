"""Short questions about a workload."""

from __future__ import annotations

from typing import Any

from pilotage.jobs.adapters import marks
from pilotage.model.kueue import Workload
from pilotage.model.meta import ApiObject, TimedCondition


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


def hold_patch(obj: ApiObject) -> dict[str, Any] | None:
    """Keep an object from going before we let it; None if we hold it already."""
    finalizers = obj.metadata.finalizers
    return None if marks.IN_USE in finalizers else _finalizers_patch(obj, [*finalizers, marks.IN_USE])


def release_patch(obj: ApiObject) -> dict[str, Any] | None:
    """Let an object go; None if we do not hold it."""
    finalizers = obj.metadata.finalizers
    if marks.IN_USE not in finalizers:
        return None
    return _finalizers_patch(obj, [one for one in finalizers if one != marks.IN_USE])


def _finalizers_patch(obj: ApiObject, finalizers: list[str]) -> dict[str, Any]:
    identity = {"uid": obj.uid, "resourceVersion": obj.resource_version}
    return {"metadata": {**identity, "finalizers": finalizers or None}}
