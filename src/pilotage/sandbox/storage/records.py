"""What the store keeps and what its watchers get: keys, records and changes.

A record is one version of one object: its JSON bytes, stamped with the revision that wrote it, and the few facts that
are asked for without decoding them. A change is the step from one record to the next. Both are never altered, so that
the store, its history, the journal and every watcher share them without copying.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

import msgspec

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]

NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})

_LINE_START: Final[Mapping[str, bytes]] = {
    name: b'{"type":"%s","object":' % name.encode() for name in ("ADDED", "MODIFIED", "DELETED")
}

_decode = msgspec.json.Decoder().decode

decode_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
"""The fields of an encoded object, whose values stay as they are written."""


class Key(NamedTuple):
    """Where an object lives. Keys of one resource sort as lists are shown: by namespace, then by name."""

    resource: str
    """`pods` for the core group, `deployments.apps` otherwise."""
    namespace: str
    """Empty for cluster-scoped objects."""
    name: str

    def __str__(self) -> str:
        return f"{self.resource} {self.namespace}/{self.name}" if self.namespace else f"{self.resource} {self.name}"


class _Outline(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    api_version: str
    kind: str
    metadata: dict[str, Any]
    spec: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    status: Any = msgspec.UNSET


_decode_outline = msgspec.json.Decoder(_Outline).decode


# gc=False: a record refers to strings, bytes and one dict of strings, so it can never be part of a cycle, and leaving
# 100,000 of them out keeps the garbage collector's full passes short.
class Record(msgspec.Struct, frozen=True, gc=False):
    """One version of one object."""

    key: Key
    revision: int
    body: bytes
    uid: str
    labels: Mapping[str, str]

    def object(self) -> dict[str, Any]:
        """A fresh decode that the caller may alter."""
        decoded: dict[str, Any] = _decode(self.body)
        return decoded

    def outline(self) -> dict[str, Any]:
        """The same with the spec left as it is written: most writes change metadata or status only."""
        try:
            parts = _decode_outline(self.body)
        except msgspec.ValidationError:
            # An object with other fields than those of most kinds.
            fields = decode_fields(self.body)
            return {name: raw if name == "spec" else _decode(raw) for name, raw in fields.items()}
        outline: dict[str, Any] = {"apiVersion": parts.api_version, "kind": parts.kind, "metadata": parts.metadata}
        if parts.spec is not msgspec.UNSET:
            outline["spec"] = parts.spec
        if parts.status is not msgspec.UNSET:
            outline["status"] = parts.status
        return outline


class Change(msgspec.Struct, eq=False, gc=False):
    """One write: the record that it made (for a deletion: the last state) and the record that was there before."""

    type: ChangeType
    record: Record
    previous: Record | None
    revision: int
    _line: bytes | None = None

    @property
    def line(self) -> bytes:
        """The watch event as sent on the wire; built by the first watcher that needs it."""
        line = self._line
        if line is None:
            line = self._line = b"%b%b}\n" % (_LINE_START[self.type], self.record.body)
        return line

    def forget_line(self) -> None:
        """Give the bytes back once the watchers have passed; a late one builds them again."""
        self._line = None
