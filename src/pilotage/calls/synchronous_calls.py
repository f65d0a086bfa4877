"""Calls that are submitted and not awaited: performed in the background, or at once by the scheduler loop.

What the gate SchedulerAsyncAPICalls turns off is the asynchrony, not the rules: calls go through the same queue and
lanes either way. A cycle is synchronous and cannot wait in its middle; with the gate off the loop waits after it, until
everything that the cycle has submitted is over.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from pilotage.api.calls import ApiCall, ApiWriter, OnOutcome, Outcome
from pilotage.calls.dispatcher import Dispatcher


class Calls(Protocol):
    """Where cycles and plugins leave their calls."""

    @property
    def writer(self) -> ApiWriter:
        """What they are sent with."""

    def submit(self, call: ApiCall, on_outcome: OnOutcome | None = None) -> None: ...
    async def perform(self, call: ApiCall) -> None: ...


class SynchronousCalls:
    """Passes calls on and knows how many are not over yet."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._open = 0
        self._over = asyncio.Event()

    @property
    def writer(self) -> ApiWriter:
        return self._dispatcher.writer

    def submit(self, call: ApiCall, on_outcome: OnOutcome | None = None) -> None:
        self._open += 1

        def report(outcome: Outcome) -> None:
            self._open -= 1
            self._over.set()
            if on_outcome is not None:
                on_outcome(outcome)

        self._dispatcher.submit(call, report)

    async def perform(self, call: ApiCall) -> None:
        await self._dispatcher.perform(call)

    async def settled(self) -> None:
        """Returns when everything that was submitted is over."""
        while self._open:
            self._over.clear()
            await self._over.wait()
