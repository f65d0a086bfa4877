"""What the two processes say to each other, and the wire that it goes over.

A pair of connected sockets that only they have: each message is its length and MessagePack. What must be known without
waiting is not said here but kept in `shared_state`. The end of the stream means that the other process is gone.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from pilotage.observe.transfer import MetricChange

_LENGTH_BYTES: Final = 4
_MOST_BYTES: Final = 1 << 30


class _Message(msgspec.Struct, frozen=True, tag=True, array_like=True):
    pass


class Begin(_Message, frozen=True):
    """To the scheduler: the ports are open, so begin."""


class Leading(_Message, frozen=True):
    """To the scheduler: the lease is ours."""


class LeaseLost(_Message, frozen=True):
    """To the scheduler: stop at once."""

    why: str


class LeaseReleased(_Message, frozen=True):
    """To the scheduler: we lead no more, as was asked for."""


class PageAsked(_Message, frozen=True):
    """To the scheduler: a user who may see this page asks for it."""

    number: int
    path: str
    method: str
    query: Mapping[str, Sequence[str]]
    headers: Mapping[str, str]
    body: bytes
    measured: Sequence[MetricChange]
    """What the supervisor has measured since the last page."""


class Built(_Message, frozen=True):
    """To the supervisor: plugins and configuration can be used; the scheduler waits for the word to begin."""


class ServerChecked(_Message, frozen=True):
    """To the supervisor: the API server answers and lets us in."""


class AcquireLease(_Message, frozen=True):
    """To the supervisor: whatever scheduling needs is there, so stand for election."""


class ReleaseLease(_Message, frozen=True):
    """To the supervisor: nothing more will be written."""


class Health(_Message, frozen=True):
    """To the supervisor: what is wrong, by the name of the check."""

    problems: Mapping[str, str]


class PageAnswered(_Message, frozen=True):
    """To the supervisor."""

    number: int
    status: int
    body: bytes
    content_type: str
    headers: tuple[tuple[str, str], ...] = ()


ToScheduler = Begin | Leading | LeaseLost | LeaseReleased | PageAsked
ToSupervisor = Built | ServerChecked | AcquireLease | ReleaseLease | Health | PageAnswered

_Received = TypeVar("_Received")


class Channel(Generic[_Received]):
    """One end. `received` is the union of what comes in here."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, received: Any) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder: msgspec.msgpack.Decoder[_Received] = msgspec.msgpack.Decoder(received)
        self.is_closed = False

    @classmethod
    async def over(cls, end: socket.socket, received: Any) -> Channel[_Received]:
        reader, writer = await asyncio.open_unix_connection(sock=end)
        return cls(reader, writer, received)

    def send(self, message: ToScheduler | ToSupervisor) -> None:
        """Never waits; to a process that is gone nothing is sent."""
        if self.is_closed:
            return
        encoded = msgspec.msgpack.encode(message)
        self._writer.write(len(encoded).to_bytes(_LENGTH_BYTES, "big") + encoded)

    async def receive(self) -> _Received | None:
        """The next message; None when the other process is gone."""
        try:
            length = int.from_bytes(await self._reader.readexactly(_LENGTH_BYTES), "big")
            if length > _MOST_BYTES:
                raise ValueError(f"a message of {length} bytes")
            return self._decoder.decode(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            self.is_closed = True
            return None

    def close(self) -> None:
        self.is_closed = True
        self._writer.close()
