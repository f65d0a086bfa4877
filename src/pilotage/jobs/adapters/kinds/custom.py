"""A kind of jobs by its spec as JSON: what all custom kinds have in common, given what differs.

A kind says where its pods are described, which field suspends it, and what its status means. Everything else is the
same for all: suspended until admitted, steered, started, restored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from pilotage.jobs.adapters import marks
from pilotage.jobs.adapters.facts import JobEnding, RunFacts
from pilotage.jobs.adapters.kinds import pods_in_spec
from pilotage.jobs.adapters.kinds.job_kind import CannotQueue, Patch
from pilotage.jobs.adapters.kinds.pods_in_spec import Json, PodsInSpec, at, maps_at, text_at
from pilotage.jobs.adapters.pod_set_info import PodSetInfo
from pilotage.model.custom_jobs import CustomJob
from pilotage.model.kinds import KindInfo
from pilotage.model.kueue import PodSet, Workload
from pilotage.model.queue_admission import SUSPENDED

MULTIKUEUE: Final = "kueue.x-k8s.io/multikueue"


@dataclass(frozen=True, slots=True)
class Standing:
    """What the status of a job says about its pods."""

    is_active: bool
    """Pods of it exist, or may exist."""
    are_pods_ready: bool
    ending: JobEnding | None = None
    reclaimable: dict[str, int] | None = None


@dataclass(frozen=True, slots=True)
class CustomKind:
    framework: str
    resource: KindInfo
    pods: Callable[[CustomJob], list[PodsInSpec]]
    """In the order of the pod sets; CannotQueue if the job cannot be queued as it is."""
    standing: Callable[[CustomJob], Standing]
    switch: tuple[str, ...] = ("suspend",)
    """The field of the spec that suspends it."""
    own_priority_class: tuple[str, ...] = ()
    """Where the spec names a PriorityClass for all its pods."""

    def pod_sets(self, job: CustomJob) -> tuple[PodSet, ...]:
        found = tuple(pods_in_spec.pod_set(pods, job.spec) for pods in self.pods(job))
        if not found:
            raise CannotQueue("it describes no pods")
        if len({one.name for one in found}) < len(found):
            raise CannotQueue(f"two of its groups of pods have one name: {', '.join(one.name for one in found)}")
        return found

    def run_facts(self, job: CustomJob) -> RunFacts:
        standing = self.standing(job)
        return RunFacts(
            is_suspended=at(job.spec, self.switch) is True,
            has_active_pods=standing.is_active,
            are_pods_ready=standing.are_pods_ready,
            ending=standing.ending,
            reclaimable=standing.reclaimable or {},
        )

    def priority_class(self, job: CustomJob) -> str:
        if named := text_at(job.spec, *self.own_priority_class) if self.own_priority_class else "":
            return named
        classes = (one.template.spec.priority_class_name for one in self.pod_sets(job))
        return next(filter(None, classes), "")

    def is_elsewhere(self, job: CustomJob) -> bool:
        return text_at(job.spec, "managedBy") == MULTIKUEUE

    def is_steered(self, job: CustomJob) -> bool:
        return pods_in_spec.is_steered(self._pods(job), job.spec)

    def count_of_pod_sets(self, job: CustomJob) -> int:
        return len(self._pods(job))

    def has_size_of(self, job: CustomJob, workload: Workload, infos: Sequence[PodSetInfo]) -> bool:
        now = [(pods.name, pods.count) for pods in self._pods(job)]
        return now == [(one.name, one.count) for one in workload.spec.pod_sets]

    def spare_pods(self, job: CustomJob, workload: Workload) -> dict[str, int] | None:
        return None

    def suspend_patch(self, job: CustomJob) -> Patch:
        return {"metadata": _identity(job), "spec": self._switched(True)}

    def start_patch(self, job: CustomJob, infos: Sequence[PodSetInfo]) -> Patch:
        spec = deepcopy(job.spec)
        pods_in_spec.steer(self._pods(job), spec, infos)
        changed = pods_in_spec.merge_patch(job.spec, spec)
        _join(changed, self._switched(False))
        return {"metadata": _identity(job), "spec": changed}

    def clear_start_patch(self, job: CustomJob) -> Patch | None:
        return None

    def restore_patch(self, job: CustomJob, original: tuple[PodSet, ...]) -> Patch | None:
        if not self.is_steered(job):
            return None
        spec = deepcopy(job.spec)
        pods_in_spec.restore(self._pods(job), spec, original)
        changed = pods_in_spec.merge_patch(job.spec, spec)
        return {"metadata": _identity(job), "spec": changed} if changed else None

    def hold_patch(self, job: CustomJob) -> Patch:
        return {"metadata": {**_identity(job), "annotations": {marks.HELD: "true"}}, "spec": self._switched(True)}

    def unhold_patch(self, job: CustomJob) -> Patch:
        return {"metadata": {**_identity(job), "annotations": {marks.HELD: None}}, "spec": self._switched(False)}

    def _pods(self, job: CustomJob) -> list[PodsInSpec]:
        try:
            return self.pods(job)
        except CannotQueue:
            return []

    def _switched(self, value: bool) -> Json:
        switched: Any = value
        for key in reversed(self.switch):
            switched = {key: switched}
        spec: Json = switched
        return spec


def suspended_by(group: str, kind: str) -> dict[str, Any]:
    """The name of the integration and its switch, as admission knows them."""
    framework, path = SUSPENDED[group, kind]
    return {"framework": framework, "switch": path[1:]}


def condition_of(job: CustomJob, *types: str) -> Json | None:
    """The first of these conditions that is true."""
    for one in maps_at(job.status, "conditions"):
        if one.get("type") in types and one.get("status") == "True":
            return one
    return None


def ending_by_condition(job: CustomJob, *, succeeded: str, failed: str) -> JobEnding | None:
    found = condition_of(job, succeeded, failed)
    if found is None:
        return None
    is_success = found["type"] == succeeded
    default = "Job finished successfully" if is_success else "Job failed"
    return JobEnding(is_success, str(found.get("message") or default))


def _join(patch: Json, other: Json) -> None:
    for key, value in other.items():
        if type(value) is dict and type(patch.get(key)) is dict:
            _join(patch[key], value)
        else:
            patch[key] = value


def _identity(job: CustomJob) -> dict[str, str]:
    return {"uid": job.uid, "resourceVersion": job.resource_version}
