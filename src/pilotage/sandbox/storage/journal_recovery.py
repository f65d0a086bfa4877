"""Reading a data directory back: the newest snapshot, then every log since, in order.

What must be there is known exactly: a snapshot is named only when finished, and the log of the same number was begun
before it. A missing or damaged file would mean that acknowledged objects are lost, so it is rejected with its name
instead of skipped. The one thing forgiven is an incomplete last frame of the last log: it was never acknowledged.

The revision to go on from: revisions are handed out before they are on disk, and some never get there, so after a kill
the last revision on disk may be less than the last that was used. A log that does not end with the mark of an orderly
end therefore goes on behind everything that can have been handed out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from pilotage.sandbox.storage.data_dir import DataDirectory, DataDirError
from pilotage.sandbox.storage.journal_frames import (
    CLOSED,
    DELETE,
    PUT,
    SNAPSHOT_END,
    FrameReader,
    JournalEntry,
    entries_of,
)
from pilotage.sandbox.storage.records import NO_LABELS, Key, Record

FIRST_LOG: Final = 1


class _Metadata(msgspec.Struct):
    uid: Any = ""
    labels: dict[str, Any] | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata


_metadata_of = msgspec.json.Decoder(_Object).decode


@dataclass(slots=True)
class Recovered:
    """The state that a data directory holds, and where its log goes on."""

    records: dict[Key, Record] = field(default_factory=dict)
    revision: int = 0
    ended_in_order: bool = True
    """Whether the last process closed the journal (or there was none before)."""
    log_number: int = FIRST_LOG
    log_size: int = 0
    """Bytes of the last log that are good; a torn tail lies behind them."""
    torn_bytes: int = 0
    """Length of the torn tail: a write that was under way when the last process ended, and was never acknowledged."""
    logged_bytes: int = 0
    """Size of all logs since the snapshot."""

    def apply(self, entry: JournalEntry) -> None:
        self.revision = max(self.revision, entry.revision)
        self.ended_in_order = entry.kind == CLOSED
        if entry.kind == PUT:
            self.records[entry.key] = _record(entry)
        elif entry.kind == DELETE:
            self.records.pop(entry.key, None)


def recover(directory: DataDirectory) -> Recovered:
    """Read everything; alters nothing. DataDirError names the file that is missing or damaged."""
    recovered = Recovered()
    snapshots, logs = directory.snapshots(), directory.logs()
    base = snapshots[-1] if snapshots else FIRST_LOG
    if snapshots:
        _read_snapshot(directory, base, recovered)
    needed = [number for number in logs if number >= base]
    if not snapshots:
        if directory.is_new:
            return recovered
        _reject_nothing(directory, needed)
    # A kill between beginning a log and its first commit: the log before it is still the last that counts.
    while len(needed) > 1 and directory.log(needed[-1]).stat().st_size == 0:
        needed.pop()
    _reject_gaps(directory, base, needed)
    for number in needed:
        reader = FrameReader(directory.log(number))
        for entry in _entries(directory, reader):
            recovered.apply(entry)
        if not reader.is_whole and (number != needed[-1] or reader.is_damaged()):
            raise _damaged(directory, reader.path, reader.end)
        recovered.torn_bytes = reader.size - reader.end
        recovered.log_number, recovered.log_size = number, reader.end
        recovered.logged_bytes += reader.end
    return recovered


def _read_snapshot(directory: DataDirectory, number: int, recovered: Recovered) -> None:
    reader = FrameReader(directory.snapshot(number))
    last = None
    for entry in _entries(directory, reader):
        recovered.apply(entry)
        last = entry.kind
    if last != SNAPSHOT_END or not reader.is_whole:
        raise _damaged(directory, reader.path, reader.end)


def _entries(directory: DataDirectory, reader: FrameReader) -> Iterator[JournalEntry]:
    for payload in reader.payloads():
        try:
            yield from entries_of(payload)
        except ValueError as error:
            raise _damaged(directory, reader.path, reader.end) from error


def _reject_gaps(directory: DataDirectory, base: int, needed: list[int]) -> None:
    expected = range(base, base + max(len(needed), 1))
    missing = [number for number in expected if number not in needed]
    if missing:
        problem = f"{directory.log(missing[0]).name} is missing"
        raise DataDirError(directory.path, problem, "restore it from a copy, or start with another directory")


def _reject_nothing(directory: DataDirectory, needed: list[int]) -> None:
    """A log begins with a mark of who opened it: where there is none, objects were there that are gone."""
    first = directory.log(needed[0] if needed else FIRST_LOG)
    if first.exists() and first.stat().st_size > 0:
        return
    problem = f"{first.name} is {'empty' if first.exists() else 'missing'}, so that all objects are lost"
    raise DataDirError(directory.path, problem, "restore it from a copy, or remove the directory to begin anew")


def _damaged(directory: DataDirectory, path: Path, offset: int) -> DataDirError:
    problem = f"{path.name} is damaged at byte {offset}"
    return DataDirError(directory.path, problem, "restore it from a copy, or start with another directory")


def _record(entry: JournalEntry) -> Record:
    metadata = _metadata_of(entry.body).metadata
    return Record(entry.key, entry.revision, entry.body, metadata.uid, metadata.labels or NO_LABELS)
