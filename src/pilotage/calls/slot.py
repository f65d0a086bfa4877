"""The place of one object's call: pending or in flight, with whoever waits for its outcome."""

from __future__ import annotations

import logging
from enum import Enum

import msgspec

from pilotage.api.calls import ApiCall, OnOutcome, Outcome

log = logging.getLogger(__name__)


class Place(Enum):
    """Where a call is."""

    READY = "ready"
    """In its lane, to be sent in turn."""
    BEHIND = "behind"
    """Its object has another call in flight."""
    RESTING = "resting"
    """A try failed; the next one is not due yet."""
    IN_FLIGHT = "in flight"
    OUT = "out"
    """It has its outcome."""


class CallSlot(msgspec.Struct, eq=False):
    """One call on its way. Merging changes the call and keeps the place."""

    key: str
    call: ApiCall
    on_outcome: tuple[OnOutcome, ...]
    since: float
    """When the newest part of the call was submitted."""
    place: Place = Place.READY
    tries: int = 0
    due: float = 0.0
    """When the next try may begin; for one that rests."""
    seen_version: str = ""
    """The newest version of the object that arrived while the call was in flight."""

    def tell(self, outcome: Outcome) -> None:
        for on_outcome in self.on_outcome:
            try:
                on_outcome(outcome)
            except Exception:
                # A listener's mistake must not stop the lane.
                log.exception("the outcome of an API call was not taken: call=%s object=%s", self.call.kind, self.key)
