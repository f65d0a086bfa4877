"""Carries out steps: at most one write per object at a time, and none that is based on what is known to be outdated."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from pilotage.api.calls import ApiCall, is_conflict, is_not_found
from pilotage.api.conditions import PodCondition
from pilotage.calls.deletions import JobDeletion, WorkloadDeletion
from pilotage.calls.job_change import JobChange
from pilotage.calls.pod_release import PodRelease
from pilotage.calls.queueing_object_change import QueueingObjectChange
from pilotage.calls.synchronous_calls import Calls
from pilotage.calls.victim_eviction import VictimEviction
from pilotage.calls.workload_change import WorkloadChange
from pilotage.calls.workload_creation import WorkloadCreation
from pilotage.clock import Clock, rfc3339
from pilotage.jobs.controller.events import QueueingEvents
from pilotage.jobs.controller.flapping import Recreations
from pilotage.jobs.controller.objects import ReconcileKey
from pilotage.jobs.controller.retries import Retries
from pilotage.jobs.controller.steps import (
    CreateWorkload,
    PatchObject,
    RecordEvent,
    RemoveJob,
    RemovePod,
    RemoveWorkload,
)
from pilotage.model import KINDS
from pilotage.model.kueue import AdmissionCheck, ClusterQueue, ResourceFlavor, Workload
from pilotage.model.pod import Pod
from pilotage.model.workloads import Job

log = logging.getLogger(__name__)

_PLURALS: Final = {
    ClusterQueue: "clusterqueues",
    ResourceFlavor: "resourceflavors",
    AdmissionCheck: "admissionchecks",
}

Write = PatchObject | CreateWorkload | RemoveWorkload | RemoveJob | RemovePod


class JobWrites:
    """`on_over` is called with the subject for whose sake something was written, when that is over.

    `wake` is called when something is to be tried again later.
    """

    def __init__(
        self,
        calls: Calls,
        events: QueueingEvents,
        clock: Clock,
        on_over: Callable[[ReconcileKey], None],
        wake: Callable[[], None],
    ) -> None:
        self._calls = calls
        self._events = events
        self._clock = clock
        self._on_over = on_over
        self.retries: Retries[ReconcileKey] = Retries(clock, wake)
        self._in_flight: set[str] = set()
        self._outdated: dict[str, str] = {}
        """uid -> the version that is known not to be the newest any more."""
        self._created: set[str] = set()
        """Keys of workloads that exist by now although no watch has brought them yet."""
        self._recreations = Recreations(clock)
        self._tasks: asyncio.TaskGroup | None = None

    def start(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks

    def seen(self, key: str) -> None:
        """A watch has brought the workload."""
        self._created.discard(key)

    def gone(self, uid: str) -> None:
        self._outdated.pop(uid, None)

    def carry_out(self, write: Write, subject: ReconcileKey) -> None:
        place = _place(write)
        if self._tasks is None or place in self._in_flight or self._is_outdated(write):
            return
        if isinstance(write, CreateWorkload) and (seconds := self._recreations.seconds_to_wait(place)):
            log.info("workload was deleted soon after it was created: key=%s again_in=%.0fs", place, seconds)
            self.retries.later(subject, seconds)
            return
        self._in_flight.add(place)
        self._tasks.create_task(self._perform(write, subject, place), name="queueing write")

    def _is_outdated(self, write: Write) -> bool:
        if isinstance(write, CreateWorkload):
            return _place(write) in self._created
        if isinstance(write, RemovePod) and write.subject.is_terminating:
            return True
        return self._outdated.get(write.subject.uid) == write.subject.resource_version

    async def _perform(self, write: Write, subject: ReconcileKey, place: str) -> None:
        try:
            await self._calls.perform(self._call(write))
        except Exception as error:
            self._in_flight.discard(place)
            self._failed(write, subject, error)
            return
        self._in_flight.discard(place)
        self._note_outdated(write)
        if isinstance(write, CreateWorkload):
            self._recreations.created(place)
        self.retries.succeeded(subject)
        if write.event is not None:
            self._events.record(write.event)
        self._on_over(subject)

    def _failed(self, write: Write, subject: ReconcileKey, error: Exception) -> None:
        if is_conflict(error) or is_not_found(error):
            # The watch will tell what has become of the object.
            self._note_outdated(write)
            self._on_over(subject)
            return
        log.warning("queueing write failed: subject=%s/%s error=%s", *subject, error)
        if isinstance(write, PatchObject):
            self._events.record(RecordEvent(write.subject, "FailedToChange", str(error), "Warning"))
        self.retries.failed(subject)

    def _note_outdated(self, write: Write) -> None:
        if isinstance(write, CreateWorkload):
            self._created.add(_place(write))
        else:
            self._outdated[write.subject.uid] = write.subject.resource_version

    def _call(self, write: Write) -> ApiCall:
        match write:
            case CreateWorkload():
                return WorkloadCreation(write.draft.manifest())
            case RemoveWorkload():
                return WorkloadDeletion(write.subject)
            case RemoveJob():
                return JobDeletion(write.subject)
            case RemovePod():
                now = rfc3339(self._clock.time())
                condition = PodCondition("TerminationTarget", "True", write.reason, write.message, 0, now)
                return VictimEviction(write.subject, condition)
            case PatchObject(subject=Workload() as workload):
                return WorkloadChange(workload.namespace, workload.name, workload.uid, write.patch)
            case PatchObject(subject=Pod() as pod):
                return PodRelease(pod, write.patch)
            case PatchObject(subject=Job() as job):
                return JobChange(job, write.patch, write.subresource)
            case PatchObject(subject=kept):
                return QueueingObjectChange(KINDS[_PLURALS[type(kept)]], kept.name, kept.uid, write.patch)
            case _:
                raise TypeError(f"there is no call for {write!r}")


def _place(write: Write) -> str:
    """Of two writes to one place the second waits until the first is over and seen."""
    match write:
        case CreateWorkload():
            return f"{write.draft.namespace}/{write.draft.name}"
        case RemoveWorkload() | RemoveJob():
            return f"{write.subject.uid}/deletion"
        case PatchObject() | RemovePod():
            return write.subject.uid
