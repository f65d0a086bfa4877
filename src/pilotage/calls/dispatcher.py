"""Sends the calls of the queue, several at a time, each lane with its own workers.

Lanes do not wait for each other: a thousand status patches cannot hold up a binding. Only Events make way: while a
binding or an eviction waits for a worker they are sent one at a time, because all share the API server. If a
client-side limit is set, it is shared in the order of the lanes. Failed tries that may succeed later rest in the queue,
not in a worker, so that a newer call can take their place meanwhile. Events that wait are sent in one piece, some at a
time, and answered one after the other. An answer that was lost, or does not come for too
long, is made up for by looking at the object, before anything else is sent for it.

    submit -> CallQueue -> worker of the lane -> perform -> done | failed | retry (rest, look, again)
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from pilotage.api.calls import ApiCall, ApiWriter, CallDropped, Ending, Lane, NewObject, OnOutcome, Outcome
from pilotage.calls.call_queue import CallQueue, CallSlot, Place
from pilotage.calls.fenced_writer import bundling_writer
from pilotage.calls.report import CallsReport, calls_report
from pilotage.calls.retry import (
    DEFAULT_POLICIES,
    LanePolicy,
    NotDone,
    Verdict,
    is_lost,
    is_throttled,
    judge,
    retry_after,
)
from pilotage.calls.token_bucket import TokenBucket
from pilotage.clock import Clock, SystemClock
from pilotage.rng import seeded

log = logging.getLogger(__name__)

_EXPIRY_SECONDS: Final = 5.0
_STOP_POLL_SECONDS: Final = 0.02
_SLOW_SECONDS: Final = 1.0
_SLOW_FACTOR: Final = 3.0
_SMOOTHING: Final = 0.1
_FORGETTING: Final = 1.001
"""The quickest answer is forgotten slowly, in case the server has become slower for good."""
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 5.0
_DEFAULT_RETRY_AFTER: Final = 1.0
_KEPT_CALLS: Final = 4096
_LONGEST_ERROR: Final = 300

OnExecuted = Callable[[str, bool, float], None]
"""Called after every try: the kind of the call, whether it succeeded, and how many seconds it took."""


@dataclass(frozen=True, slots=True)
class DispatcherSettings:
    """What can be chosen about sending."""

    policies: Mapping[Lane, LanePolicy] = field(default_factory=lambda: DEFAULT_POLICIES)
    calls_per_second: float = 0.0
    """0: no limit but those of the lanes."""
    burst: int = 1
    gather_seconds: float = 0.0
    """How long a call that can be sent together with others waits for them. A server in this process answers at once,
    and nothing is gained."""


class EndedCall(msgspec.Struct, frozen=True):
    """A try of a call that has ended."""

    time: float
    kind: str
    error: str
    """"" if it was done."""
    seconds: float


class _Try(msgspec.Struct, eq=False):
    """A call that waits for its answer."""

    lane: Lane
    started: float
    task: asyncio.Task[object] | None
    is_overdue: bool = False


class Dispatcher:
    """Runs inside `run()`; everything else may be called at any time from the same event loop."""

    def __init__(
        self,
        writer: ApiWriter,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        settings: DispatcherSettings | None = None,
        on_executed: OnExecuted | None = None,
    ) -> None:
        settings = settings or DispatcherSettings()
        self.writer = writer
        self.queue = CallQueue()
        self._clock = clock or SystemClock()
        self._rng = rng or seeded(0)
        self._policies = settings.policies
        self._patience = {lane: policy.queue_seconds for lane, policy in settings.policies.items()}
        self._limits = {lane: LaneLimit(policy.workers) for lane, policy in settings.policies.items()}
        self._bucket = (
            TokenBucket(settings.calls_per_second, settings.burst, self._clock.monotonic())
            if settings.calls_per_second > 0
            else None
        )
        self._gather_seconds = settings.gather_seconds
        self._on_executed = on_executed
        self._ended: deque[tuple[float, str, tuple[str, str, float]]] = deque(maxlen=_KEPT_CALLS)
        """Of the last tries: when they ended, the object, and kind, error and seconds."""
        self._workers = dict.fromkeys(Lane, 0)
        self._busy = dict.fromkeys(Lane, 0)
        """Workers that have a call in flight; the others are on their way to the next."""
        self._tries: dict[str, _Try] = {}
        """What is in flight, by object."""
        self._group: asyncio.TaskGroup | None = None
        self._alarm: asyncio.Task[None] | None = None
        self._alarm_at = 0.0

    def ended_of(self, key: str) -> list[EndedCall]:
        """The tries of calls about an object that ended not long ago, oldest first."""
        return [EndedCall(time, *facts) for time, about, facts in self._ended if about == key]

    # --- for all callers ---------------------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        return self.queue.is_idle

    def submit(self, call: ApiCall, on_outcome: OnOutcome | None = None) -> None:
        """Send a call as soon as its lane and its object are free."""
        self.queue.add(call, on_outcome or _log_failure(call), self._clock.monotonic())
        self._start_worker(call.lane)

    async def perform(self, call: ApiCall) -> None:
        """Send a call and wait; returns if the API server has what it would write, raises what went wrong if not."""
        ended: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def report(outcome: Outcome) -> None:
            if not ended.done():
                ended.set_result(outcome)

        self.submit(call, report)
        outcome = await ended
        if outcome.ending is not Ending.DONE:
            outcome.raise_if_not_as_wanted(call)

    def allowed(self, lane: Lane) -> int:
        """How many calls of the lane may be in flight at once at present."""
        return self._limits[lane].allowed

    def report(self, limit: int) -> CallsReport:
        return calls_report(self.queue, self._clock.monotonic(), limit, {lane: self.allowed(lane) for lane in Lane})

    # --- life --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Own the workers until cancelled."""
        async with asyncio.TaskGroup() as group:
            self.open(group)
            try:
                await self._give_up_old_calls()
            finally:
                self._group = None

    def open(self, group: asyncio.TaskGroup) -> None:
        """Send calls from now on, in tasks of this group."""
        self._group = group
        for lane in Lane:
            self._start_worker(lane)

    async def stop(self, grace_seconds: float) -> dict[str, int]:
        """Let calls finish for a while, give up the rest; returns how many of each kind were given up."""
        end = self._clock.monotonic() + grace_seconds
        while not self.is_idle and self._clock.monotonic() < end:
            await self._clock.sleep(min(_STOP_POLL_SECONDS, grace_seconds))
        return self.abandon("the scheduler ends")

    def abandon(self, why: str) -> dict[str, int]:
        """Give up everything that has no answer, and log it; returns how many calls of each kind that were."""
        flying = Counter(slot.call.kind for slot in self.queue.slots())
        self.queue.drop(CallDropped(why))
        if flying:
            log.warning("API calls were not finished: %s", " ".join(f"{kind}={n}" for kind, n in flying.items()))
        return dict(flying)

    # --- workers -----------------------------------------------------------------------------------------------

    def _start_worker(self, lane: Lane) -> None:
        """See to it that a worker is on the way to the lane, if there is something to do and room for one more."""
        has_room = self._workers[lane] == self._busy[lane] < self._room(lane)
        if has_room and self._group is not None and self.queue.ready(lane):
            self._workers[lane] += 1
            self._group.create_task(self._work(lane), name=f"api calls: {lane.value}")

    def _room(self, lane: Lane) -> int:
        """How many workers the lane may have now."""
        if self._policies[lane].makes_way and (self.queue.ready(Lane.BIND) or self.queue.ready(Lane.EVICT)):
            return 1
        return self._limits[lane].allowed

    async def _work(self, lane: Lane) -> None:
        """Send calls of the lane until none is left, or no more may be sent for now."""
        worker = asyncio.current_task()
        try:
            await self._gather(lane)
            while (slot := self._next(lane)) is not None:
                self._busy[lane] += 1
                try:
                    # Before it waits: one worker calls the next, as long as there is work. Calls that are answered at
                    # once, as by a server in this process, need no more than two.
                    together = self._together(lane, slot)
                    self._start_worker(lane)
                    if together:
                        waiting = await self._send_together(lane, together, worker)
                    else:
                        waiting = {await self._send(lane, slot, worker)}
                finally:
                    self._busy[lane] -= 1
                await self._gather(lane)
                for other in waiting:
                    if other is not None and other is not lane:
                        # Its workers found nothing to do and went home.
                        self._start_worker(other)
        finally:
            self._workers[lane] -= 1

    async def _gather(self, lane: Lane) -> None:
        """Wait a moment for calls that can be sent in one piece with those that wait."""
        if self._gather_seconds and 0 < self.queue.ready(lane) < self._policies[lane].together:
            await self._clock.sleep(self._gather_seconds)

    def _next(self, lane: Lane) -> CallSlot | None:
        """The call to send now, None if there is none or none may be sent; then an alarm brings the worker back."""
        limit = self._limits[lane]
        if self._workers[lane] > 1 and self._policies[lane].makes_way and self._workers[lane] > self._room(lane):
            return None
        if limit.is_troubled or self._bucket is not None:
            if not self.queue.ready(lane):
                return None
            now = self._clock.monotonic()
            if limit.paused_until > now:
                self._wake_at(limit.paused_until)
                return None
            if self._workers[lane] > limit.allowed:
                return None
            if self._bucket is not None and (self._is_outranked(lane, now) or not self._bucket.take(now)):
                self._wake_at(self._bucket.next_at(now))
                return None
        return self.queue.next(lane)

    def _is_outranked(self, lane: Lane, now: float) -> bool:
        """Whether a lane ahead of this one wants the next token."""
        for other in Lane:
            if other is lane:
                return False
            has_room = self._busy[other] < self._limits[other].allowed and self._limits[other].paused_until <= now
            if has_room and self.queue.ready(other):
                return True
        return False

    async def _send(self, lane: Lane, slot: CallSlot, worker: asyncio.Task[object] | None) -> Lane | None:
        """One try; returns the lane of a call that waited for it."""
        call, key, queue, monotonic = slot.call, slot.key, self.queue, self._clock.monotonic
        started = monotonic()
        this = self._tries[key] = _Try(lane, started, worker)
        try:
            if queue.is_in_doubt(slot):
                seen = await call.look(self.writer)
                queue.looked(slot, seen)
                if seen.has_happened:
                    return queue.done(slot, None if seen.object is None else seen.object.resource_version)
            version = await self._perform(lane, slot) if call.settles_doubt else await call.perform(self.writer)
        except Exception as error:
            return self._failed(lane, slot, error, started)
        except asyncio.CancelledError:
            if not this.is_overdue or this.task is None or this.task.uncancel():
                raise
            return self._failed(lane, slot, self._overdue(lane), started)
        finally:
            del self._tries[key]
        now = monotonic()
        self._limits[lane].answered(now - started, now)
        return self._done(slot, now - started, version)

    def _done(self, slot: CallSlot, seconds: float, version: str | None) -> Lane | None:
        if self._on_executed is not None:
            self._on_executed(slot.call.kind, True, seconds)
        self._ended.append((self._clock.time(), slot.key, (slot.call.kind, "", seconds)))
        return self.queue.done(slot, version)

    def _together(self, lane: Lane, first: CallSlot) -> list[tuple[CallSlot, NewObject]]:
        """Calls that are sent in one piece, this one first; none if it has to be sent alone."""
        most = self._policies[lane].together
        if most == 1 or self._bucket is not None or self._limits[lane].is_troubled or not self.queue.ready(lane):
            return []
        if bundling_writer(self.writer) is None:
            return []
        found: list[tuple[CallSlot, NewObject]] = []
        slot: CallSlot | None = first
        while slot is not None and len(found) < most and (creation := self._creation(slot)) is not None:
            if slot is not first:
                self.queue.next(lane)
            found.append((slot, creation))
            slot = self.queue.peek(lane)
        return found if len(found) > 1 else []

    def _creation(self, slot: CallSlot) -> NewObject | None:
        is_first_try = slot.tries == (slot.place is Place.IN_FLIGHT)
        if not is_first_try or self.queue.is_in_doubt(slot):
            return None
        try:
            return slot.call.creation()
        except Exception:
            # As if it had been raised by `perform`, which is asked next.
            return None

    async def _send_together(
        self, lane: Lane, batch: Sequence[tuple[CallSlot, NewObject]], worker: asyncio.Task[object] | None
    ) -> set[Lane | None]:
        """One try of each; returns the lanes of calls that waited for them."""
        started = self._clock.monotonic()
        this = _Try(lane, started, worker)
        self._tries.update(dict.fromkeys((slot.key for slot, _ in batch), this))
        errors: Sequence[Exception | None]
        try:
            writer = bundling_writer(self.writer)
            assert writer is not None, "it was asked when the batch was made"
            errors = await writer.create_all([(made.kind, made.namespace, made.body) for _, made in batch])
        except Exception as error:
            errors = [error] * len(batch)
        except asyncio.CancelledError:
            if not this.is_overdue or this.task is None or this.task.uncancel():
                raise
            errors = [self._overdue(lane)] * len(batch)
        finally:
            for slot, _ in batch:
                del self._tries[slot.key]
        now = self._clock.monotonic()
        seconds = (now - started) / len(batch)
        if None in errors:
            self._limits[lane].answered(seconds, now)
        return {
            self._done(slot, seconds, None) if error is None else self._failed(lane, slot, error, started)
            for (slot, _), error in zip(batch, errors, strict=True)
        }

    def _overdue(self, lane: Lane) -> TimeoutError:
        return TimeoutError(f"no answer after {self._policies[lane].try_seconds:g} s")

    async def _perform(self, lane: Lane, slot: CallSlot) -> str | None:
        """Perform a call and stay in flight until it is known whether it took effect, so that nothing overtakes it.

        NotDone if it did not; the error of the last look if that cannot be found out.
        """
        call, tries = slot.call, slot.tries
        try:
            return await call.perform(self.writer)
        except Exception as error:
            if judge(error, call) is not Verdict.UNCLEAR:
                raise
            doubt = error
        while (pause := self._policies[lane].pause(tries, doubt, self._rng)) is not None:
            await self._clock.sleep(pause)
            tries += 1
            try:
                seen = await call.look(self.writer)
            except Exception as error:
                if judge(error, call) is Verdict.FINAL:
                    raise
                continue
            self.queue.looked(slot, seen)
            if not seen.has_happened:
                raise NotDone(str(doubt)) from doubt
            return None if seen.object is None else seen.object.resource_version
        slot.tries = tries
        raise doubt

    def _failed(self, lane: Lane, slot: CallSlot, error: Exception, started: float) -> Lane | None:
        now = self._clock.monotonic()
        if self._on_executed is not None:
            self._on_executed(slot.call.kind, False, now - started)
        text = (str(error) or repr(error))[:_LONGEST_ERROR]
        self._ended.append((self._clock.time(), slot.key, (slot.call.kind, text, now - started)))
        verdict = judge(error, slot.call)
        self._adapt(self._limits[lane], error, now - started, now)
        is_in_doubt = verdict is Verdict.UNCLEAR
        pause = None
        if verdict is not Verdict.FINAL and (not is_in_doubt or _is_safe_to_repeat(slot.call)):
            pause = self._policies[lane].pause(slot.tries, error, self._rng)
        if pause is None:
            return self.queue.failed(slot, error, is_in_doubt=is_in_doubt)
        log.debug("API call is tried again: call=%s object=%s error=%s", slot.call.kind, slot.key, error)
        waiting = self.queue.retry(slot, now + pause, is_in_doubt=is_in_doubt)
        self._wake_at(now + pause)
        return waiting

    def _adapt(self, limit: LaneLimit, error: Exception, seconds: float, now: float) -> None:
        if is_throttled(error):
            limit.throttled(retry_after(error), now)
        elif is_lost(error):
            limit.lost(now)
        elif getattr(error, "code", None) is not None:
            limit.answered(seconds, now)

    # --- time --------------------------------------------------------------------------------------------------

    def _wake_at(self, when: float) -> None:
        """Look again at that time, or earlier."""
        if self._group is None or (self._alarm is not None and self._alarm_at <= when):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = when
        self._alarm = self._group.create_task(self._wake_later(when), name="api calls: alarm")

    async def _wake_later(self, when: float) -> None:
        await self._clock.sleep(max(0.0, when - self._clock.monotonic()))
        self._alarm = None
        now = self._clock.monotonic()
        self.queue.wake(now)
        for lane in Lane:
            self._start_worker(lane)
        due = self.queue.next_due()
        if due is not None:
            self._wake_at(due)

    async def _give_up_old_calls(self) -> None:
        while True:
            await self._clock.sleep(_EXPIRY_SECONDS)
            now = self._clock.monotonic()
            self._give_up_tries(now)
            self.queue.expire(now, self._patience)

    def _give_up_tries(self, now: float) -> None:
        """A server that takes a call and never answers must not hold a worker, or a pod, for ever."""
        for this in self._tries.values():
            is_overdue = now - this.started > self._policies[this.lane].try_seconds
            if is_overdue and not this.is_overdue and this.task is not None:
                this.is_overdue = this.task.cancel()


def _is_safe_to_repeat(call: ApiCall) -> bool:
    """Whether the call can be sent again although it may have happened: one can look, or it does no harm."""
    return call.is_repeatable or type(call).look is not ApiCall.look


def _log_failure(call: ApiCall) -> OnOutcome:
    def report(outcome: Outcome) -> None:
        # What is dropped at the end is logged in one line, by kind.
        if outcome.error is not None and not isinstance(outcome.error, CallDropped):
            log.info("API call did not succeed: call=%s object=%s error=%s", call.kind, call.object_key, outcome.error)

    return report


class LaneLimit:
    """How many calls of a lane are in flight at once: as many as the API server can take. Starts at the maximum.

    every success              a little more, up to the lane's maximum
    429                        half, and a pause for as long as the server asks
    no connection              one at a time, after a pause that doubles until something succeeds
    answers much slower        a tenth less: a server that answers three times as slowly as it can, and takes more
    than they can be           than a second, has a queue, and more calls would only make it longer

    Answers are as slow as the network and the server make them; only what is far above the quickest of late counts, so
    that a server far away is no server under load. Pure: latencies and times come from the caller.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._limit = float(most)
        self._quickest = 0.0
        self._usual = 0.0
        self._cut_at = float("-inf")
        self._pause = _FIRST_PAUSE
        self.paused_until = float("-inf")
        self.is_troubled = False
        """Less than the maximum is allowed, or nothing for a while: only then need the limit be asked."""

    @property
    def allowed(self) -> int:
        return int(self._limit)

    def answered(self, seconds: float, now: float) -> None:
        """A call got a proper answer after so long."""
        self._usual += (_SMOOTHING if self._usual else 1.0) * (seconds - self._usual)
        quickest = self._quickest * _FORGETTING
        self._quickest = quickest if 0.0 < quickest < seconds else seconds
        if self._usual > _SLOW_SECONDS and self._usual > _SLOW_FACTOR * self._quickest:
            self._cut(0.9, now)
        elif self.is_troubled:
            self._recover(now)

    def _recover(self, now: float) -> None:
        self._pause = _FIRST_PAUSE
        self._limit = min(self._limit + 1.0 / self._limit, float(self.most))
        self.is_troubled = self._limit < self.most or self.paused_until > now

    def throttled(self, retry_after: float | None, now: float) -> None:
        """The server said 429."""
        self._cut(0.5, now)
        self.is_troubled = True
        self.paused_until = max(self.paused_until, now + (_DEFAULT_RETRY_AFTER if retry_after is None else retry_after))

    def lost(self, now: float) -> None:
        """There is no connection."""
        self._limit = 1.0
        self.is_troubled = True
        if now >= self.paused_until:
            self.paused_until = now + self._pause
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def _cut(self, factor: float, now: float) -> None:
        # The calls that were in flight together get the same bad news: it counts once.
        if now - self._cut_at > self._usual:
            self._cut_at = now
            self.is_troubled = True
            self._limit = max(1.0, self._limit * factor)
