"""Carries out steps: at most one write per object at a time, and none that is based on what is known to be outdated."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from pilotage.api.calls import ApiCall, CallSkipped, Outcome, is_conflict, is_not_found
from pilotage.api.conditions import PodCondition
from pilotage.calls.queueing_writes import (
    JobChange,
    JobDeletion,
    PodRelease,
    QueueingObjectChange,
    WorkloadChange,
    WorkloadCreation,
    WorkloadDeletion,
)
from pilotage.calls.synchronous_calls import Calls
from pilotage.calls.victim_eviction import VictimEviction
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
from pilotage.model.custom_jobs import CustomJob
from pilotage.model.kueue import AdmissionCheck, ClusterQueue, ResourceFlavor, Workload
from pilotage.model.pod import Pod
from pilotage.model.workloads import Job

log = logging.getLogger(__name__)

_PLURALS: Final = {
    ClusterQueue: "clusterqueues",
    ResourceFlavor: "resourceflavors",
    AdmissionCheck: "admissionchecks",
}

_CONFLICT_SECONDS: Final = 5.0
"""After a conflict the watch brings a newer version. If it has not done so by then, the write is tried again."""
_WRITTEN_SECONDS: Final = 120.0
"""The same after a success: one that changed nothing brings no version, and a watch may lose one."""

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
        self._outdated: dict[str, tuple[str, float]] = {}
        """uid -> the version that is known not to be the newest any more, and until when that is believed."""
        self._created: dict[str, float] = {}
        """Keys of workloads that exist by now although no watch has brought them yet, and until when to wait for it."""
        self._recreations = Recreations(clock)

    def seen(self, key: str) -> None:
        """A watch has brought the workload."""
        self._created.pop(key, None)

    def gone(self, uid: str) -> None:
        """There is no such object any more."""
        self._outdated.pop(uid, None)

    def carry_out(self, write: Write, subject: ReconcileKey) -> None:
        place = _place(write)
        if place in self._in_flight:
            return
        if isinstance(write, RemovePod) and write.subject.is_terminating:
            return
        if seconds := self._seconds_to_see(write):
            self.retries.later(subject, seconds)
            return
        if isinstance(write, CreateWorkload) and (seconds := self._recreations.seconds_to_wait(place)):
            log.info("workload was deleted soon after it was created: key=%s again_in=%.0fs", place, seconds)
            self.retries.later(subject, seconds)
            return
        call = self._call(write)
        self._in_flight.add(place)
        self._calls.submit(call, partial(self._over, write, subject, place))

    def _seconds_to_see(self, write: Write) -> float:
        """How long to wait for the watch before this is written; 0 if it is based on the newest that is known."""
        if isinstance(write, CreateWorkload):
            until = self._created.get(_place(write), 0.0)
        else:
            version, until = self._outdated.get(write.subject.uid, ("", 0.0))
            until = until if version == write.subject.resource_version else 0.0
        return max(0.0, until - self._clock.monotonic())

    def _over(self, write: Write, subject: ReconcileKey, place: str, outcome: Outcome) -> None:
        self._in_flight.discard(place)
        if not outcome.is_as_wanted:
            self._failed(write, subject, outcome.error or CallSkipped(str(outcome.why)))
            return
        self._note_outdated(write, self._clock.monotonic() + _WRITTEN_SECONDS)
        if isinstance(write, CreateWorkload):
            self._recreations.created(place)
        self.retries.succeeded(subject)
        if write.event is not None:
            self._events.record(write.event)
        self._on_over(subject)

    def _failed(self, write: Write, subject: ReconcileKey, error: Exception) -> None:
        if is_conflict(error) or is_not_found(error):
            # The watch will show what has become of the object.
            self._note_outdated(write, self._clock.monotonic() + _CONFLICT_SECONDS)
            self._on_over(subject)
            return
        log.warning("queueing write failed: subject=%s/%s error=%s", *subject, error)
        if isinstance(write, PatchObject):
            self._events.record(RecordEvent(write.subject, "FailedToChange", str(error), "Warning"))
        elif isinstance(write, CreateWorkload) and write.event is not None:
            text = f"The workload could not be created: {error}"
            self._events.record(RecordEvent(write.event.subject, "ErrWorkloadCompose", text, "Warning"))
        self.retries.failed(subject)

    def _note_outdated(self, write: Write, until: float) -> None:
        if isinstance(write, CreateWorkload):
            self._created[_place(write)] = until
        else:
            self._outdated[write.subject.uid] = (write.subject.resource_version, until)

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
            case PatchObject(subject=(Job() | CustomJob()) as job):
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
