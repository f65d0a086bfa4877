"""Calls whose performance a test can hold back, and that remember what was sent."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from pilotage.api.calls import ApiCall, Lane, Relevance


class SampleCall(ApiCall):
    """Writes its text to `writer.sent`, after `writer.gate(text)` lets it."""

    __slots__ = ("_key", "text")

    kind: ClassVar[str] = "sample"
    lane: ClassVar[Lane] = Lane.STATUS
    relevance: ClassVar[Relevance] = Relevance.STATUS

    def __init__(self, key: str, text: str = "") -> None:
        self._key = key
        self.text = text or f"{self.kind} {key}"

    @property
    def object_key(self) -> str:
        return self._key

    async def perform(self, writer: Any) -> None:
        await writer.send(self)

    def merged_with(self, newer: ApiCall) -> ApiCall:
        assert isinstance(newer, SampleCall)
        return type(self)(self._key, f"{self.text}+{newer.text}")


class Event(SampleCall):
    __slots__ = ()
    kind, lane, relevance = "event", Lane.EVENT, Relevance.EVENT


class Status(SampleCall):
    __slots__ = ()
    kind, lane, relevance = "status", Lane.STATUS, Relevance.STATUS


class Binding(SampleCall):
    __slots__ = ()
    kind, lane, relevance = "binding", Lane.BIND, Relevance.BINDING


class Deletion(SampleCall):
    __slots__ = ()
    kind, lane, relevance = "deletion", Lane.EVICT, Relevance.DELETION


class SlowServer:
    """Begins every call at once and ends it when the test says so."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self._held: dict[str, asyncio.Future[None]] = {}
        self.is_slow = True

    async def send(self, call: SampleCall) -> None:
        self.begun.append(call.text)
        if self.is_slow:
            self._held[call.text] = asyncio.get_running_loop().create_future()
            await self._held[call.text]
        self.ended.append(call.text)

    def finish(self, text: str, error: Exception | None = None) -> None:
        if error is None:
            self._held.pop(text).set_result(None)
        else:
            self._held.pop(text).set_exception(error)
