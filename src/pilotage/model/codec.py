"""From JSON bytes of the API server to typed objects: single objects, list pages and watch lines.

The fast path is one msgspec pass over a whole page or batch of lines. If that fails, the objects are taken one by
one: an object with a `null` where a list or map belongs (Go writes them; they mean "absent") is read without it, and
an object that really is wrong is handed over as a DecodeError while its neighbours survive.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, Generic, TypeVar

import msgspec

from pilotage.model.errors import DecodeError, decode_error
from pilotage.model.meta import Status

T = TypeVar("T")

BROKEN_INPUT = Exception
"""Whatever one object makes a decoder raise: it concerns that object, not its neighbours."""
_OPAQUE = frozenset({"opaque", "data"})  # other people's documents, where null may mean something


class Bookmark(msgspec.Struct, frozen=True):
    """Not an object: says that everything up to this version has been sent."""

    resource_version: str


class StatusError(msgspec.Struct, frozen=True):
    """The watch failed; code 410 means that it has to start again from a list."""

    code: int
    reason: str
    message: str


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """ADDED, MODIFIED or DELETED with the object (or the DecodeError in its place); BOOKMARK; ERROR."""

    type: str
    object: Any


class ListPage(msgspec.Struct, frozen=True):
    items: list[Any]
    resource_version: str
    continue_token: str
    errors: tuple[DecodeError, ...] = ()


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_token: str = msgspec.field(default="", name="continue")


class _RawList(msgspec.Struct):
    metadata: _ListMeta = _ListMeta()
    items: list[msgspec.Raw] | None = None


class _RawEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _BookmarkObject(msgspec.Struct):
    metadata: _ListMeta


_raw_list = msgspec.json.Decoder(_RawList)
_raw_event = msgspec.json.Decoder(_RawEvent)
_bookmark = msgspec.json.Decoder(_BookmarkObject)
_status = msgspec.json.Decoder(Status)


class Codec(Generic[T]):
    """Decoders of one kind. `finish` turns the struct on the wire into the object that is handed out.

    Each is made when it is first used: most commands read a few kinds, and making all takes 20 ms.
    """

    def __init__(self, kind: str, wire: Any, finish: Callable[[Any], T]) -> None:
        self.kind = kind
        self._wire = wire
        self._finish = finish

    @cached_property
    def _object(self) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(self._wire)

    @cached_property
    def _page(self) -> msgspec.json.Decoder[Any]:
        wire: Any = self._wire
        page = msgspec.defstruct("Page", [("items", list[wire]), ("metadata", _ListMeta, _ListMeta())])
        return msgspec.json.Decoder(page)

    @cached_property
    def _event(self) -> msgspec.json.Decoder[Any]:
        event = msgspec.defstruct("Event", [("type", str), ("object", self._wire)], gc=False)
        return msgspec.json.Decoder(event)

    def decode(self, data: bytes | msgspec.Raw) -> T:
        """The object; DecodeError if it is none of this kind."""
        try:
            return self._finish(self._object.decode(data))
        except BROKEN_INPUT:
            return self._decode_without_nulls(bytes(data))

    def decode_list(self, data: bytes) -> ListPage:
        """A page of a list. Items that do not decode are in `errors`; DecodeError if the page itself is broken."""
        try:
            page = self._page.decode(data)
            items = [self._finish(item) for item in page.items]
            return ListPage(items, page.metadata.resource_version, page.metadata.continue_token)
        except BROKEN_INPUT:
            return self._decode_list_one_by_one(data)

    def decode_events(self, data: bytes) -> list[WatchEvent]:
        """The watch events of complete lines. What does not decode is an event with a DecodeError as its object."""
        try:
            return [self._event_of(wire) for wire in self._event.decode_lines(data)]
        except BROKEN_INPUT:
            return [self._decode_event_alone(line) for line in data.splitlines() if line.strip()]

    def _event_of(self, wire: Any) -> WatchEvent:
        if wire.type == "BOOKMARK":
            return WatchEvent("BOOKMARK", Bookmark(wire.object.metadata.resource_version))
        if wire.type == "ERROR":
            raise msgspec.ValidationError("a Status was read as if it were an object")
        return WatchEvent(wire.type, self._finish(wire.object))

    def _decode_without_nulls(self, data: bytes) -> T:
        try:
            repaired = msgspec.json.encode(without_nulls(msgspec.json.decode(data)))
            return self._finish(self._object.decode(repaired))
        except BROKEN_INPUT as cause:
            raise decode_error(self.kind, data, cause) from cause

    def _decode_list_one_by_one(self, data: bytes) -> ListPage:
        try:
            page = _raw_list.decode(data)
        except BROKEN_INPUT as cause:
            raise decode_error(f"{self.kind}List", b"", cause) from cause
        items: list[T] = []
        errors: list[DecodeError] = []
        for raw in page.items or ():
            try:
                items.append(self.decode(raw))
            except DecodeError as error:
                errors.append(error)
        return ListPage(items, page.metadata.resource_version, page.metadata.continue_token, tuple(errors))

    def _decode_event_alone(self, line: bytes) -> WatchEvent:
        try:
            event = _raw_event.decode(line)
            if event.type == "BOOKMARK":
                return WatchEvent("BOOKMARK", Bookmark(_bookmark.decode(event.object).metadata.resource_version))
            if event.type == "ERROR":
                status = _status.decode(event.object)
                return WatchEvent("ERROR", StatusError(status.code, status.reason, status.message))
        except BROKEN_INPUT as cause:
            return WatchEvent("", decode_error(self.kind, line, cause))
        try:
            return WatchEvent(event.type, self.decode(event.object))
        except DecodeError as error:
            return WatchEvent(event.type, error)


class RawCodec(Codec[T]):
    """Decodes as another codec does, one object after the other, and keeps with each the JSON that it was read from."""

    def __init__(self, codec: Codec[T]) -> None:
        self.kind = codec.kind
        self._codec = codec

    def decode(self, data: bytes | msgspec.Raw) -> T:
        own = bytes(data)
        return _with_json(self._codec.decode(own), own)

    def decode_list(self, data: bytes) -> ListPage:
        return self._decode_list_one_by_one(data)

    def decode_events(self, data: bytes) -> list[WatchEvent]:
        return [self._decode_event_alone(line) for line in data.splitlines() if line.strip()]


def json_of(obj: Any) -> bytes | None:
    """The JSON that an object was read from; None if it was not kept."""
    found: bytes | None = getattr(obj, "read_from_json", None)
    return found


def _with_json(obj: T, data: bytes) -> T:
    """The same object, of a class that differs in this one field: copies of it keep the field, others never have it."""
    cls: Any = type(obj)
    made: T = _class_with_json(cls)(**{name: getattr(obj, name) for name in cls.__struct_fields__}, read_from_json=data)
    return made


@cache
def _class_with_json(cls: Any) -> Any:
    own = [("read_from_json", bytes, b"")]
    return msgspec.defstruct(
        cls.__name__, own, bases=(cls,), module=cls.__module__, frozen=True, gc=False, kw_only=True
    )


def without_nulls(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {
            key: value if key in _OPAQUE else without_nulls(value) for key, value in tree.items() if value is not None
        }
    if isinstance(tree, list):
        return [without_nulls(item) for item in tree]
    return tree
