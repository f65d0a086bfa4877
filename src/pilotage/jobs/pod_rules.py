"""LimitRanges and RuntimeClasses, and the workloads that each of them concerns.

A change of one is news for the unfinished workloads of its namespace, or of its class, and for no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pilotage.jobs.configuration.kinds import ResourceSettings
from pilotage.jobs.counted_resources import counting_rules
from pilotage.jobs.effective_pods import Surroundings
from pilotage.jobs.record import WorkloadRecord
from pilotage.jobs.shapes import WorkloadShape, shape_of
from pilotage.model.kueue import PodSet, Workload
from pilotage.model.limit_ranges import LimitRange
from pilotage.model.policy import RuntimeClass

_Index = dict[str, dict[str, WorkloadRecord]]


class PodRules:
    def __init__(self, resources: ResourceSettings) -> None:
        self._plain = Surroundings(counting=counting_rules(resources))
        self._limit_ranges: dict[str, dict[str, LimitRange]] = {}
        self._classes: dict[str, RuntimeClass] = {}
        self._in_namespace: _Index = {}
        self._of_class: _Index = {}

    def shape(self, workload: Workload) -> WorkloadShape:
        """What the workload needs here and now."""
        pod_sets = workload.spec.pod_sets
        ranges = self._limit_ranges.get(workload.namespace)
        classes = _classes_of(pod_sets)
        if ranges is None and not classes:
            return shape_of(pod_sets, self._plain)
        known = tuple((name, one.spec) for name, one in sorted(ranges.items())) if ranges is not None else ()
        found = {name: self._classes.get(name) for name in classes}
        overheads = {name: None if one is None else one.overhead.pod_fixed for name, one in found.items()}
        return shape_of(pod_sets, Surroundings(known, overheads, self._plain.counting))

    # --- whom it concerns ---------------------------------------------------------------------------------------------

    def follow(self, record: WorkloadRecord) -> None:
        self._in_namespace.setdefault(record.namespace, {})[record.uid] = record
        for name in _classes_of(record.seen.spec.pod_sets):
            self._of_class.setdefault(name, {})[record.uid] = record

    def forget(self, record: WorkloadRecord, pod_sets: Sequence[PodSet]) -> None:
        """`pod_sets`: those that it was followed with."""
        _drop(self._in_namespace, record.namespace, record.uid)
        for name in _classes_of(pod_sets):
            _drop(self._of_class, name, record.uid)

    # --- changes: whom to look at again -------------------------------------------------------------------------------

    def set_limit_range(self, obj: LimitRange) -> Sequence[WorkloadRecord]:
        self._limit_ranges.setdefault(obj.namespace, {})[obj.name] = obj
        return list(self._in_namespace.get(obj.namespace, {}).values())

    def delete_limit_range(self, obj: LimitRange) -> Sequence[WorkloadRecord]:
        known = self._limit_ranges.get(obj.namespace, {})
        known.pop(obj.name, None)
        if not known:
            self._limit_ranges.pop(obj.namespace, None)
        return list(self._in_namespace.get(obj.namespace, {}).values())

    def set_class(self, obj: RuntimeClass) -> Sequence[WorkloadRecord]:
        self._classes[obj.name] = obj
        return list(self._of_class.get(obj.name, {}).values())

    def delete_class(self, obj: RuntimeClass) -> Sequence[WorkloadRecord]:
        self._classes.pop(obj.name, None)
        return list(self._of_class.get(obj.name, {}).values())

    def check(self, unfinished: Iterable[WorkloadRecord]) -> None:
        namespaces: _Index = {}
        classes: _Index = {}
        for record in unfinished:
            namespaces.setdefault(record.namespace, {})[record.uid] = record
            for name in _classes_of(record.seen.spec.pod_sets):
                classes.setdefault(name, {})[record.uid] = record
        assert (namespaces, classes) == (self._in_namespace, self._of_class), "all concerned are found"


def _classes_of(pod_sets: Sequence[PodSet]) -> list[str]:
    """In the order in which they are named."""
    named = [one.template.spec.runtime_class_name for one in pod_sets]
    return [*dict.fromkeys(name for name in named if name)] if any(named) else []


def _drop(index: _Index, key: str, uid: str) -> None:
    found = index.get(key)
    if found is not None:
        found.pop(uid, None)
        if not found:
            del index[key]
