"""What a RuntimeClass adds to the pods that name it: overhead, and where they may run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pilotage.sandbox.errors import ApiError, forbidden
from pilotage.sandbox.rules.effective_requests import amount_of
from pilotage.sandbox.rules.json_fields import Json, child, dict_or_empty, dicts_in, nested, text_or_empty
from pilotage.sandbox.rules.lookup import Lookup

RUNTIME_CLASSES: Final = "runtimeclasses.node.k8s.io"


def apply_runtime_class(pod: Json, spec: Json, lookup: Lookup) -> None:
    """Complete a new pod, or reject it if it contradicts its class or names one that does not exist."""
    name = spec.get("runtimeClassName")
    if not name:
        return
    runtime_class = lookup.get(RUNTIME_CLASSES, "", text_or_empty(name))
    if runtime_class is None:
        raise _rejected(pod, f'RuntimeClass "{name}" not found')
    _set_overhead(pod, spec, nested(runtime_class, "overhead", "podFixed"))
    _set_scheduling(pod, spec, dict_or_empty(runtime_class.get("scheduling")))


def reject_own_overhead(pod: Json, lookup: Lookup) -> None:
    """ApiError if a pod has an overhead that is none of its class."""
    spec = dict_or_empty(pod.get("spec"))
    if spec.get("overhead"):
        runtime_class = lookup.get(RUNTIME_CLASSES, "", text_or_empty(spec.get("runtimeClassName")))
        if nested(runtime_class, "overhead", "podFixed") is None:
            raise _rejected(pod, "Pod Overhead set without corresponding RuntimeClass defined Overhead")


def _set_overhead(pod: Json, spec: Json, overhead: Any) -> None:
    given = spec.get("overhead")
    if type(overhead) is not dict:
        return
    if given and type(given) is dict and not _same_amounts(given, overhead):
        raise _rejected(pod, "Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    if not given:
        spec["overhead"] = dict(overhead)


def _same_amounts(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and all(amount_of(one[name]) == amount_of(other[name]) for name in one)


def _set_scheduling(pod: Json, spec: Json, scheduling: Json) -> None:
    wanted = dict_or_empty(scheduling.get("nodeSelector"))
    if wanted:
        selector = child(spec, "nodeSelector")
        for key, value in wanted.items():
            if key in selector and selector[key] != value:
                field = "runtimeClass.scheduling.nodeSelector"
                problem = f"conflict: {field}[{key}] = {value}; pod.spec.nodeSelector[{key}] = {selector[key]}"
                raise forbidden("pods", _name(pod), problem)
        selector.update(wanted)
    tolerations = spec.setdefault("tolerations", [])
    if type(tolerations) is list:
        tolerations += [one for one in dicts_in(scheduling, "tolerations") if one not in tolerations]


def _rejected(pod: Json, problem: str) -> ApiError:
    return forbidden("pods", _name(pod), f"pod rejected: {problem}")


def _name(pod: Json) -> str:
    return text_or_empty(nested(pod, "metadata", "name"))
