"""How many connections may be open, and which one has to go when there are too many.

A connection on which no request is being answered makes way for a new one: first the one that has been idle longest,
among those of the same address, if that address has its share, then among all. So a client that opens a
thousand and says nothing closes its own, and a probe always gets in. Only when all are being answered is a new one
refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from msgspec import Struct

from pilotage.observe.instruments import Counter as Counted


class ServerLimits(Struct, frozen=True):
    """Times in seconds."""

    connections: int = 512
    per_address: int = 64
    head_bytes: int = 32 << 10
    """Of a request line and its headers."""
    body_bytes: int = 64 << 10
    review_bytes: int = 3 << 20
    """Of an AdmissionReview: objects may be large."""
    request_seconds: float = 10.0
    """For a TLS handshake; for a request to arrive; for an answer to be taken."""
    idle_seconds: float = 90.0
    """From one request to the next on the same connection."""


class Visitor(Struct, eq=False):
    """An open connection."""

    address: str
    close: Callable[[], object]
    is_busy: bool = False


class Visitors:
    """All connections of a server. `closed` counts those that were closed or refused, by why."""

    def __init__(self, limits: ServerLimits, closed: Counted) -> None:
        self._limits = limits
        self._closed = closed
        self._open: dict[Visitor, None] = {}
        """The longest idle ones first: one that begins to wait goes to the end."""
        self._by_address: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, visitor: Visitor) -> bool:
        """Make room for a new connection; False if there is none to be had."""
        if self._by_address[visitor.address] >= self._limits.per_address:
            if not self._make_room((one for one in self._open if one.address == visitor.address), "address"):
                return False
        elif len(self._open) >= self._limits.connections and not self._make_room(self._open, "total"):
            return False
        self._open[visitor] = None
        self._by_address[visitor.address] += 1
        return True

    def waits(self, visitor: Visitor) -> None:
        """It was answered, and is idle from now on."""
        visitor.is_busy = False
        if visitor in self._open:
            del self._open[visitor]
            self._open[visitor] = None

    def gone(self, visitor: Visitor) -> None:
        if visitor not in self._open:
            return
        del self._open[visitor]
        self._by_address[visitor.address] -= 1
        if not self._by_address[visitor.address]:
            del self._by_address[visitor.address]

    def _make_room(self, candidates: Iterable[Visitor], why: str) -> bool:
        self._closed.add(why)
        idle = next((one for one in candidates if not one.is_busy), None)
        if idle is None:
            return False
        self.gone(idle)
        idle.close()
        return True
