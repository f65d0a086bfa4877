"""Events of scheduling, of plugins and of workload queueing, about any object; sent in the background."""

from __future__ import annotations

import math
import socket
from collections import deque
from collections.abc import Hashable

from pilotage.calls.event import EventCreation, EventFacts, Repetition, Subject
from pilotage.calls.recent_events import RecentEvent, RecentEvents
from pilotage.calls.synchronous_calls import Calls
from pilotage.clock import Clock, rfc3339_micro
from pilotage.model import Pod
from pilotage.model.names import reporting_instance

LONGEST_WAIT_SECONDS = 1.0
_ONCE = frozenset({"Scheduled"})
"""Reasons that a pod has once in its life: nothing can repeat them, so they need not be remembered."""


class EventRecorder:
    """Turns what happened into Event objects; never blocks and never fails the caller.

    What happens again about the same version of a pod makes the first Event a series (see `recent_events`). Events are
    the least of what is to be written, and there are more of them than of anything else: while pods wait for their
    turn, an Event may wait too, for `LONGEST_WAIT_SECONDS` at most. So a scheduler that is killed loses the Events of
    its last second and those that the API server has not answered; one that comes to an orderly end loses none.
    """

    def __init__(self, calls: Calls, clock: Clock) -> None:
        self._calls = calls
        self._clock = clock
        self._is_busy = False
        self._waiting: deque[tuple[float, EventCreation]] = deque()
        """Since when, and what; the oldest first."""
        self._host = socket.gethostname()
        self._last_nanos = 0
        self._recent: RecentEvents[tuple[Subject, EventFacts]] = RecentEvents(clock.monotonic())

    def record(self, pod: Pod, type_: str, reason: str, action: str, note: str, *, related: Pod | None = None) -> None:
        """An event about `pod`. `related` is the pod for whose sake it happened, if that is another one."""
        # Whose scheduler acts reports: a victim may belong to another one, or to none.
        self.record_about(pod, (related or pod).spec.scheduler_name, type_, reason, action, note, related=related)

    def record_about(
        self,
        subject: Subject,
        reporter: str,
        type_: str,
        reason: str,
        action: str,
        note: str,
        *,
        related: Pod | None = None,
    ) -> None:
        """An event about any object, as if this scheduler had reported it."""
        if reason in _ONCE:
            self._submit(EventCreation(subject, self._facts(type_, reason, action, note, reporter, related)))
            return
        key = (type_, action, reason, reporter, _mark(subject), None if related is None else _mark(related))
        now = self._clock.monotonic()
        recent = self._recent.again(key, now)
        if recent is None:
            facts = self._facts(type_, reason, action, note, reporter, related)
            self._submit(EventCreation(subject, facts))
            self._recent.add(key, (subject, facts), now)
        elif recent.count == 2:
            recent.count_written = recent.count
            self._write_series(recent)

    def record_new(self, subject: Subject, reporter: str, type_: str, reason: str, action: str, note: str) -> None:
        """An Event of its own, whatever was recorded before: each note says something else."""
        self._submit(EventCreation(subject, self._facts(type_, reason, action, note, reporter, None)))

    def tick(self) -> None:
        """Write what has waited for too long and the series whose time has come; to be called every second or so."""
        self.catch_up(is_busy=self._is_busy)
        for recent in self._recent.to_write(self._clock.monotonic()):
            self._write_series(recent)

    def quiet_seconds(self) -> float:
        """How long `tick` will have nothing to do."""
        return 0.0 if self._waiting or len(self._recent) else math.inf

    def catch_up(self, *, is_busy: bool) -> None:
        """Send what waits: everything or, while the scheduler is busy, what has waited for long enough."""
        self._is_busy = is_busy
        waiting = self._waiting
        latest = math.inf
        if is_busy and waiting:
            now = self._clock.monotonic()
            if waiting[0][0] > now - LONGEST_WAIT_SECONDS:
                return
            # Whatever can be sent with the oldest in one piece need not be sent by itself.
            latest = now - LONGEST_WAIT_SECONDS / 2
        while waiting and waiting[0][0] <= latest:
            self._calls.submit(waiting.popleft()[1])

    def _submit(self, creation: EventCreation) -> None:
        if self._is_busy:
            self._waiting.append((self._clock.monotonic(), creation))
        else:
            self._calls.submit(creation)

    def _write_series(self, recent: RecentEvent[tuple[Subject, EventFacts]]) -> None:
        age = self._clock.monotonic() - recent.last_seen
        series = Repetition(recent.count, rfc3339_micro(self._clock.time() - age))
        self._submit(EventCreation(*recent.written, series, is_new=False))

    def _facts(self, type_: str, reason: str, action: str, note: str, reporter: str, related: Pod | None) -> EventFacts:
        now = self._clock.time()
        # Two events of one nanosecond would have the same name.
        self._last_nanos = max(int(now * 1e9), self._last_nanos + 1)
        return EventFacts(
            type=type_,
            reason=reason,
            action=action,
            note=note,
            reporter=reporter,
            instance=reporting_instance(reporter, self._host),
            time=rfc3339_micro(now),
            name_suffix=f"{self._last_nanos:x}",
            related=related,
        )


class SilentRecorder(EventRecorder):
    """Records nothing: for simulations, where nobody reads Events."""

    def record_about(
        self,
        subject: Subject,
        reporter: str,
        type_: str,
        reason: str,
        action: str,
        note: str,
        *,
        related: Pod | None = None,
    ) -> None:
        """Nobody reads it."""

    def record_new(self, subject: Subject, reporter: str, type_: str, reason: str, action: str, note: str) -> None:
        """Nobody reads it."""


def _mark(subject: Subject) -> Hashable:
    """What makes a reference to an object the same: also its version, as in kube-scheduler's events."""
    return subject.uid or subject, subject.resource_version
