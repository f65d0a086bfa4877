"""Events about workloads, jobs and pods, sent in the background under Kueue's reasons."""

from __future__ import annotations

import socket
from typing import Protocol

from pilotage.api.calls import ApiCall, OnOutcome
from pilotage.calls.object_event import ObjectEvent, ObjectEventFacts, Regarding
from pilotage.clock import Clock, rfc3339_micro
from pilotage.jobs.controller.steps import EventSubject, RecordEvent
from pilotage.jobs.effects import Event
from pilotage.model.names import reporting_instance
from pilotage.model.pod import Pod
from pilotage.model.workloads import Job

REPORTER = "pilotage-workload-queueing"


class ApiCalls(Protocol):
    """The way out: the dispatcher."""

    def submit(self, call: ApiCall, on_outcome: OnOutcome | None = None) -> None: ...
    async def perform(self, call: ApiCall) -> None: ...


class ObjectEventRecorder:
    """Never blocks and never fails the caller; what was said about an object last is not said again at once."""

    def __init__(self, calls: ApiCalls, clock: Clock) -> None:
        self._calls = calls
        self._clock = clock
        self._host = socket.gethostname()
        self._last_nanos = 0
        self._last: dict[str, tuple[str, str]] = {}

    def forget(self, uid: str) -> None:
        self._last.pop(uid, None)

    def record(self, event: RecordEvent) -> None:
        regarding = _regarding(event.subject)
        if event.type == "Warning" or event.is_recorded_once:
            # Warnings too are found again with every look at the object.
            if self._last.get(regarding.uid) == (event.reason, event.message):
                return
            self._last[regarding.uid] = (event.reason, event.message)
        self._send(regarding, event.type, event.reason, event.message)

    def record_of_engine(self, event: Event) -> None:
        namespace, _, name = event.key.rpartition("/")
        regarding = Regarding("kueue.x-k8s.io/v1beta2", "Workload", namespace, name, event.uid)
        self._send(regarding, event.type, event.reason, event.message)

    def _send(self, regarding: Regarding, type_: str, reason: str, message: str) -> None:
        now = self._clock.time()
        # Two events of one nanosecond would have the same name.
        self._last_nanos = max(int(now * 1e9), self._last_nanos + 1)
        facts = ObjectEventFacts(
            type=type_,
            reason=reason,
            action=reason,
            note=message,
            reporter=REPORTER,
            instance=reporting_instance(REPORTER, self._host),
            time=rfc3339_micro(now),
            name_suffix=f"{self._last_nanos:x}",
        )
        self._calls.submit(ObjectEvent(regarding, facts))


def _regarding(subject: EventSubject) -> Regarding:
    match subject:
        case Job():
            kind, api_version = "Job", "batch/v1"
        case Pod():
            kind, api_version = "Pod", "v1"
        case _:
            kind, api_version = type(subject).__name__, "kueue.x-k8s.io/v1beta2"
    return Regarding(api_version, kind, subject.namespace, subject.name, subject.uid)
