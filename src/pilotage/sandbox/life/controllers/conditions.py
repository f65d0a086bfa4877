"""Conditions in a status: kept as Kubernetes keeps them, so that times say when something last changed."""

from __future__ import annotations

from typing import Any, TypeAlias

Object: TypeAlias = dict[str, Any]


def find_condition(status: Object, kind: str) -> Object | None:
    condition: Object
    for condition in status.get("conditions") or ():
        if condition.get("type") == kind:
            return condition
    return None


def has_condition(status: Object, kind: str) -> bool:
    """Whether the condition is there and True."""
    condition = find_condition(status, kind)
    return condition is not None and condition.get("status") == "True"


def set_condition(status: Object, kind: str, truth: str, now: str, *, reason: str = "", message: str = "") -> bool:
    """Write one condition into `status`; its transition time moves only when its truth changes.

    Returns False, leaving everything as it is, if the condition already says just this.
    """
    known = find_condition(status, kind)
    wanted: Object = {"type": kind, "status": truth}
    if reason:
        wanted["reason"] = reason
    if message:
        wanted["message"] = message
    if (
        known is not None
        and {k: known.get(k) for k in ("type", "status", "reason", "message") if known.get(k)} == wanted
    ):
        return False
    changed = known is None or known.get("status") != truth
    wanted["lastTransitionTime"] = now if changed or known is None else known.get("lastTransitionTime", now)
    if known is None:
        conditions = status.get("conditions") or []
        status["conditions"] = [*conditions, wanted]
    else:
        known.clear()
        known.update(wanted)
    return True


def drop_condition(status: Object, kind: str) -> None:
    if find_condition(status, kind) is not None:
        status["conditions"] = [c for c in status["conditions"] if c.get("type") != kind]
