"""Which API calls are to be sent: at most one pending and one in flight per object.

A pure state machine. A new call for an object that has a pending one replaces it, is merged with it, or is dropped,
by relevance (deletion > binding > status). Every call that was submitted gets exactly one outcome.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from pilotage.api.calls import ApiCall, Lane


class CallSkipped(Exception):
    """A more relevant call for the same object made this one pointless."""


OnOutcome = Callable[[Exception | None], None]


@dataclass(slots=True, eq=False)
class QueuedCall:
    call: ApiCall
    outcomes: list[OnOutcome] = field(default_factory=list)

    def finish(self, error: Exception | None) -> None:
        for tell in self.outcomes:
            tell(error)


class CallQueue:
    """Pending calls by lane and object, and the objects that have a call in flight."""

    def __init__(self) -> None:
        self._lanes: dict[Lane, OrderedDict[str, QueuedCall]] = {lane: OrderedDict() for lane in Lane}
        self._lane_of: dict[str, Lane] = {}
        self._in_flight: dict[str, QueuedCall] = {}

    def pending(self, lane: Lane) -> int:
        return len(self._lanes[lane])

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def is_idle(self) -> bool:
        return not self._lane_of and not self._in_flight

    def submit(self, call: ApiCall, on_outcome: OnOutcome) -> None:
        """Queue a call; `on_outcome` is told None (done) or what went wrong, exactly once."""
        key = call.object_key
        flying = self._in_flight.get(key)
        if flying is not None and flying.call.relevance > call.relevance:
            on_outcome(CallSkipped(f"{call.kind} is pointless during {flying.call.kind}"))
            return
        lane = self._lane_of.get(key)
        if lane is None:
            self._put(key, QueuedCall(call, [on_outcome]))
            return
        pending = self._lanes[lane][key]
        if pending.call.relevance > call.relevance:
            on_outcome(CallSkipped(f"{call.kind} is pointless before {pending.call.kind}"))
        elif pending.call.kind == call.kind:
            # The place in the lane is the object's: merging does not send it to the end.
            pending.call = pending.call.merged_with(call)
            pending.outcomes.append(on_outcome)
        else:
            del self._lanes[lane][key]
            self._put(key, QueuedCall(call, [on_outcome]))
            pending.finish(CallSkipped(f"{pending.call.kind} is overtaken by {call.kind}"))

    def next(self, lane: Lane) -> QueuedCall | None:
        """The oldest call of a lane whose object has none in flight; it is in flight from now on."""
        for key, queued in self._lanes[lane].items():
            if key not in self._in_flight:
                del self._lanes[lane][key]
                del self._lane_of[key]
                self._in_flight[key] = queued
                return queued
        return None

    def finish(self, queued: QueuedCall, error: Exception | None) -> Lane | None:
        """The call is done; returns the lane of the call that waited for it, None if none did."""
        key = queued.call.object_key
        del self._in_flight[key]
        queued.finish(error)
        return self._lane_of.get(key)

    def _put(self, key: str, queued: QueuedCall) -> None:
        lane = queued.call.lane
        self._lanes[lane][key] = queued
        self._lane_of[key] = lane

    def check(self) -> None:
        """Verify the invariants; for tests."""
        filed = {key: lane for lane, calls in self._lanes.items() for key in calls}
        assert filed == self._lane_of, "a pending call is in exactly one lane"
