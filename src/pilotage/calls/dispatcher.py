"""Sends the calls of the queue, several at a time, each lane with its own workers.

Lanes do not wait for each other: a thousand status patches cannot hold up a binding.
"""

from __future__ import annotations

import asyncio
import logging

from pilotage.api.calls import ApiCall, ApiWriter, Lane
from pilotage.calls.call_queue import CallQueue, OnOutcome

log = logging.getLogger(__name__)

DEFAULT_CONCURRENCY = {Lane.BIND: 64, Lane.EVICT: 64, Lane.VOLUME: 16, Lane.STATUS: 16, Lane.EVENT: 8}


class Dispatcher:
    """Runs inside `run()`; `submit` may be called at any time from the same event loop."""

    def __init__(self, writer: ApiWriter, concurrency: dict[Lane, int] | None = None) -> None:
        self.writer = writer
        self._concurrency = concurrency or DEFAULT_CONCURRENCY
        self._queue = CallQueue()
        self._running = dict.fromkeys(Lane, 0)
        self._busy = dict.fromkeys(Lane, 0)
        """Workers that have a call in flight; the other running ones are on their way to the next."""
        self._group: asyncio.TaskGroup | None = None

    @property
    def is_idle(self) -> bool:
        return self._queue.is_idle

    def pending(self, lane: Lane) -> int:
        return self._queue.pending(lane)

    @property
    def in_flight(self) -> int:
        return self._queue.in_flight

    def submit(self, call: ApiCall, on_outcome: OnOutcome | None = None) -> None:
        """Send a call as soon as its lane and its object are free."""
        self._queue.submit(call, on_outcome or _log_failure(call))
        self._start_workers(call.lane)

    async def perform(self, call: ApiCall) -> None:
        """Send a call and wait for its outcome."""
        outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def tell(error: Exception | None) -> None:
            if outcome.done():
                return
            if error is None:
                outcome.set_result(None)
            else:
                outcome.set_exception(error)

        self.submit(call, tell)
        await outcome

    async def run(self) -> None:
        """Own the workers until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for lane in Lane:
                self._start_workers(lane)
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self._group = None

    def _start_workers(self, lane: Lane) -> None:
        if self._group is None:
            return
        wanted = min(self._busy[lane] + self._queue.pending(lane), self._concurrency[lane])
        while self._running[lane] < wanted:
            self._running[lane] += 1
            self._group.create_task(self._work(lane), name=f"api calls: {lane.value}")

    async def _work(self, lane: Lane) -> None:
        """Send calls of the lane until none is left."""
        try:
            while (queued := self._queue.next(lane)) is not None:
                error = await self._perform(lane, queued.call)
                waiting = self._queue.finish(queued, error)
                if waiting is not None and waiting is not lane:
                    # Its workers found the object taken and went home.
                    self._start_workers(waiting)
        finally:
            self._running[lane] -= 1

    async def _perform(self, lane: Lane, call: ApiCall) -> Exception | None:
        self._busy[lane] += 1
        try:
            await call.perform(self.writer)
        except Exception as error:
            return error
        finally:
            self._busy[lane] -= 1
        return None


def _log_failure(call: ApiCall) -> OnOutcome:
    def tell(error: Exception | None) -> None:
        if error is not None:
            log.info("API call did not succeed: call=%s object=%s error=%s", call.kind, call.object_key, error)

    return tell
