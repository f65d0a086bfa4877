"""Calls whose performance a test can hold back, and that remember what was sent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar

from pilotage.api.calls import ApiCall, Lane, NewObject, Relevance, Seen
from pilotage.model import KINDS


class SampleCall(ApiCall):
    """Sends its text to the writer."""

    __slots__ = ("_key", "text")

    kind: ClassVar[str] = "sample"
    lane: ClassVar[Lane] = Lane.STATUS
    relevance: ClassVar[int] = Relevance.STATUS

    def __init__(self, key: str, text: str = "") -> None:
        self._key = key
        self.text = text or f"{self.kind} {key}"

    @property
    def object_key(self) -> str:
        return self._key

    async def perform(self, writer: Any) -> str | None:
        version: str | None = await writer.send(self)
        return version

    def merged_with(self, newer: ApiCall) -> ApiCall:
        assert isinstance(newer, SampleCall)
        return type(self)(self._key, f"{self.text}+{newer.text}")


class Event(SampleCall):
    __slots__ = ()
    kind, lane, relevance = "event", Lane.EVENT, Relevance.EVENT


class Creating(Event):
    """Does nothing but create something."""

    __slots__ = ()
    kind, is_repeatable = "creating", True

    def creation(self) -> NewObject | None:
        return NewObject(KINDS["events"], "default", self.text.encode())


class Status(SampleCall):
    __slots__ = ()
    kind, lane, relevance = "status", Lane.STATUS, Relevance.STATUS
    is_repeatable = True


class Binding(SampleCall):
    __slots__ = ()
    kind, lane, relevance = "binding", Lane.BIND, Relevance.BINDING


class Deletion(SampleCall):
    __slots__ = ()
    kind, lane, relevance = "deletion", Lane.EVICT, Relevance.DELETION


class LastDeletion(Deletion):
    """Completes what other deletions have begun."""

    __slots__ = ()
    kind = "last deletion"

    @property
    def goes_first(self) -> bool:
        return True


class Farewell(Deletion):
    """All who want the object to go wait for the one call that is sent."""

    __slots__ = ()
    kind, joins = "farewell", True

    def merged_with(self, newer: ApiCall) -> ApiCall:
        return self

    def admits(self, newer: ApiCall) -> bool:
        return True


class Looking(Binding):
    """Can tell whether it has happened."""

    __slots__ = ()
    kind = "looking"

    async def look(self, writer: Any) -> Seen:
        seen: Seen = await writer.look(self)
        return seen


class Settling(Looking):
    """Nothing may overtake it while it is in doubt."""

    __slots__ = ()
    kind, settles_doubt = "settling", True


@dataclass(frozen=True)
class Note:
    """An object with one field that calls write, and one that others do."""

    resource_version: str
    text: str = ""
    other: str = ""
    uid: str = "a"


class Writing(ApiCall):
    """Writes the text of a note: knows what is pointless, what will be, and what was done before."""

    __slots__ = ("base", "text")
    kind, lane, relevance = "writing", Lane.STATUS, Relevance.STATUS

    def __init__(self, base: Note, text: str) -> None:
        self.base = base
        self.text = text

    @property
    def object_key(self) -> str:
        return self.base.uid

    async def perform(self, writer: Any) -> str | None:
        version: str | None = await writer.send(self)
        return version

    def merged_with(self, newer: ApiCall) -> ApiCall:
        assert isinstance(newer, Writing)
        return Writing(self.base, newer.text)

    def rebase(self, obj: Any) -> None:
        self.base = obj

    def is_pointless(self) -> bool:
        return self.base.text == self.text

    def applied_to(self, obj: Any) -> Any:
        return obj if obj.text == self.text else Note(obj.resource_version, self.text, obj.other, obj.uid)

    def follow(self, done: ApiCall) -> None:
        self.base = done.applied_to(self.base)


class SlowServer:
    """Begins every call at once and ends it when the test says so."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.looked: list[str] = []
        self.sees = Seen(True)
        self._held: dict[str, asyncio.Future[None]] = {}
        self.is_slow = True

    async def send(self, call: SampleCall) -> str | None:
        self.begun.append(call.text)
        if self.is_slow:
            self._held[call.text] = asyncio.get_running_loop().create_future()
            await self._held[call.text]
        self.ended.append(call.text)
        return None

    async def look(self, call: SampleCall) -> Seen:
        self.looked.append(call.text)
        return self.sees

    def finish(self, text: str, error: Exception | None = None) -> None:
        if error is None:
            self._held.pop(text).set_result(None)
        else:
            self._held.pop(text).set_exception(error)
