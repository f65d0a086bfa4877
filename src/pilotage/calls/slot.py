"""The place of one object's call: pending or in flight, with whoever waits for its outcome.

A call that was merged from several has a waiter for each that is still wanted: the part that was submitted, and who is
to be told what became of it.
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import Final, TypeAlias

import msgspec

from pilotage.api.calls import ApiCall, Ending, OnOutcome, Outcome

log = logging.getLogger(__name__)

Waiter: TypeAlias = tuple[ApiCall, OnOutcome]
"""The call as it was submitted, and who is told its outcome."""

_DONE: Final = Outcome(Ending.DONE)


class Place(Enum):
    """Where a call is."""

    READY = "ready"
    """In its lane, to be sent in turn."""
    BLOCKED = "behind"
    """Its object has another call in flight."""
    BACKOFF = "resting"
    """A try failed; the next one is not due yet."""
    IN_FLIGHT = "in flight"
    OUT = "out"
    """It has its outcome."""


class CallSlot(msgspec.Struct, eq=False):
    """One call on its way. Merging changes the call and keeps the place."""

    key: str
    call: ApiCall
    waiters: tuple[Waiter, ...]
    since: float
    """When the newest part of the call was submitted."""
    place: Place = Place.READY
    tries: int = 0
    due: float = 0.0
    """When the next try may begin; for one that rests."""
    seen_version: str = ""
    """The newest version of the object that arrived while the call was in flight."""

    def merge(self, older: tuple[Waiter, ...]) -> tuple[Waiter, ...]:
        """The call does what older ones were to do as well; returns whoever wanted what is not wanted any more."""
        self.waiters = (*(waiter for waiter in older if self.call.still_wants(waiter[0])), *self.waiters)
        return tuple(waiter for waiter in older if not self.call.still_wants(waiter[0]))

    def tell(self, outcome: Outcome) -> None:
        tell(self.waiters, outcome)

    def tell_done(self) -> None:
        if not self.call.joins:
            tell(self.waiters, _DONE)
            return
        for waiter in self.waiters:
            error = self.call.failure_of(waiter[0])
            tell((waiter,), _DONE if error is None else Outcome(Ending.FAILED, error=error))


def tell(waiters: tuple[Waiter, ...], outcome: Outcome) -> None:
    for call, on_outcome in waiters:
        try:
            on_outcome(outcome)
        except Exception:
            # A listener's mistake must not stop the lane.
            log.exception("the outcome of an API call was not taken: call=%s object=%s", call.kind, call.object_key)
