"""What users ask for under Kueue's names that has no effect here: said in an Event, never ignored in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pilotage.jobs.adapters import marks
from pilotage.jobs.adapters.kinds.job_kind import AnyJob, CannotQueue, JobKind
from pilotage.jobs.controller.steps import RecordEvent
from pilotage.model.kueue import AdmissionCheck
from pilotage.model.pod import Pod

NOT_SUPPORTED: Final = "NotSupported"
_PREFIX: Final = "kueue.x-k8s.io/"
_KNOWN: Final = frozenset(
    value for value in vars(marks).values() if isinstance(value, str) and value.startswith(_PREFIX)
)
_CONTROLLERS: Final[Mapping[str, str]] = {
    "kueue.x-k8s.io/provisioning-request": "nothing here asks an autoscaler for nodes",
    "kueue.x-k8s.io/multikueue": "workloads are not sent to other clusters",
}


def of_job(job: AnyJob, kind: JobKind) -> Iterator[RecordEvent]:
    """One event about everything, since each look at the job finds it again."""
    problems = [f"{name} has no effect" for name in sorted(_unknown(job, kind))]
    if job.annotations.get(marks.ELASTIC) == "true" and kind.framework != "batch/job":
        problems.append(f"{marks.ELASTIC} has an effect on Jobs alone: this one is queued anew when it is resized")
    if problems:
        yield RecordEvent(job, NOT_SUPPORTED, "; ".join(problems), "Warning")


def of_job_elsewhere(job: AnyJob) -> Iterator[RecordEvent]:
    """It names a queue, and another controller that is to run it."""
    text = "spec.managedBy hands it to another controller: it is not queued here, and not started"
    if marks.QUEUE_NAME in job.labels:
        yield RecordEvent(job, NOT_SUPPORTED, text, "Warning")


def of_check(check: AdmissionCheck) -> Iterator[RecordEvent]:
    if (why := _CONTROLLERS.get(check.spec.controller_name)) is not None:
        text = f"controllerName {check.spec.controller_name} is not served: {why}. Workloads wait for this check"
        yield RecordEvent(check, NOT_SUPPORTED, f"{text} until a controller of your own answers it", "Warning")


def why_not_queued(pod: Pod) -> str:
    """About a pod that names a queue and is not queued; "" if that is as it should be."""
    is_ours = pod.labels.get(marks.MANAGED) == "true" or marks.POD_SET in pod.labels
    is_gated = any(gate.name == marks.GATE for gate in pod.spec.scheduling_gates)
    if marks.QUEUE_NAME not in pod.labels or is_gated or is_ours or pod.node_name or pod.is_finished:
        return ""
    return (
        f"It names a queue, but was created without the scheduling gate {marks.GATE}: it takes no quota and waits for "
        "none. Write the gate, or let admission do it: deploy/workload-queueing/queue-admission.yaml"
    )


def _unknown(job: AnyJob, kind: JobKind) -> set[str]:
    places: list[Mapping[str, Any]] = [job.labels, job.annotations]
    try:
        for pod_set in kind.pod_sets(job):
            places += [pod_set.template.metadata.labels, pod_set.template.metadata.annotations]
    except CannotQueue:
        pass  # that is said by itself
    return {name for place in places for name in place if name.startswith(_PREFIX)} - _KNOWN
