"""Events about pods, sent in the background."""

from __future__ import annotations

import math
import socket
from collections import deque
from collections.abc import Hashable

from pilotage.calls.dispatcher import Dispatcher
from pilotage.calls.event import EventCreation, EventFacts, Repetition
from pilotage.calls.recent_events import RecentEvent, RecentEvents
from pilotage.clock import Clock, rfc3339_micro
from pilotage.model import Pod

LONGEST_WAIT_SECONDS = 1.0
_ONCE = frozenset({"Scheduled"})
"""Reasons that a pod has once in its life: nothing can repeat them, so they need not be remembered."""


class EventRecorder:
    """Turns what happened into Event objects; never blocks and never fails the caller.

    What happens again about the same version of a pod makes the first Event a series (see `recent_events`). Events are
    the least of what is to be written, and there are more of them than of anything else: while pods wait for their
    turn, an Event may wait too, but not for long.
    """

    def __init__(self, dispatcher: Dispatcher, clock: Clock) -> None:
        self._dispatcher = dispatcher
        self._clock = clock
        self._is_busy = False
        self._waiting: deque[tuple[float, EventCreation]] = deque()
        """Since when, and what; the oldest first."""
        self._host = socket.gethostname()
        self._last_nanos = 0
        self._recent: RecentEvents[tuple[Pod, EventFacts]] = RecentEvents(clock.monotonic())

    def record(self, pod: Pod, type_: str, reason: str, action: str, note: str, *, related: Pod | None = None) -> None:
        """An event about `pod`. `related` is the pod for whose sake it happened, if that is another one."""
        # Whose scheduler acts reports: a victim may belong to another one, or to none.
        reporter = (related or pod).spec.scheduler_name
        if reason in _ONCE:
            self._create(pod, self._facts(type_, reason, action, note, reporter, related))
            return
        key = (type_, action, reason, reporter, _mark(pod), None if related is None else _mark(related))
        now = self._clock.monotonic()
        recent = self._recent.again(key, now)
        if recent is None:
            facts = self._facts(type_, reason, action, note, reporter, related)
            self._create(pod, facts)
            self._recent.add(key, (pod, facts), now)
        elif recent.count == 2:
            recent.count_written = recent.count
            self._write_series(recent)

    def tick(self) -> None:
        """Write what has waited for too long and the series whose time has come; to be called every second or so."""
        self.catch_up(is_busy=self._is_busy)
        for recent in self._recent.to_write(self._clock.monotonic()):
            self._write_series(recent)

    def catch_up(self, *, is_busy: bool) -> None:
        """Send what waits: everything or, while the scheduler is busy, what has waited for long enough."""
        self._is_busy = is_busy
        waiting = self._waiting
        latest = self._clock.monotonic() - LONGEST_WAIT_SECONDS if is_busy and waiting else math.inf
        while waiting and waiting[0][0] <= latest:
            self._dispatcher.submit(waiting.popleft()[1])

    def _submit(self, creation: EventCreation) -> None:
        if self._is_busy:
            self._waiting.append((self._clock.monotonic(), creation))
        else:
            self._dispatcher.submit(creation)

    def _create(self, pod: Pod, facts: EventFacts) -> None:
        self._submit(EventCreation(pod, facts))

    def _write_series(self, recent: RecentEvent[tuple[Pod, EventFacts]]) -> None:
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
            instance=f"{reporter}-{self._host}",
            time=rfc3339_micro(now),
            name_suffix=f"{self._last_nanos:x}",
            related=related,
        )


def _mark(pod: Pod) -> Hashable:
    """What makes a reference to a pod the same: also its version, as in kube-scheduler's events."""
    return pod.uid, pod.resource_version
