"""Events about pods, sent in the background."""

from __future__ import annotations

import socket

from pilotage.calls.dispatcher import Dispatcher
from pilotage.calls.event import EventCreation, EventFacts
from pilotage.clock import Clock, rfc3339_micro
from pilotage.model import Pod


class EventRecorder:
    """Turns what happened into Event objects; never blocks and never fails the caller."""

    def __init__(self, dispatcher: Dispatcher, clock: Clock) -> None:
        self._dispatcher = dispatcher
        self._clock = clock
        self._host = socket.gethostname()
        self._last_nanos = 0

    def record(self, pod: Pod, type_: str, reason: str, action: str, note: str, *, related: Pod | None = None) -> None:
        """An event about `pod`. `related` is the pod for whose sake it happened, if that is another one."""
        now = self._clock.time()
        # Two events of one nanosecond would have the same name.
        self._last_nanos = max(int(now * 1e9), self._last_nanos + 1)
        # Whose scheduler acts reports: a victim may belong to another one, or to none.
        reporter = (related or pod).spec.scheduler_name
        facts = EventFacts(
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
        self._dispatcher.submit(EventCreation(pod, facts))
