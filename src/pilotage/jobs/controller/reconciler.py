"""From a subject to its steps: finds what belongs to it and asks the plan of its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from pilotage.jobs.adapters import batch_job, marks, plain_pods
from pilotage.jobs.adapters.kinds.job_kind import AnyJob, JobKind
from pilotage.jobs.adapters.workload_draft import (
    Drafting,
    DraftProblem,
    WorkloadDraft,
    group_draft,
    job_draft,
    with_labels,
)
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.controller.ancestry import TooDeep, ancestors, child_job_steps, child_pod_steps, too_deep
from pilotage.jobs.controller.in_use import KEPT, steps_of_kept
from pilotage.jobs.controller.job_plan import job_steps, taken_over
from pilotage.jobs.controller.objects import Objects, ReconcileKey
from pilotage.jobs.controller.pod_plan import pod_steps, steps_without_pods
from pilotage.jobs.controller.refusals import of_job, of_job_elsewhere
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

_POD = "pod"
_DEFAULTING_GATE = "LocalQueueDefaulting"


class Reconciler:
    """`newest` gives a workload with the status as the engine has it."""

    def __init__(
        self, objects: Objects, configuration: QueueingConfiguration, newest: Callable[[str], Workload | None]
    ) -> None:
        self._objects = objects
        self._configuration = configuration
        self._newest = newest

    def queue_of(self, job: AnyJob, kind: JobKind) -> str:
        """The LocalQueue of a job; "" if it is none of ours."""
        if kind.is_elsewhere(job):
            return ""
        name = batch_job.queue_of(job)
        if name:
            return name
        is_managed = self._configuration.manages_namespace(self._objects.namespace_labels(job.namespace))
        return marks.DEFAULT_QUEUE if is_managed or self._may_have_default(job) else ""

    def _may_have_default(self, job: AnyJob) -> bool:
        """There is a LocalQueue `default`; only for jobs that came after it: those that run already were not meant."""
        queue = self._objects.of("LocalQueue").get(f"{job.namespace}/{marks.DEFAULT_QUEUE}")
        if queue is None or not self._configuration.feature_gates.get(_DEFAULTING_GATE, True):
            return False
        return (queue.metadata.creation_timestamp or "") <= (job.metadata.creation_timestamp or "")

    def _is_managed(self, job: AnyJob, kind: JobKind) -> bool:
        """A job whose pods were steered to the nodes of a flavor is ours even if the label was taken away."""
        return bool(self.queue_of(job, kind)) or kind.is_steered(job)

    @property
    def _frameworks(self) -> tuple[str, ...]:
        return self._configuration.integrations.frameworks

    @property
    def serves_pods(self) -> bool:
        return _POD in self._frameworks

    def takes_part(self, pod: Pod) -> bool:
        return self.serves_pods and plain_pods.takes_part(pod)

    def workload_keys(self, subject: ReconcileKey) -> list[str]:
        return [workload.key for workload in self._objects.workloads_of(subject)]

    def steps(self, subject: ReconcileKey) -> Iterator[Step]:
        try:
            yield from self._steps(subject)
        except TooDeep:
            is_job = subject.kind in self._objects.kinds
            objects = [self._objects.job(subject)] if is_job else self._objects.members(subject)
            yield from (too_deep(obj) for obj in objects[:1] if obj is not None)

    def _steps(self, subject: ReconcileKey) -> Iterator[Step]:
        if (kind := self._objects.kinds.get(subject.kind)) is not None:
            yield from self._job(subject, kind)
        elif subject.kind == "Workload":
            yield from self._unowned(subject)
        elif subject.kind in KEPT:
            yield from steps_of_kept(subject, self._objects)
        else:
            yield from self._pods(subject)

    def _job(self, subject: ReconcileKey, kind: JobKind) -> Iterator[Step]:
        job = self._objects.job(subject)
        if job is None or (ancestor := self._ancestor(job)) is not None or not self._is_managed(job, kind):
            yield from self._others(subject, None)
            if job is not None and kind.is_elsewhere(job):
                yield from of_job_elsewhere(job)
            if job is not None and ancestor is not None:
                yield from child_job_steps(job, kind, self._workload_of(*ancestor))
            return
        own = self._own_workload(subject, job.uid)
        yield from self._others(subject, own)
        yield from self._top_job(job, kind, own)
        for child, found in self._objects.child_jobs(job.uid):
            if (kind_of_child := self._objects.kinds.get(child.kind)) is not None:
                yield from child_job_steps(found, kind_of_child, own)

    def _top_job(self, job: AnyJob, kind: JobKind, own: Workload | None) -> Iterator[Step]:
        queue = self.queue_of(job, kind)
        if own is None and not batch_job.queue_of(job) and self._may_have_default(job):
            if kind.run_facts(job).ending is None and job.metadata.deletion_timestamp is None:
                event = RecordEvent(job, "QueueNameDefaulted", f"Goes to the LocalQueue {queue}, as it names none")
                yield PatchObject(job, batch_job.label_patch(job, queue), event=event)
            return
        yield from of_job(job, kind)
        if own is None and (name := job.labels.get(marks.PREBUILT_WORKLOAD)) is not None:
            yield from self._prebuilt(job, kind, queue, name)
            return
        drafting = self._labelled(job.labels, partial(job_draft, job, self._objects.classes, queue, kind))
        yield from job_steps(job, own, drafting, self._objects.flavors, kind)

    def _prebuilt(self, job: AnyJob, kind: JobKind, queue: str, name: str) -> Iterator[Step]:
        """Its workload was made by somebody else: it is waited for, and taken over if it is about these pods."""
        facts = kind.run_facts(job)
        if facts.ending is not None or job.metadata.deletion_timestamp is not None:
            return
        if not facts.is_suspended:
            event = RecordEvent(job, "Suspended", "Waits for its workload to be admitted")
            yield PatchObject(job, kind.suspend_patch(job), event=event)
            return
        draft = job_draft(job, self._objects.classes, queue, kind)
        workload = self._newest(f"{job.namespace}/{name}")
        yield from taken_over(job, name, workload, draft)

    def _labelled(self, labels: Mapping[str, str], make: Callable[[], WorkloadDraft | DraftProblem]) -> Drafting:
        """The draft with the labels of the job that the configuration wants on workloads too."""
        drafting = Drafting(make, partial(self._objects.classes.agrees_with, labels))
        keys = self._configuration.integrations.label_keys_to_copy
        copied = {key: labels[key] for key in keys if key in labels}
        return with_labels(drafting, copied) if copied else drafting

    def _ancestor(self, obj: AnyJob | Pod) -> tuple[ReconcileKey, AnyJob] | None:
        """The topmost managed job above; None if there is none."""
        owner = obj.controller if isinstance(obj, Pod) else obj.metadata.controller
        if owner is None:
            return None
        kinds = self._objects.kinds
        above = ancestors(self._objects, obj.namespace, owner)
        managed = [
            (subject, job)
            for subject, job in above
            if (kind := kinds.get(subject.kind)) is not None and self._is_managed(job, kind)
        ]
        return managed[-1] if managed else None

    def _workload_of(self, subject: ReconcileKey, job: AnyJob) -> Workload | None:
        return self._own_workload(subject, job.uid)

    def _pods(self, subject: ReconcileKey) -> Iterator[Step]:
        pods = []
        for pod in self._objects.members(subject):
            if (ancestor := self._ancestor(pod)) is not None:
                yield from child_pod_steps(pod, self._workload_of(*ancestor))
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
        """A workload without a job: there are no pods that would have to go. It may have outlived its job."""
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
