"""How often visitors can make us ask the API server about them.

Two bounds: few reviews are in flight at once, for all visitors; and a visitor who was refused again and again is not
asked about for a while. Those who may see the pages are never refused, so the second bound does not touch them. A
visitor is the owner of a client certificate, or the user for whom the API server asks with its own; only those who show
neither are known by their address. So a tenant who is refused through the API server shuts out no one else.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Final

from pilotage.calls.token_bucket import TokenBucket
from pilotage.clock import Clock
from pilotage.kube.transport import Response, Transport

AT_ONCE: Final = 8
MOST_WAITING: Final = 32
REFUSALS_PER_SECOND: Final = 1.0
REFUSALS_AT_ONCE: Final = 20
_MOST_VISITORS: Final = 1024


class TooManyReviews(Exception):
    """Not asked; the visitor may come back later."""


class LimitedReviews:
    """POSTs reviews, a few at a time."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._free = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def review(self, path: str, body: bytes) -> Response:
        """TooManyReviews if too many wait already; TransportError as usual."""
        if self._waiting >= MOST_WAITING:
            raise TooManyReviews(f"{MOST_WAITING} questions about visitors wait already")
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            return await self._transport.request("POST", path, body=body)
        finally:
            self._free.release()


class Refusals:
    """How often a visitor was refused lately; those who were refused last are remembered."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left: OrderedDict[str, TokenBucket] = OrderedDict()

    def are_too_many(self, visitor: str) -> bool:
        bucket, now = self._left.get(visitor), self._clock.monotonic()
        return bucket is not None and bucket.next_at(now) > now

    def note(self, visitor: str) -> None:
        now = self._clock.monotonic()
        bucket = self._left.pop(visitor, None) or TokenBucket(REFUSALS_PER_SECOND, REFUSALS_AT_ONCE, now)
        bucket.take(now)
        self._left[visitor] = bucket
        while len(self._left) > _MOST_VISITORS:
            self._left.popitem(last=False)
