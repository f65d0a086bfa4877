"""The bytes of the journal's files: frames of entries.

    frame   magic, length and CRC-32 of the payload, payload: what one disk write makes durable, all of it or nothing
    entry   kind, revision, key, body; a payload is entries one after another

A killed process or a power cut leaves at most one frame incomplete, the last of the log, because the next is written
only when the one before it is on disk. A bad frame with a good one behind it is therefore damage, not a torn tail, and
must not be cut off silently. To distinguish them the rest of the file is searched for the magic, whose first byte never
occurs in UTF-8 and so not in keys or bodies.
"""

from __future__ import annotations

import os
import struct
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from pilotage.sandbox.storage.records import Key

PUT: Final = 1
DELETE: Final = 2
OPENED: Final = 3
"""A process began to hand out revisions after this one."""
CLOSED: Final = 4
"""The process ended in order: no revision after this one was handed out."""
SNAPSHOT_END: Final = 5
"""Last entry of a snapshot: the revision that it shows."""

_KINDS: Final = frozenset({PUT, DELETE, OPENED, CLOSED, SNAPSHOT_END})
_MAGIC: Final = b"\xffPJ\xfe"
_HEADER: Final = struct.Struct("<4sII")
_ENTRY: Final = struct.Struct("<BQIIII")


class JournalEntry(NamedTuple):
    kind: int
    revision: int
    key: Key
    body: bytes


def entry_head(kind: int, revision: int, key: Key, body_length: int) -> bytes:
    """All of an entry except its body, which is written from where it is."""
    resource, namespace, name = key.resource.encode(), key.namespace.encode(), key.name.encode()
    lengths = _ENTRY.pack(kind, revision, len(resource), len(namespace), len(name), body_length)
    return b"".join((lengths, resource, namespace, name))


def mark(kind: int, revision: int) -> bytes:
    """An entry that is about no object."""
    return _ENTRY.pack(kind, revision, 0, 0, 0, 0)


def frame_of(parts: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Header and payload of the frame that holds `parts`."""
    payload = b"".join(parts)
    return _HEADER.pack(_MAGIC, len(payload), zlib.crc32(payload)), payload


def entries_of(payload: bytes) -> Iterator[JournalEntry]:
    """The entries of a payload; ValueError if it is none of ours."""
    at = 0
    while at < len(payload):
        kind, revision, *lengths = _ENTRY.unpack_from(payload, at)
        if kind not in _KINDS:
            raise ValueError(f"unknown kind of entry {kind}")
        at += _ENTRY.size
        fields = []
        for length in lengths:
            fields.append(payload[at : at + length])
            at += length
        resource, namespace, name, body = fields
        # 100,000 keys share a handful of resources and namespaces.
        key = Key(sys.intern(resource.decode()), sys.intern(namespace.decode()), name.decode())
        yield JournalEntry(kind, revision, key, body)


class FrameReader:
    """The frames of one file from its start; `end` is the offset behind the last good one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = path.stat().st_size
        self.end = 0

    def payloads(self) -> Iterator[bytes]:
        """Each payload until the end of the file or the first frame that is not whole."""
        with self.path.open("rb") as file:
            while True:
                payload = _payload_at(file, self.end, self.size)
                if payload is None:
                    return
                self.end += _HEADER.size + len(payload)
                yield payload

    @property
    def is_whole(self) -> bool:
        return self.end == self.size

    def is_damaged(self) -> bool:
        """Whether a good frame lies behind the bad one; a torn tail has none."""
        with self.path.open("rb") as file:
            file.seek(self.end)
            rest = file.read()
            at = rest.find(_MAGIC, 1)
            while at >= 0:
                if _payload_at(file, self.end + at, self.size) is not None:
                    return True
                at = rest.find(_MAGIC, at + 1)
        return False


def _payload_at(file: BinaryIO, offset: int, size: int) -> bytes | None:
    file.seek(offset, os.SEEK_SET)
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    magic, length, checksum = _HEADER.unpack(header)
    if magic != _MAGIC or offset + _HEADER.size + length > size:
        return None
    payload = file.read(length)
    return payload if len(payload) == length and zlib.crc32(payload) == checksum else None
