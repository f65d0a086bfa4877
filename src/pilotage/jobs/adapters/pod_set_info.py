"""What admission adds to the pods of a pod set, so that they land on the nodes of their flavors.

A flavor adds its node labels as a node selector and its tolerations; an admission check may add labels, annotations,
node selectors and tolerations of its own. Two sources that want different values for one key contradict each other:
the workload then cannot be started.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pilotage.jobs.adapters import marks
from pilotage.model.kueue import PodSetAssignment, PodSetUpdate, ResourceFlavor, Workload
from pilotage.model.pod_spec import Toleration


@dataclass(frozen=True, slots=True)
class PodSetInfo:
    """Additions to the pods of one pod set, and how many pods were admitted."""

    name: str
    count: int
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class PodSetConflict:
    """Why the pods cannot be made as the admission says."""

    pod_set: str
    field: str
    key: str
    values: tuple[str, str]

    @property
    def message(self) -> str:
        first, second = self.values
        return f'pod set {self.pod_set}: {self.field} {self.key} is to be "{first}" and "{second}"'


def pod_set_infos(workload: Workload, flavors: Mapping[str, ResourceFlavor]) -> list[PodSetInfo] | PodSetConflict:
    """One for each pod set, in their order; flavors that are gone meanwhile add nothing."""
    admission = workload.status.admission
    assignments = {one.name: one for one in admission.pod_set_assignments} if admission is not None else {}
    infos = []
    for pod_set in workload.spec.pod_sets:
        assignment = assignments.get(pod_set.name, PodSetAssignment(name=pod_set.name))
        own = pod_set.template
        merged = _Merged(
            pod_set.name,
            _queue_labels(workload, pod_set.name),
            {marks.WORKLOAD: workload.name},
            dict(own.spec.node_selector),
            dict(own.metadata.labels),
            dict(own.metadata.annotations),
        )
        merged.add_selector(domain_selector(assignment))
        for flavor in _flavors_of(assignment, flavors):
            merged.add_selector(flavor.spec.node_labels)
            merged.add_tolerations(flavor.spec.tolerations)
        for update in _updates_of(workload, pod_set.name):
            merged.add_update(update)
        if merged.conflict is not None:
            return merged.conflict
        infos.append(merged.info(pod_set.count if assignment.count is None else assignment.count))
    return infos


def _queue_labels(workload: Workload, pod_set: str) -> dict[str, str]:
    admission = workload.status.admission
    labels = {marks.POD_SET: pod_set, marks.LOCAL_QUEUE_NAME: workload.spec.queue_name}
    if admission is not None:
        labels[marks.CLUSTER_QUEUE_NAME] = admission.cluster_queue
    return labels


def _flavors_of(assignment: PodSetAssignment, flavors: Mapping[str, ResourceFlavor]) -> Iterator[ResourceFlavor]:
    for name in dict.fromkeys(assignment.flavors.values()):
        if (flavor := flavors.get(name)) is not None:
            yield flavor


def domain_selector(assignment: PodSetAssignment) -> dict[str, str]:
    """Where all pods of the pod set are to go, if admission has found one place for them: a rack, for instance."""
    found = assignment.topology_assignment
    if found is None or len(found.slices) != 1 or found.slices[0].domain_count != 1:
        return {}
    values = (one.universal for one in found.slices[0].values_per_level)
    return dict(zip(found.levels, values, strict=False))


def _updates_of(workload: Workload, pod_set: str) -> Iterator[PodSetUpdate]:
    for check in workload.status.admission_checks:
        yield from (update for update in check.pod_set_updates if update.name == pod_set)


class _Merged:
    """Collects additions; remembers the first contradiction."""

    def __init__(
        self,
        pod_set: str,
        labels: dict[str, str],
        annotations: dict[str, str],
        own_selector: dict[str, str],
        own_labels: dict[str, str],
        own_annotations: dict[str, str],
    ) -> None:
        self._pod_set = pod_set
        self._labels = labels
        self._annotations = annotations
        self._selector: dict[str, str] = {}
        self._tolerations: list[Toleration] = []
        self._own = {"nodeSelector": own_selector, "label": own_labels, "annotation": own_annotations}
        self.conflict: PodSetConflict | None = None

    def add_selector(self, selector: Mapping[str, str]) -> None:
        self._add("nodeSelector", self._selector, selector)

    def add_tolerations(self, tolerations: tuple[Toleration, ...]) -> None:
        self._tolerations += [one for one in tolerations if one not in self._tolerations]

    def add_update(self, update: PodSetUpdate) -> None:
        self._add("label", self._labels, update.labels)
        self._add("annotation", self._annotations, update.annotations)
        self.add_selector(update.node_selector)
        self.add_tolerations(update.tolerations)

    def info(self, count: int) -> PodSetInfo:
        return PodSetInfo(
            self._pod_set, count, self._labels, self._annotations, self._selector, tuple(self._tolerations)
        )

    def _add(self, what: str, target: dict[str, str], additions: Mapping[str, str]) -> None:
        for key, value in additions.items():
            known = target.get(key, self._own[what].get(key, value))
            if known != value and self.conflict is None:
                self.conflict = PodSetConflict(self._pod_set, what, key, (known, value))
            target[key] = value
