"""Which API calls are to be sent: at most one pending and one in flight per object.

A pure state machine; time comes from the caller.

    add --> READY ------ next -------> IN_FLIGHT -- done, failed --> out
     |        ^ due     (lane by lane)   |    |
     |     BACKOFF <------- retry -------+    | the call before it is over
     +--> BLOCKED (its object has a call in flight) --> READY

A new call for an object that has a pending one is skipped (it is less relevant), takes its place (it is more relevant),
or is merged with it (it is of the same kind). If nothing is left to be written after that, both go: so a change that
is taken back before it was sent is never sent. Behind a call in flight the new one is merged with a copy of it, because
that one may still fail; if it is done, the new one does not repeat it.

The submitter of a call that was merged into a newer one hears of it, unless calls of the kind join: then all wait for
the one call that does everything, and each hears what became of its own part. Parts in flight that are to be tried
again are put together with those that came meanwhile; parts that failed are not.

Objects that arrive by watch go through `sync`: pending calls learn what need not be written any more, and the object
comes back as it will be after all calls on their way, and all that were done but have not been seen yet.

While it is in doubt whether an earlier try took effect, no call of its kind is taken for pointless: what the API server
has is not known until it is read. Every submitted call gets its outcome exactly once, when the queue is in order
again.
"""

from __future__ import annotations

import heapq
import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import count
from typing import Any, Final, TypeAlias

import msgspec

from pilotage.api.calls import ApiCall, CallExpired, Ending, Lane, OnOutcome, Outcome, Seen, Why
from pilotage.calls.unobserved_writes import Unseen, is_at_least

log = logging.getLogger(__name__)

Waiter: TypeAlias = tuple[ApiCall, OnOutcome]
"""The call as it was submitted, and the callback for its outcome."""

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
    """The place of one object's call, with the waiters for its outcome. Merging changes the call and keeps the place.

    A call that was merged from several has a waiter for each that is still wanted: the part that was submitted, and
    the callback that gets its outcome.
    """

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
        """The call does what older ones were to do as well; returns the waiters whose part is not wanted any more."""
        self.waiters = (*(waiter for waiter in older if self.call.still_wants(waiter[0])), *self.waiters)
        return tuple(waiter for waiter in older if not self.call.still_wants(waiter[0]))

    def notify(self, outcome: Outcome) -> None:
        notify(self.waiters, outcome)

    def notify_done(self) -> None:
        if not self.call.joins:
            notify(self.waiters, _DONE)
            return
        for waiter in self.waiters:
            error = self.call.failure_of(waiter[0])
            notify((waiter,), _DONE if error is None else Outcome(Ending.FAILED, error=error))


def notify(waiters: tuple[Waiter, ...], outcome: Outcome) -> None:
    for call, on_outcome in waiters:
        try:
            on_outcome(outcome)
        except Exception:
            # A listener's mistake must not stop the lane.
            log.exception("the outcome of an API call was not taken: call=%s object=%s", call.kind, call.object_key)


class CallTypes:
    """Every kind of call and its relevance, as far as they have been used: two types must not share a kind.

    Plugins bring calls of their own; the first call of a kind registers its type. Calls are merged by kind, and metrics
    are counted by it, so that a second type of the same kind is a mistake that would show much later.
    """

    def __init__(self) -> None:
        self._by_kind: dict[str, type[ApiCall]] = {}

    def check(self, call: ApiCall) -> None:
        """Register the type of a call; TypeError if another type has its kind, or if it is not complete."""
        known = self._by_kind.get(call.kind)
        if known is not type(call):
            self._register(type(call), known)

    def relevances(self) -> dict[str, int]:
        return {kind: type_.relevance for kind, type_ in self._by_kind.items()}

    def lanes(self) -> dict[str, Lane]:
        return {kind: type_.lane for kind, type_ in self._by_kind.items()}

    def _register(self, type_: type[ApiCall], known: type[ApiCall] | None) -> None:
        name = f"{type_.__module__}.{type_.__qualname__}"
        if known is not None:
            other = f"{known.__module__}.{known.__qualname__}"
            raise TypeError(f'{name}: calls of the kind "{type_.kind}" are those of {other}; choose another kind')
        if not isinstance(type_.relevance, int):
            raise TypeError(f"{name}: relevance must be a number, such as Relevance.STATUS")
        self._by_kind[type_.kind] = type_


_NO_EFFECT = Outcome(Ending.SKIPPED, Why.NO_EFFECT)
_LESS_RELEVANT = Outcome(Ending.SKIPPED, Why.LESS_RELEVANT)
_OBJECT_GONE = Outcome(Ending.SKIPPED, Why.OBJECT_GONE)
_NEWER_CAME = Outcome(Ending.OVERWRITTEN, Why.NEWER_CAME)
_MORE_RELEVANT_CAME = Outcome(Ending.OVERWRITTEN, Why.MORE_RELEVANT_CAME)


class CallQueue:
    """Pending calls by lane and object, and the calls in flight."""

    def __init__(self) -> None:
        self.types = CallTypes()
        self._pending: dict[str, CallSlot] = {}
        self._in_flight: dict[str, CallSlot] = {}
        self._ready: dict[Lane, OrderedDict[str, CallSlot]] = {lane: OrderedDict() for lane in Lane}
        self._resting: list[tuple[float, int, CallSlot]] = []
        self._order = count()
        self._unseen = Unseen()
        self._doubts: dict[str, str] = {}
        """Object -> kind of the call that may have taken effect or not."""

    @property
    def is_idle(self) -> bool:
        return not self._pending and not self._in_flight

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def pending(self) -> int:
        return len(self._pending)

    def ready(self, lane: Lane) -> int:
        """How many calls of the lane could be sent now."""
        return len(self._ready[lane])

    def slots(self) -> Iterator[CallSlot]:
        """Everything on its way: first what is in flight."""
        yield from self._in_flight.values()
        yield from self._pending.values()

    # --- submission --------------------------------------------------------------------------------------------

    def add(self, call: ApiCall, on_outcome: OnOutcome, now: float) -> None:
        """Queue a call; `on_outcome` is called exactly once, perhaps before this returns."""
        self.types.check(call)
        key = call.object_key
        pending, flying = self._pending.get(key), self._in_flight.get(key)
        if pending is None and flying is None:
            if self._doubts.get(key) != call.kind and _is_pointless(call):
                on_outcome(_NO_EFFECT)
                return
            self._put(CallSlot(key, call, ((call, on_outcome),), now))
            return
        if any(rival is not None and rival.call.relevance > call.relevance for rival in (pending, flying)):
            on_outcome(_LESS_RELEVANT)
            return
        try:
            if pending is not None:
                self._add_to_pending(pending, call, on_outcome, now)
            elif flying is not None:
                self._add_behind(flying, call, on_outcome, now)
        except Exception as error:
            # A call type whose merging is broken: what waits already stays as it is.
            log.exception("API calls cannot be merged: call=%s object=%s", call.kind, key)
            on_outcome(Outcome(Ending.FAILED, error=error))

    def _add_to_pending(self, pending: CallSlot, call: ApiCall, on_outcome: OnOutcome, now: float) -> None:
        if pending.call.kind != call.kind:
            self._take_out(pending)
            self._keep_doubt_if_useful(pending)
            self._put(CallSlot(pending.key, call, ((call, on_outcome),), now))
            pending.notify(_MORE_RELEVANT_CAME)
            return
        merged, older = pending.call.merged_with(call), pending.waiters
        pending.call, pending.since, pending.waiters = merged, now, ((call, on_outcome),)
        superseded = pending.merge(older)
        if merged.goes_first and pending.place is Place.READY:
            self._make_ready(pending, first=True)
        is_over = self._goes_if_pointless(pending)
        notify(superseded, _NEWER_CAME)
        if is_over:
            pending.notify(_NO_EFFECT)

    def _add_behind(self, flying: CallSlot, call: ApiCall, on_outcome: OnOutcome, now: float) -> None:
        waiter = (call, on_outcome)
        if flying.call.kind != call.kind or (call.joins and not flying.call.admits(call)):
            self._put(CallSlot(flying.key, call, (waiter,), now))
        elif call.joins:
            flying.waiters += (waiter,)
        else:
            self._put(CallSlot(flying.key, flying.call.merged_with(call), (waiter,), now))

    # --- sending -----------------------------------------------------------------------------------------------

    def next(self, lane: Lane) -> CallSlot | None:
        """The call of a lane whose turn it is, most often the oldest; it is in flight from now on."""
        ready = self._ready[lane]
        if not ready:
            return None
        key, slot = ready.popitem(last=False)
        del self._pending[key]
        slot.place = Place.IN_FLIGHT
        slot.tries += 1
        slot.seen_version = ""
        self._in_flight[key] = slot
        return slot

    def peek(self, lane: Lane) -> CallSlot | None:
        """The call that `next` would return."""
        return next(iter(self._ready[lane].values()), None)

    def is_in_doubt(self, slot: CallSlot) -> bool:
        """Whether an earlier try of such a call may have taken effect. Then the object is read first."""
        return self._doubts.get(slot.key) == slot.call.kind

    def looked(self, slot: CallSlot, seen: Seen) -> None:
        """The object was read: the call knows what the API server has, if that could be found out."""
        if seen.has_happened is not None:
            self._doubts.pop(slot.key, None)
        found = seen.object
        if found is not None and not is_at_least(slot.seen_version, found.resource_version):
            self._unseen.add_object(slot.key, found)

    def done(self, slot: CallSlot, version: str | None = None) -> Lane | None:
        """The call was done, and made this version of the object; returns the lane of the call that waited for it."""
        self._land(slot)
        key, call = slot.key, slot.call
        if self._doubts and self.is_in_doubt(slot):
            del self._doubts[key]
        is_seen = version is not None and is_at_least(slot.seen_version, version)
        if version is not None and not is_seen:
            self._unseen.add_change(key, version, call.applied_to)
        lane, follower = None, self._pending.get(key)
        if follower is not None:
            if follower.call.kind == call.kind and not is_seen:
                follower.call.follow(call)
            lane = self._release(follower)
        slot.notify_done()
        return lane

    def failed(self, slot: CallSlot, error: Exception, *, is_in_doubt: bool = False) -> Lane | None:
        """The call failed for good; returns the lane of the call that waited for it."""
        self._land(slot)
        if is_in_doubt and _can_be_pointless(slot.call):
            self._doubts[slot.key] = slot.call.kind
        lane = self._release(self._pending.get(slot.key))
        slot.notify(Outcome(Ending.FAILED, error=error))
        return lane

    def retry(self, slot: CallSlot, due: float, *, is_in_doubt: bool) -> Lane | None:
        """The call is to be tried again when `due`; returns the lane of a call that is to be sent instead, at once."""
        self._land(slot)
        if is_in_doubt:
            self._doubts[slot.key] = slot.call.kind
        follower = self._pending.get(slot.key)
        if follower is None:
            self._pending[slot.key] = slot
            self._rest(slot, due)
            return None
        if follower.call.kind == slot.call.kind:
            # It says everything that this one says, or will now, and would meet the same difficulty.
            if slot.call.joins:
                follower.call = slot.call.merged_with(follower.call)
            superseded = follower.merge(slot.waiters)
            follower.tries = slot.tries
            self._rest(follower, due)
            notify(superseded, _NEWER_CAME)
            return None
        self._keep_doubt_if_useful(slot)
        lane = self._release(follower)
        slot.notify(_MORE_RELEVANT_CAME)
        return lane

    def wake(self, now: float) -> set[Lane]:
        """Make ready what has rested long enough; returns the lanes that it belongs to."""
        woken = set()
        while self._resting and (self._resting[0][0] <= now or not self._is_resting(*self._resting[0])):
            due, _, slot = heapq.heappop(self._resting)
            if self._is_resting(due, 0, slot):
                self._make_ready(slot, first=True)
                woken.add(slot.call.lane)
        return woken

    def next_due(self) -> float | None:
        """When the next call has rested long enough; None if none rests."""
        while self._resting and not self._is_resting(*self._resting[0]):
            heapq.heappop(self._resting)
        return self._resting[0][0] if self._resting else None

    def expire(self, now: float, patience: Mapping[Lane, float]) -> int:
        """Give up calls at the heads of the lanes, and resting ones, that are older than their lane allows."""
        old = []
        for lane, ready in self._ready.items():
            for slot in ready.values():
                if now - slot.since <= patience[lane]:
                    break
                old.append(slot)
        old += [s for due, n, s in self._resting if self._is_resting(due, n, s)]
        expired = [slot for slot in old if now - slot.since > patience[slot.call.lane]]
        for slot in expired:
            self._take_out(slot)
        for slot in expired:
            error = CallExpired(f"{slot.call.kind} of {slot.key} was not done after {now - slot.since:.0f} s")
            self._keep_doubt_if_useful(slot)
            slot.notify(Outcome(Ending.FAILED, error=error))
        return len(expired)

    def drop(self, error: Exception) -> list[CallSlot]:
        """Give up everything that is pending; returns it."""
        dropped = list(self._pending.values())
        for slot in dropped:
            self._take_out(slot)
        for slot in dropped:
            slot.notify(Outcome(Ending.FAILED, error=error))
        return dropped

    # --- objects -----------------------------------------------------------------------------------------------

    def sync(self, key: str, obj: Any) -> Any:
        """An object arrived by watch; returns it as it will be after the calls on their way."""
        pending, flying = self._pending.get(key), self._in_flight.get(key)
        if pending is None and flying is None and key not in self._unseen.keys:
            return obj
        version = obj.resource_version
        self._unseen.arrived(key, version)
        try:
            known = self._unseen.laid_over(key, obj)
            if flying is not None:
                flying.seen_version = version
                flying.call.rebase(known)
            if pending is not None:
                pending.call.rebase(known)
        except Exception:
            log.exception("an API call cannot take in a new version of its object: object=%s", key)
        if pending is not None and self._goes_if_pointless(pending):
            pending.notify(_NO_EFFECT)
        return self.shown(key, obj)

    def shown(self, key: str, obj: Any) -> Any:
        """The object as it will be after the calls on their way, and after those that it does not show yet."""
        try:
            obj = self._unseen.laid_over(key, obj)
            if (flying := self._in_flight.get(key)) is not None:
                obj = flying.call.applied_to(obj)
            if (pending := self._pending.get(key)) is not None:
                obj = pending.call.applied_to(obj)
        except Exception:
            log.exception("an API call cannot be applied to its object: object=%s", key)
        return obj

    def forget(self, key: str) -> None:
        """The object is gone: what is still to be written to it is not sent."""
        self._unseen.forget(key)
        self._doubts.pop(key, None)
        pending = self._pending.get(key)
        if pending is not None:
            self._take_out(pending)
            pending.notify(_OBJECT_GONE)

    # --- inside ------------------------------------------------------------------------------------------------

    def _put(self, slot: CallSlot) -> None:
        self._pending[slot.key] = slot
        if slot.key in self._in_flight:
            slot.place = Place.BLOCKED
        else:
            self._make_ready(slot, first=slot.call.goes_first)

    def _make_ready(self, slot: CallSlot, *, first: bool) -> None:
        slot.place = Place.READY
        ready = self._ready[slot.call.lane]
        ready[slot.key] = slot
        if first:
            ready.move_to_end(slot.key, last=False)

    def _rest(self, slot: CallSlot, due: float) -> None:
        slot.place, slot.due = Place.BACKOFF, due
        heapq.heappush(self._resting, (due, next(self._order), slot))

    def _is_resting(self, due: float, _: int, slot: CallSlot) -> bool:
        return slot.place is Place.BACKOFF and slot.due == due

    def _take_out(self, slot: CallSlot) -> None:
        del self._pending[slot.key]
        if slot.place is Place.READY:
            del self._ready[slot.call.lane][slot.key]
        slot.place = Place.OUT

    def _land(self, slot: CallSlot) -> None:
        del self._in_flight[slot.key]
        slot.place = Place.OUT

    def _release(self, follower: CallSlot | None) -> Lane | None:
        """Nothing of its object is in flight any more."""
        if follower is None:
            return None
        self._make_ready(follower, first=follower.call.goes_first)
        if self._goes_if_pointless(follower):
            follower.notify(_NO_EFFECT)
            return None
        return follower.call.lane

    def _goes_if_pointless(self, slot: CallSlot) -> bool:
        if slot.place is Place.BLOCKED or self.is_in_doubt(slot) or not _is_pointless(slot.call):
            return False
        self._take_out(slot)
        return True

    def _keep_doubt_if_useful(self, slot: CallSlot) -> None:
        """A call in doubt will not be sent any more. Only one that could be taken for pointless needs to know."""
        if self.is_in_doubt(slot) and not _can_be_pointless(slot.call):
            del self._doubts[slot.key]

    def check(self) -> None:
        """Verify the invariants; for tests."""
        filed = {key: slot for ready in self._ready.values() for key, slot in ready.items()}
        assert sum(map(len, self._ready.values())) == len(filed), "a call is in one lane"
        resting = {slot.key: slot for due, n, slot in self._resting if self._is_resting(due, n, slot)}
        behind = {key: slot for key, slot in self._pending.items() if slot.place is Place.BLOCKED}
        assert filed | resting | behind == self._pending, "a pending call has exactly one place"
        assert len(filed) + len(resting) + len(behind) == len(self._pending), "and only one"
        assert all(slot.place is Place.READY for slot in filed.values())
        assert all(slot.place is Place.IN_FLIGHT for slot in self._in_flight.values())
        assert all(key in self._in_flight for key in behind), "nothing waits for a call that is over"
        assert not (filed.keys() | resting.keys()) & self._in_flight.keys(), "an object has one call in flight"
        for slot in self.slots():
            assert slot.key == slot.call.object_key and slot.waiters, "every call has a waiter"


def _can_be_pointless(call: ApiCall) -> bool:
    return type(call).is_pointless is not ApiCall.is_pointless


def _is_pointless(call: ApiCall) -> bool:
    try:
        return call.is_pointless()
    except Exception:
        log.exception("cannot find out whether an API call is pointless: call=%s object=%s", call.kind, call.object_key)
        return False
