"""The quality-of-service class of a pod, which the API server decides once, at creation.

Only cpu and memory count, and only amounts above zero:

    Guaranteed   every container limits both, and requests what it limits
    BestEffort   no container requests or limits any
    Burstable    everything else

Pod-level resources, where given, stand for all containers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pilotage.sandbox.rules.effective_requests import amount_of

_COUNTED: Final = ("cpu", "memory")


def qos_class(spec: Mapping[str, Any]) -> str:
    """The class of a pod with this spec, after defaulting."""
    demands = _demands(spec)
    if not any(requests or limits for requests, limits in demands):
        return "BestEffort"
    if all(len(limits) == len(_COUNTED) and requests == limits for requests, limits in demands):
        return "Guaranteed"
    return "Burstable"


def _demands(spec: Mapping[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(requests, limits) that decide, one pair per container or one for the pod."""
    pod_level = spec.get("resources")
    if isinstance(pod_level, dict) and (pod_level.get("requests") or pod_level.get("limits")):
        return [_counted(pod_level)]
    demands = []
    for field in ("containers", "initContainers"):
        containers = spec.get(field)
        if isinstance(containers, list):
            demands += [_counted(item.get("resources")) for item in containers if isinstance(item, dict)]
    return demands


def _counted(resources: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    if not isinstance(resources, dict):
        return {}, {}
    return _positive(resources.get("requests")), _positive(resources.get("limits"))


def _positive(amounts: Any) -> dict[str, Any]:
    if not isinstance(amounts, dict):
        return {}
    found = {}
    for name in _COUNTED:
        amount = amount_of(amounts[name]) if name in amounts else None
        if amount:
            found[name] = amount
    return found
