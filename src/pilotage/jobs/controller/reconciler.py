"""From a subject to its steps: finds what belongs to it and asks the plan of its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from pilotage.jobs.adapters import batch_job, marks, plain_pods
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.controller import drafts
from pilotage.jobs.controller.job_plan import job_steps
from pilotage.jobs.controller.objects import Objects, Subject
from pilotage.jobs.controller.pod_plan import pod_steps, steps_without_pods
from pilotage.jobs.controller.steps import Change, RemoveWorkload, Step, TellFinished, TellGone
from pilotage.jobs.controller.workload_facts import holds_quota, is_leaving, is_true, release_patch
from pilotage.model.kueue import Workload
from pilotage.model.pod import Pod
from pilotage.model.workloads import Job

_DEFAULT_QUEUE = "default"


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
        if job.spec.managed_by not in (None, "", "kubernetes.io/job-controller"):
            return ""
        name = batch_job.queue_of(job)
        if name or "batch/job" not in self._configuration.integrations.frameworks:
            return name
        if self._configuration.manages_namespace(self._objects.namespace_labels(job.namespace)):
            return _DEFAULT_QUEUE
        return ""

    def takes_part(self, pod: Pod) -> bool:
        return "pod" in self._configuration.integrations.frameworks and plain_pods.takes_part(pod)

    def workload_keys(self, subject: Subject) -> list[str]:
        return [workload.key for workload in self._objects.workloads_of(subject)]

    def steps(self, subject: Subject) -> Iterator[Step]:
        if subject.kind == "Job":
            yield from self._job(subject)
        elif subject.kind == "Workload":
            yield from self._unowned(subject)
        else:
            yield from self._pods(subject)

    def _job(self, subject: Subject) -> Iterator[Step]:
        job = self._objects.jobs.get(subject.key)
        own = None if job is None else self._own_workload(subject, job.uid)
        yield from self._others(subject, own)
        if job is not None:
            drafting = partial(drafts.job_draft, job, self._objects.classes, self.queue_of(job))
            yield from job_steps(job, own, drafting, self._objects.flavors)

    def _pods(self, subject: Subject) -> Iterator[Step]:
        pods = self._objects.members(subject)
        name = subject.key.partition("/")[2] if subject.kind == "Group" else ""
        uid = pods[0].uid if pods and not name else ""
        own = self._own_workload(subject, uid)
        yield from self._others(subject, own)
        if pods:
            members = plain_pods.group(name, pods)
            drafting = partial(drafts.group_draft, members, self._objects.classes)
            yield from pod_steps(members, own, drafting, self._objects.flavors)
        elif own is not None:
            yield from steps_without_pods(own)

    def _unowned(self, subject: Subject) -> Iterator[Step]:
        """Nobody runs it, so nobody has pods that would have to go. It may have outlived its job."""
        workload = self._newest(subject.key)
        if workload is None:
            return
        if is_true(workload, "Finished") or is_leaving(workload):
            if (patch := release_patch(workload)) is not None:
                yield Change(workload, patch)
        elif marks.JOB_UID in workload.labels:
            yield TellFinished(workload.key, "OwnerNotFound", "The job was deleted, and the workload left behind")
        elif is_true(workload, "Evicted") and holds_quota(workload):
            yield TellGone(workload.key)

    def _own_workload(self, subject: Subject, uid: str) -> Workload | None:
        """The workload of this very object; of a namesake that is gone the workload goes too. `uid` "": of any."""
        for found in self._objects.workloads_of(subject):
            owner = found.metadata.controller
            if not uid or found.labels.get(marks.JOB_UID) == uid or (owner is not None and owner.uid == uid):
                return self._newest(found.key)
        return None

    def _others(self, subject: Subject, own: Workload | None) -> Iterator[Step]:
        for found in self._objects.workloads_of(subject):
            if own is not None and found.uid == own.uid:
                continue
            if not is_leaving(found):
                yield RemoveWorkload(found)
            if (patch := release_patch(found)) is not None:
                yield Change(found, patch)
