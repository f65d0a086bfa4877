"""From a subject to its steps: finds what belongs to it and asks the plan of its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from pilotage.jobs.adapters import batch_job, marks, plain_pods
from pilotage.jobs.adapters.workload_draft import Drafting, group_draft, job_draft, with_labels
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.controller.ancestry import TooDeep, ancestors, child_job_steps, child_pod_steps, too_deep
from pilotage.jobs.controller.in_use import KEPT, steps_of_kept
from pilotage.jobs.controller.job_plan import job_steps
from pilotage.jobs.controller.objects import Objects, ReconcileKey
from pilotage.jobs.controller.pod_plan import pod_steps, steps_without_pods
from pilotage.jobs.controller.steps import (
    PatchObject,
    RecordEvent,
    RemoveWorkload,
    ReportFinished,
    ReportPodsGone,
    Step,
)
from pilotage.jobs.controller.workload_facts import holds_quota, is_leaving, is_true, release_patch
from pilotage.model.kueue import Workload
from pilotage.model.pod import Pod
from pilotage.model.workloads import Job

_BATCH_JOB, _POD = "batch/job", "pod"
_DEFAULTING_GATE = "LocalQueueDefaulting"


class Reconciler:
    """`newest` gives a workload with the status as the engine has it."""

    def __init__(
        self, objects: Objects, configuration: QueueingConfiguration, newest: Callable[[str], Workload | None]
    ) -> None:
        self._objects = objects
        self._configuration = configuration
        self._newest = newest

    def queue_of(self, job: Job) -> str:
        """The LocalQueue of a Job; "" if it is none of ours."""
        if _BATCH_JOB not in self._frameworks or job.spec.managed_by not in (None, "", "kubernetes.io/job-controller"):
            return ""
        name = batch_job.queue_of(job)
        if name:
            return name
        is_managed = self._configuration.manages_namespace(self._objects.namespace_labels(job.namespace))
        return marks.DEFAULT_QUEUE if is_managed or self._may_have_default(job) else ""

    def _may_have_default(self, job: Job) -> bool:
        """There is a LocalQueue `default`; only for Jobs that came after it: nobody meant those that run already."""
        queue = self._objects.of("LocalQueue").get(f"{job.namespace}/{marks.DEFAULT_QUEUE}")
        if queue is None or not self._configuration.feature_gates.get(_DEFAULTING_GATE, True):
            return False
        return (queue.metadata.creation_timestamp or "") <= (job.metadata.creation_timestamp or "")

    def _is_managed(self, job: Job) -> bool:
        """Whoever was steered to the nodes of a flavor is ours even if the label was taken away."""
        return bool(self.queue_of(job)) or (_BATCH_JOB in self._frameworks and batch_job.is_steered(job))

    @property
    def _frameworks(self) -> tuple[str, ...]:
        return self._configuration.integrations.frameworks

    def takes_part(self, pod: Pod) -> bool:
        return _POD in self._frameworks and plain_pods.takes_part(pod)

    def workload_keys(self, subject: ReconcileKey) -> list[str]:
        return [workload.key for workload in self._objects.workloads_of(subject)]

    def steps(self, subject: ReconcileKey) -> Iterator[Step]:
        try:
            yield from self._steps(subject)
        except TooDeep:
            objects = [self._objects.jobs.get(subject.key)] if subject.kind == "Job" else self._objects.members(subject)
            yield from (too_deep(obj) for obj in objects[:1] if obj is not None)

    def _steps(self, subject: ReconcileKey) -> Iterator[Step]:
        if subject.kind == "Job":
            yield from self._job(subject)
        elif subject.kind == "Workload":
            yield from self._unowned(subject)
        elif subject.kind in KEPT:
            yield from steps_of_kept(subject, self._objects)
        else:
            yield from self._pods(subject)

    def _job(self, subject: ReconcileKey) -> Iterator[Step]:
        job = self._objects.jobs.get(subject.key)
        if job is None or (ancestor := self._ancestor(job)) is not None or not self._is_managed(job):
            yield from self._others(subject, None)
            if job is not None and ancestor is not None:
                yield from child_job_steps(job, self._workload_of(ancestor))
            return
        own = self._own_workload(subject, job.uid)
        yield from self._others(subject, own)
        yield from self._top_job(job, own)
        for child in self._objects.child_jobs(job.uid):
            yield from child_job_steps(child, own)

    def _top_job(self, job: Job, own: Workload | None) -> Iterator[Step]:
        queue = self.queue_of(job)
        if own is None and not batch_job.queue_of(job) and self._may_have_default(job):
            if (patch := batch_job.label_patch(job, queue)) is not None:
                event = RecordEvent(job, "QueueNameDefaulted", f"Goes to the LocalQueue {queue}, as it names none")
                yield PatchObject(job, patch, event=event)
            return
        drafting = self._labelled(job.labels, partial(job_draft, job, self._objects.classes, queue))
        yield from job_steps(job, own, drafting, self._objects.flavors)

    def _labelled(self, labels: Mapping[str, str], drafting: Drafting) -> Drafting:
        """The draft with the labels of the job that the configuration wants on workloads too."""
        keys = self._configuration.integrations.label_keys_to_copy
        copied = {key: labels[key] for key in keys if key in labels}
        return with_labels(drafting, copied) if copied else drafting

    def _ancestor(self, obj: Job | Pod) -> Job | None:
        """The topmost managed Job above; None if there is none."""
        owner = obj.controller if isinstance(obj, Pod) else obj.metadata.controller
        managed = [job for job in ancestors(self._objects, obj.namespace, owner) if self._is_managed(job)]
        return managed[-1] if managed else None

    def _workload_of(self, job: Job) -> Workload | None:
        return self._own_workload(ReconcileKey(batch_job.KIND, job.key), job.uid)

    def _pods(self, subject: ReconcileKey) -> Iterator[Step]:
        pods = []
        for pod in self._objects.members(subject):
            if (ancestor := self._ancestor(pod)) is not None:
                yield from child_pod_steps(pod, self._workload_of(ancestor))
            else:
                pods.append(pod)
        name = subject.key.partition("/")[2] if subject.kind == "Group" else ""
        uid = pods[0].uid if pods and not name else ""
        own = self._own_workload(subject, uid)
        yield from self._others(subject, own)
        if pods:
            members = plain_pods.group(name, pods)
            draft = partial(group_draft, members, self._objects.classes)
            drafting = self._labelled(members.pods[0].labels, draft)
            yield from pod_steps(members, own, drafting, self._objects.flavors)
        elif own is not None:
            yield from steps_without_pods(own)

    def _unowned(self, subject: ReconcileKey) -> Iterator[Step]:
        """Nobody runs it, so nobody has pods that would have to go. It may have outlived its job."""
        workload = self._newest(subject.key)
        if workload is None:
            return
        if is_true(workload, "Finished") or is_leaving(workload):
            if (patch := release_patch(workload)) is not None:
                yield PatchObject(workload, patch)
        elif marks.JOB_UID in workload.labels:
            yield ReportFinished(workload.key, "OwnerNotFound", "The job was deleted, and the workload left behind")
        elif is_true(workload, "Evicted") and holds_quota(workload):
            yield ReportPodsGone(workload.key)

    def _own_workload(self, subject: ReconcileKey, uid: str) -> Workload | None:
        """The workload of this very object; of a namesake that is gone the workload goes too. `uid` "": of any."""
        for found in self._objects.workloads_of(subject):
            owner = found.metadata.controller
            if not uid or found.labels.get(marks.JOB_UID) == uid or (owner is not None and owner.uid == uid):
                return self._newest(found.key)
        return None

    def _others(self, subject: ReconcileKey, own: Workload | None) -> Iterator[Step]:
        for found in self._objects.workloads_of(subject):
            if own is not None and found.uid == own.uid:
                continue
            if not is_leaving(found):
                yield RemoveWorkload(found)
            if (patch := release_patch(found)) is not None:
                yield PatchObject(found, patch)
