"""Defaults of Kueue's kinds, which in a real cluster come from the schemas of their definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pilotage.sandbox.rules.json_fields import Json, child, dict_or_empty, dicts_in, fill

_OF_TEMPLATES: Final = ("labels", "annotations")


def default_kueue(kind: str, obj: Json) -> None:
    default = _DEFAULTS.get(kind)
    if default is not None:
        default(obj)


def _default_cluster_queue(obj: Json) -> None:
    spec = dict_or_empty(obj.get("spec"))
    fill(spec, (("queueingStrategy", "BestEffortFIFO"), ("stopPolicy", "None")))
    fill(child(spec, "flavorFungibility"), (("whenCanBorrow", "MayStopSearch"), ("whenCanPreempt", "TryNextFlavor")))
    preemption = child(spec, "preemption")
    fill(preemption, (("reclaimWithinCohort", "Never"), ("withinClusterQueue", "Never")))
    fill(child(preemption, "borrowWithinCohort"), (("policy", "Never"),))
    _default_weight(spec)


def _default_local_queue(obj: Json) -> None:
    spec = dict_or_empty(obj.get("spec"))
    fill(spec, (("stopPolicy", "None"),))
    _default_weight(spec)


def _default_cohort(obj: Json) -> None:
    _default_weight(dict_or_empty(obj.get("spec")))


def _default_workload(obj: Json) -> None:
    spec = dict_or_empty(obj.get("spec"))
    fill(spec, (("active", True),))
    for pod_set in dicts_in(spec, "podSets"):
        fill(pod_set, (("name", "main"), ("count", 1)))
        template = dict_or_empty(pod_set.get("template"))
        if type(template.get("metadata")) is dict:
            # Its definition knows no others, so that a real API server drops them.
            kept = {field: value for field, value in template["metadata"].items() if field in _OF_TEMPLATES}
            template["metadata"] = kept


def _default_weight(spec: Json) -> None:
    if type(spec.get("fairSharing")) is dict:
        fill(spec["fairSharing"], (("weight", "1"),))


_DEFAULTS: Final[Mapping[str, Callable[[Json], None]]] = {
    "ClusterQueue": _default_cluster_queue,
    "LocalQueue": _default_local_queue,
    "Cohort": _default_cohort,
    "Workload": _default_workload,
}
