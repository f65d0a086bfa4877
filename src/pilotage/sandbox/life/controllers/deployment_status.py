"""The status of a Deployment, summed up from its ReplicaSets.

Available: enough pods can be lost as maxUnavailable says. Progressing: the rollout still changes something, is
complete, is paused, or has not changed anything for longer than progressDeadlineSeconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from pilotage.clock import parse_rfc3339, rfc3339
from pilotage.sandbox.life.controllers.conditions import find_condition, set_condition
from pilotage.sandbox.life.controllers.int_or_percent import scaled_value

Object: TypeAlias = dict[str, Any]

_COUNTS: Final = ("replicas", "readyReplicas", "availableReplicas")
_NO_DEADLINE: Final = 2**31 - 1
_ROLLING: Final = "ReplicaSetUpdated"
_COMPLETE: Final = "NewReplicaSetAvailable"
_PAUSED: Final = "DeploymentPaused"


def deployment_status(deployment: Object, new: Object | None, old: Sequence[Object], now: float) -> Object:
    """The status as it should be now; keeps the times of conditions that did not change."""
    before: Object = deployment.get("status") or {}
    status = _counts(deployment, new, old)
    if "collisionCount" in before:
        status["collisionCount"] = before["collisionCount"]
    status["conditions"] = [dict(condition) for condition in before.get("conditions") or ()]
    _set_available(deployment, status, rfc3339(now))
    _set_progressing(deployment, new, status, now)
    return status


def seconds_to_deadline(deployment: Object, status: Object, now: float) -> float | None:
    """When to look again whether the rollout has stalled; None if there is nothing to wait for."""
    progressing = find_condition(status, "Progressing")
    deadline = deployment["spec"].get("progressDeadlineSeconds", 600)
    if progressing is None or progressing.get("reason") != _ROLLING or deadline >= _NO_DEADLINE:
        return None
    return max(parse_rfc3339(progressing["lastUpdateTime"]) + float(deadline) - now, 0.0) + 1.0


def _counts(deployment: Object, new: Object | None, old: Sequence[Object]) -> Object:
    sets = [*old, *([new] if new is not None else [])]
    counts = {name: sum((obj.get("status") or {}).get(name) or 0 for obj in sets) for name in _COUNTS}
    counts["updatedReplicas"] = 0 if new is None else (new.get("status") or {}).get("replicas") or 0
    wanted = sum(obj["spec"].get("replicas") or 0 for obj in sets)
    counts["unavailableReplicas"] = max(wanted - counts["availableReplicas"], 0)
    status: Object = {"observedGeneration": deployment["metadata"].get("generation", 0)}
    status.update((name, count) for name, count in counts.items() if count)
    return status


def _set_available(deployment: Object, status: Object, now: str) -> None:
    replicas = _wanted(deployment)
    strategy = deployment["spec"].get("strategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    may_miss = 0
    if strategy.get("type") != "Recreate":
        may_miss = scaled_value(rolling.get("maxUnavailable", "25%"), replicas, round_up=False)
    if status.get("availableReplicas", 0) >= replicas - may_miss:
        truth, reason, words = "True", "MinimumReplicasAvailable", "has minimum availability."
    else:
        truth, reason, words = "False", "MinimumReplicasUnavailable", "does not have minimum availability."
    _set(status, "Available", truth, now, reason, f"Deployment {words}")


def _set_progressing(deployment: Object, new: Object | None, status: Object, now: float) -> None:
    if deployment["spec"].get("paused"):
        _set(status, "Progressing", "Unknown", rfc3339(now), _PAUSED, "Deployment is paused")
        return
    if new is None:
        return
    name, before = new["metadata"]["name"], deployment.get("status") or {}
    known = find_condition(status, "Progressing")
    if _is_complete(deployment, status):
        message = f'ReplicaSet "{name}" has successfully progressed.'
        _set(status, "Progressing", "True", rfc3339(now), _COMPLETE, message)
    elif known is None or _has_moved(before, status) or known.get("reason") in (_COMPLETE, _PAUSED):
        message = f'ReplicaSet "{name}" is progressing.'
        _set(status, "Progressing", "True", rfc3339(now), _ROLLING, message)
        condition = find_condition(status, "Progressing")
        if condition is not None and _has_moved(before, status):
            condition["lastUpdateTime"] = rfc3339(now)
    elif _is_overdue(deployment, known, now):
        message = f'ReplicaSet "{name}" has timed out progressing.'
        _set(status, "Progressing", "False", rfc3339(now), "ProgressDeadlineExceeded", message)


def _is_complete(deployment: Object, status: Object) -> bool:
    wanted = _wanted(deployment)
    counted = [status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    return all(count == wanted for count in counted)


def _has_moved(before: Object, status: Object) -> bool:
    names = ("updatedReplicas", "readyReplicas", "availableReplicas", "replicas")
    return any(before.get(name, 0) != status.get(name, 0) for name in names)


def _is_overdue(deployment: Object, known: Object, now: float) -> bool:
    deadline = int(deployment["spec"].get("progressDeadlineSeconds", 600))
    if deadline >= _NO_DEADLINE or known.get("status") != "True":
        return False
    return now >= parse_rfc3339(known["lastUpdateTime"]) + deadline


def _set(status: Object, kind: str, truth: str, now: str, reason: str, message: str) -> None:
    previous = find_condition(status, kind)
    updated = now if previous is None else previous.get("lastUpdateTime", now)
    if set_condition(status, kind, truth, now, reason=reason, message=message):
        updated = now
    condition = find_condition(status, kind)
    if condition is not None:
        condition["lastUpdateTime"] = updated


def _wanted(deployment: Object) -> int:
    replicas = deployment["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)
