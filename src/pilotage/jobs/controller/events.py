"""Which Events workload queueing records about workloads, jobs and pods: under Kueue's reasons, and nothing twice."""

from __future__ import annotations

from pilotage.api.calls import ObjectReference
from pilotage.calls.event import subject_of
from pilotage.calls.recorder import EventRecorder
from pilotage.jobs.controller.steps import RecordEvent
from pilotage.jobs.effects import Event
from pilotage.model.pod import Pod

REPORTER = "pilotage-workload-queueing"


class QueueingEvents:
    """What was said last about an object is not said again at once."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._last: dict[str, dict[str, str]] = {}
        """By the uid of an object: what was said under each reason."""

    def forget(self, uid: str) -> None:
        self._last.pop(uid, None)

    def record(self, event: RecordEvent) -> None:
        said = self._last.setdefault(event.subject.uid, {}) if self._may_repeat(event) else None
        if said is not None:
            if said.get(event.reason) == event.message:
                return
            said[event.reason] = event.message
        self._recorder.record_new(
            subject_of(event.subject), REPORTER, event.type, event.reason, event.reason, event.message
        )

    def warn(self, subject: Pod, reason: str, message: str) -> None:
        """About an object that is not kept, and may be seen again and again."""
        self._recorder.record_about(subject, REPORTER, "Warning", reason, reason, message)

    @staticmethod
    def _may_repeat(event: RecordEvent) -> bool:
        """Warnings too are found again with every look at the object."""
        return event.type == "Warning" or event.is_recorded_once

    def record_of_engine(self, event: Event) -> None:
        namespace, _, name = event.key.rpartition("/")
        workload = ObjectReference("kueue.x-k8s.io/v1beta2", "Workload", namespace, name, event.uid)
        self._recorder.record_new(workload, REPORTER, event.type, event.reason, event.reason, event.message)
