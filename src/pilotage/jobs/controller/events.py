"""Which Events workload queueing records about workloads, jobs and pods: under Kueue's reasons, and nothing twice."""

from __future__ import annotations

from pilotage.api.calls import ObjectReference
from pilotage.calls.event import subject_of
from pilotage.calls.recorder import EventRecorder
from pilotage.jobs.controller.steps import RecordEvent
from pilotage.jobs.effects import Event

REPORTER = "pilotage-workload-queueing"


class QueueingEvents:
    """What was said last about an object is not said again at once."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._last: dict[str, tuple[str, str]] = {}

    def forget(self, uid: str) -> None:
        self._last.pop(uid, None)

    def record(self, event: RecordEvent) -> None:
        uid, said = event.subject.uid, (event.reason, event.message)
        if event.type == "Warning" or event.is_recorded_once:
            # Warnings too are found again with every look at the object.
            if self._last.get(uid) == said:
                return
            self._last[uid] = said
        self._recorder.record_new(
            subject_of(event.subject), REPORTER, event.type, event.reason, event.reason, event.message
        )

    def record_of_engine(self, event: Event) -> None:
        namespace, _, name = event.key.rpartition("/")
        workload = ObjectReference("kueue.x-k8s.io/v1beta2", "Workload", namespace, name, event.uid)
        self._recorder.record_new(workload, REPORTER, event.type, event.reason, event.reason, event.message)
