"""Kueue's kinds in their older version: v1beta1 has other names for some fields and some choices.

Both directions alter the object in place. What only v1beta1 knows and v1beta2 has no place for (`retryDelayMinutes` of
an admission check) is dropped, as it has no effect any more. Like defaulting this meets unchecked input: what has a
wrong type is left as it is, for validation to find.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pilotage.sandbox.rules.json_fields import Json, child, dict_or_empty, text_or_empty

_CLASS_SOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "kueue.x-k8s.io/workloadpriorityclass": ("kueue.x-k8s.io", "WorkloadPriorityClass"),
    "scheduling.k8s.io/priorityclass": ("scheduling.k8s.io", "PriorityClass"),
}
_SOURCE_OF: Final = {reference: source for source, reference in _CLASS_SOURCES.items()}

_RENAMED: Final[Mapping[str, tuple[tuple[str, str, str], ...]]] = {
    # kind: (part, older name, newer name)
    "ClusterQueue": (("spec", "cohort", "cohortName"),),
    "Cohort": (("spec", "parent", "parentName"),),
    "LocalQueue": (("status", "flavorUsage", "flavorsUsage"),),
    "Workload": (
        # The older name is misspelt in the API.
        ("status", "accumulatedPastExexcutionTimeSeconds", "accumulatedPastExecutionTimeSeconds"),
    ),
}
_STOPS: Final = (("whenCanBorrow", "Borrow"), ("whenCanPreempt", "Preempt"))
_STOP: Final = "MayStopSearch"


def to_newer(kind: str, obj: Json) -> None:
    """From v1beta1 to v1beta2."""
    for part, older, newer in _RENAMED.get(kind, ()):
        _rename(obj, part, older, newer)
    convert = _TO_NEWER.get(kind)
    if convert is not None:
        convert(dict_or_empty(obj.get("spec")))


def to_older(kind: str, obj: Json) -> None:
    """From v1beta2 to v1beta1."""
    for part, older, newer in _RENAMED.get(kind, ()):
        _rename(obj, part, newer, older)
    convert = _TO_OLDER.get(kind)
    if convert is not None:
        convert(dict_or_empty(obj.get("spec")))


def _rename(obj: Json, part: str, old: str, new: str) -> None:
    fields = dict_or_empty(obj.get(part))
    if old in fields:
        fields[new] = fields.pop(old)


def _newer_cluster_queue(spec: Json) -> None:
    fungibility = dict_or_empty(spec.get("flavorFungibility"))
    for field, older in _STOPS:
        if fungibility.get(field) == older:
            fungibility[field] = _STOP
    names = spec.pop("admissionChecks", None)
    if type(names) is list and names:
        rules = child(spec, "admissionChecksStrategy").setdefault("admissionChecks", [])
        if type(rules) is list:
            rules += [{"name": name} for name in names]


def _older_cluster_queue(spec: Json) -> None:
    fungibility = dict_or_empty(spec.get("flavorFungibility"))
    for field, older in _STOPS:
        if fungibility.get(field) == _STOP:
            fungibility[field] = older


def _newer_workload(spec: Json) -> None:
    name, source = spec.pop("priorityClassName", None), spec.pop("priorityClassSource", None)
    reference = _CLASS_SOURCES.get(text_or_empty(source))
    if name and reference is not None:
        spec["priorityClassRef"] = {"group": reference[0], "kind": reference[1], "name": name}


def _older_workload(spec: Json) -> None:
    reference = dict_or_empty(spec.pop("priorityClassRef", None))
    source = _SOURCE_OF.get((text_or_empty(reference.get("group")), text_or_empty(reference.get("kind"))))
    if source is not None:
        spec["priorityClassName"], spec["priorityClassSource"] = reference.get("name"), source


def _newer_admission_check(spec: Json) -> None:
    spec.pop("retryDelayMinutes", None)


_TO_NEWER: Final[Mapping[str, Callable[[Json], None]]] = {
    "ClusterQueue": _newer_cluster_queue,
    "Workload": _newer_workload,
    "AdmissionCheck": _newer_admission_check,
}
_TO_OLDER: Final[Mapping[str, Callable[[Json], None]]] = {
    "ClusterQueue": _older_cluster_queue,
    "Workload": _older_workload,
}
