"""The pods of Jobs: how they are made, let go once counted, and discarded without being counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.life.controllers.controller import ControllerContext, Object, drop_finalizer
from pilotage.sandbox.life.controllers.job_policies import INDEX_FAILURES
from pilotage.sandbox.life.controllers.job_tally import INDEX, TRACKING
from pilotage.sandbox.life.controllers.pod_template import PodTemplate
from pilotage.sandbox.life.facts import PodFacts

_CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
_JOB_NAME: Final = "batch.kubernetes.io/job-name"
_INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"


class JobPods:
    """What the Job controller does to pods."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    def create(self, job: Object, indexes: Iterable[int | None], group: str, failures: Mapping[int, int]) -> None:
        """Create a pod per index (of a Job that is not Indexed: None) that names the PodGroup, if any.

        `failures`: how often indexes have failed, of a Job that limits that.
        """
        metadata = job["metadata"]
        labels = {_CONTROLLER_UID: metadata["uid"], _JOB_NAME: metadata["name"]}
        template = PodTemplate(job, labels=labels, finalizers=[TRACKING])
        pods = (_with_index(template.make(), metadata["name"], index) for index in indexes)
        if job["spec"].get("backoffLimitPerIndex") is not None:
            pods = (_with_failures(pod, failures) for pod in pods)
        self._context.create_pods(job, (_with_group(pod, group) for pod in pods))

    def release(self, pod: PodFacts) -> bool:
        """Let a pod go: it is counted from now on. False if it was gone or let go already."""
        obj = self._context.outline(pod.key) if TRACKING in pod.finalizers else None
        if obj is None or obj["metadata"]["uid"] != pod.uid or not drop_finalizer(obj, TRACKING):
            return False
        try:
            self._context.write_metadata(pod.key, obj)
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        return True

    def discard(self, pod: PodFacts) -> None:
        """Delete a pod that is not to be counted."""
        self.release(pod)
        self._context.delete(pod)


def _with_index(pod: Object, job_name: str, index: int | None) -> Object:
    if index is not None:
        _give_index(pod, job_name, index)
    return pod


def _with_failures(pod: Object, failures: Mapping[int, int]) -> Object:
    annotations = pod["metadata"].setdefault("annotations", {})
    annotations[INDEX_FAILURES] = str(failures.get(int(annotations[INDEX]), 0))
    return pod


def _with_group(pod: Object, group: str) -> Object:
    # Its Job alone owns the pod: beside an owner that waits for it to end it would outlive the Job.
    if group:
        pod["spec"]["schedulingGroup"] = {"podGroupName": group}
    return pod


def _give_index(pod: Object, job_name: str, index: int) -> None:
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["generateName"] = f"{job_name}-{index}-"
    metadata["labels"][INDEX] = str(index)
    metadata.setdefault("annotations", {})[INDEX] = str(index)
    spec.setdefault("hostname", f"{job_name}-{index}")
    for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
        variables = container.setdefault("env", [])
        if not any(variable.get("name") == _INDEX_VARIABLE for variable in variables):
            source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
            variables.append({"name": _INDEX_VARIABLE, "valueFrom": source})
