"""What people are told of a group: its condition, and an Event when that changes."""

from __future__ import annotations

from pilotage.calls.event import shortened, subject_of
from pilotage.calls.pod_group_status import PodGroupStatusPatch
from pilotage.calls.recorder import EventRecorder
from pilotage.calls.synchronous_calls import Calls
from pilotage.clock import Clock, rfc3339
from pilotage.escaping import visible
from pilotage.model.meta import TimedCondition
from pilotage.model.pod_group import POD_GROUP_SCHEDULED, PodGroup

_REPORTER = "default-scheduler"
_LONGEST_MESSAGE = 32 * 1024


class GroupConditions:
    """Writes `PodGroupInitiallyScheduled`: once it is True it stays so."""

    def __init__(self, calls: Calls, recorder: EventRecorder, clock: Clock) -> None:
        self._calls = calls
        self._recorder = recorder
        self._clock = clock

    def scheduled(self, group: PodGroup) -> None:
        """Enough members have their nodes."""
        self._write(group, "True", "Scheduled", "")

    def rejected(self, group: PodGroup, message: str) -> None:
        self._write(group, "False", "Unschedulable", message)

    def failed(self, group: PodGroup, message: str) -> None:
        self._write(group, "False", "SchedulerError", message)

    def _write(self, group: PodGroup, status: str, reason: str, message: str) -> None:
        if group.has_started:
            return
        message = shortened(visible(message), _LONGEST_MESSAGE)
        now, generation = rfc3339(self._clock.time()), group.metadata.generation
        call = PodGroupStatusPatch(group, TimedCondition(POD_GROUP_SCHEDULED, status, reason, message, generation, now))
        if call.is_pointless():
            return
        self._calls.submit(call)
        type_, name = ("Normal", "Scheduled") if status == "True" else ("Warning", "FailedScheduling")
        note = message or "enough members have their nodes: their bindings begin"
        self._recorder.record_about(subject_of(group), _REPORTER, type_, name, "Scheduling", note)
