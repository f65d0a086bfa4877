"""LimitRanges at work: the defaults that containers get, and what is rejected because it breaks a bound.

Defaults come first and are part of what is validated; bounds are asked last, about an object that is right otherwise.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pilotage.model.limit_ranges import Breach, LimitRange, claim_breaches, container_defaults, pod_breaches
from pilotage.model.pod_spec import PodSpecFields, ResourceRequirements
from pilotage.model.quantity import Quantity
from pilotage.sandbox.errors import forbidden
from pilotage.sandbox.rules.json_fields import Json, child, dict_or_empty, dicts_in, nested, text_or_empty
from pilotage.sandbox.rules.lookup import Lookup
from pilotage.sandbox.rules.qos import qos_class

LIMIT_RANGES: Final = "limitranges"
_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_RESOURCES: Final = {"Pod": "pods", "PersistentVolumeClaim": "persistentvolumeclaims"}
_CONTAINERS: Final = (("containers", "container"), ("initContainers", "init container"))


def set_default_resources(pod: Json, lookup: Lookup) -> None:
    """Give the containers of a new pod what the LimitRanges of its namespace say, and note that on the pod."""
    spec = dict_or_empty(pod.get("spec"))
    for limit_range in _limit_ranges(pod, lookup):
        defaults = container_defaults(limit_range.spec)
        notes = [
            note
            for field, title in _CONTAINERS
            for container in dicts_in(spec, field)
            for note in _completed(container, defaults, title)
        ]
        if notes:
            child(child(pod, "metadata"), "annotations")[_ANNOTATION] = f"LimitRanger plugin set: {'; '.join(notes)}"
            child(pod, "status")["qosClass"] = qos_class(spec)


def reject_beyond_limits(kind: str, obj: Json, lookup: Lookup) -> None:
    """ApiError if the pod or claim breaks a bound; of several LimitRanges the first that is broken counts."""
    for limit_range in _limit_ranges(obj, lookup):
        problems = list(dict.fromkeys(breach.sentence for breach in _breaches(kind, obj, limit_range)))
        if problems:
            problem = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            raise forbidden(_RESOURCES[kind], text_or_empty(nested(obj, "metadata", "name")), problem)


def _limit_ranges(obj: Json, lookup: Lookup) -> list[LimitRange]:
    namespace = text_or_empty(nested(obj, "metadata", "namespace"))
    found = lookup.list(LIMIT_RANGES, namespace)
    if not found:
        return []
    return sorted((msgspec.convert(one, LimitRange) for one in found), key=lambda one: one.name)


def _breaches(kind: str, obj: Json, limit_range: LimitRange) -> list[Breach]:
    spec = dict_or_empty(obj.get("spec"))
    if kind == "Pod":
        return pod_breaches(msgspec.convert(spec, PodSpecFields), limit_range.spec)
    return claim_breaches(dict_or_empty(nested(spec, "resources", "requests")), limit_range.spec)


def _completed(container: Json, defaults: ResourceRequirements, title: str) -> list[str]:
    resources = child(container, "resources")
    limits = _filled(resources, "limits", defaults.limits)
    requests = _filled(resources, "requests", defaults.requests)
    name = text_or_empty(container.get("name"))
    filled = ((requests, "request"), (limits, "limit"))
    return [f"{', '.join(sorted(names))} {what} for {title} {name}" for names, what in filled if names]


def _filled(resources: Json, field: str, defaults: dict[str, Quantity]) -> list[str]:
    """The names of those that were missing."""
    given: Any = resources.get(field)
    if given is not None and type(given) is not dict:
        return []
    missing = {name: amount for name, amount in defaults.items() if name not in (given or {})}
    if missing:
        resources[field] = {**(given or {}), **missing}
    return list(missing)
