"""The writing side of the journal: commits to the log, and snapshots when the log has grown.

Used by one thread only. Beside the files it keeps the records that are on disk (shared with the store, so this costs a
dict, not copies): a snapshot needs the state as of a moment between two commits, and the store is already further.

A new snapshot is begun when the logs since the last one outgrow both `snapshot_after_bytes` and the objects themselves.
The directory thus stays within about three times the size of the objects, and each byte written causes at most about
one more byte of snapshot.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from pilotage.sandbox.storage.data_dir import DataDirectory
from pilotage.sandbox.storage.journal_frames import CLOSED, DELETE, OPENED, PUT, SNAPSHOT_END, entry_head, mark
from pilotage.sandbox.storage.journal_log import LogFile
from pilotage.sandbox.storage.journal_recovery import Recovered
from pilotage.sandbox.storage.records import Change, Key, Record

SNAPSHOT_AFTER_BYTES: Final = 64 << 20
_STEP_BYTES: Final = 4 << 20

_log = logging.getLogger(__name__)


class PendingWrite(NamedTuple):
    """A change on its way to the disk."""

    change: Change
    head: bytes
    body: bytes

    @property
    def size(self) -> int:
        return len(self.head) + len(self.body)


def pending(change: Change) -> PendingWrite:
    record = change.record
    if change.type == "DELETED":
        return PendingWrite(change, entry_head(DELETE, change.revision, record.key, 0), b"")
    return PendingWrite(change, entry_head(PUT, change.revision, record.key, len(record.body)), record.body)


class JournalWriter:
    """Goes on where the recovered log ends, with `revision` as the last one handed out."""

    def __init__(
        self, directory: DataDirectory, recovered: Recovered, revision: int, *, snapshot_after_bytes: int
    ) -> None:
        self._directory = directory
        self._records: dict[Key, Record] = recovered.records
        self._record_bytes = sum(len(record.body) for record in self._records.values())
        self._snapshot_after_bytes = snapshot_after_bytes
        self._snapshot: SnapshotWriter | None = None
        self._log_number = recovered.log_number
        self._log = LogFile(directory.log(recovered.log_number), recovered.log_size)
        self._log.append([mark(OPENED, revision)])
        directory.begun()
        self._logged_bytes = recovered.logged_bytes
        directory.remove_unfinished()
        self._remove_superseded()

    @property
    def is_snapshotting(self) -> bool:
        return self._snapshot is not None

    def commit(self, batch: Sequence[PendingWrite]) -> None:
        """Return when the whole batch is on disk. OSError: none of it is, unless `is_torn`."""
        parts = [part for item in batch for part in (item.head, item.body)]
        before = self._log.size
        self._log.append(parts)
        self._logged_bytes += self._log.size - before
        for item in batch:
            self._apply(item.change)
        if self._snapshot is None and self._logged_bytes > max(self._snapshot_after_bytes, self._record_bytes):
            self._begin_snapshot(batch[-1].change.revision)

    @property
    def is_torn(self) -> bool:
        """Whether a failed commit could not be cut off, so that the next start may find it."""
        return self._log.is_torn

    def go_on(self, revision: int, room: int) -> None:
        """After a failed commit: mark that revisions go on behind `revision`. OSError: no `room` bytes are free yet."""
        before = self._log.size
        # As large as what was rejected, or a disk with room for the mark alone would take and reject writes in turn.
        self._log.append([entry_head(OPENED, revision, Key("", "", ""), room), bytes(room)])
        self._logged_bytes += self._log.size - before

    def advance_snapshot(self) -> None:
        """Write a piece of the snapshot under way. A failure costs only the snapshot: the logs still hold all."""
        snapshot = self._snapshot
        if snapshot is None:
            return
        try:
            if snapshot.step():
                self._snapshot = None
                self._remove_superseded()
        except OSError as error:
            self._give_up_snapshot(error)

    def close(self, revision: int) -> None:
        """Mark the orderly end after everything is committed."""
        try:
            self._log.append([mark(CLOSED, revision)])
        finally:
            self.release()

    def release(self) -> None:
        """Let go of the files as they are."""
        if self._snapshot is not None:
            self._snapshot.abandon()
            self._snapshot = None
        self._log.close()

    def _apply(self, change: Change) -> None:
        key = change.record.key
        replaced = self._records.pop(key, None) if change.type == "DELETED" else self._records.get(key)
        if replaced is not None:
            self._record_bytes -= len(replaced.body)
        if change.type != "DELETED":
            self._records[key] = change.record
            self._record_bytes += len(change.record.body)

    def _begin_snapshot(self, revision: int) -> None:
        number = self._log_number + 1
        try:
            log = LogFile(self._directory.log(number), 0)
            self._directory.sync()
        except OSError as error:
            self._give_up_snapshot(error)
            return
        self._log.close()
        self._log, self._log_number, self._logged_bytes = log, number, 0
        try:
            self._snapshot = SnapshotWriter(self._directory, number, revision, list(self._records.values()))
        except OSError as error:
            self._give_up_snapshot(error)

    def _give_up_snapshot(self, error: OSError) -> None:
        # Tried again when the log has grown by as much once more.
        _log.warning("no snapshot in %s: %s; the logs are kept instead", self._directory.path, error.strerror)
        self._logged_bytes = 0
        if self._snapshot is not None:
            self._snapshot.abandon()
            self._snapshot = None

    def _remove_superseded(self) -> None:
        """Remove what the newest snapshot replaces."""
        snapshots = self._directory.snapshots()
        if not snapshots:
            return
        for number in self._directory.logs():
            if number < snapshots[-1]:
                self._directory.log(number).unlink()
        for number in snapshots[:-1]:
            self._directory.snapshot(number).unlink()
        self._directory.sync()


class SnapshotWriter:
    """Writes snapshot `number`, all objects in one file: the state at `revision`, which is `records`.

    Writing 100,000 objects takes seconds, and commits must not wait for that. A snapshot is therefore begun together
    with a new log, from the records of that moment (they are never altered, so a list of them is enough), and written
    in steps between commits. Only the finished file gets its name; until then the older snapshot and all logs since
    count.
    """

    def __init__(self, directory: DataDirectory, number: int, revision: int, records: list[Record]) -> None:
        self.number = number
        self._directory = directory
        self._revision = revision
        self._records = iter(records)
        self._target = directory.snapshot(number)
        self._file = LogFile(self._target.with_suffix(".tmp"), 0)

    def step(self) -> bool:
        """Write some more; True when the snapshot is finished and in force. OSError: `abandon` it."""
        parts: list[bytes] = []
        size = 0
        for record in self._records:
            parts += (entry_head(PUT, record.revision, record.key, len(record.body)), record.body)
            size += len(record.body)
            if size >= _STEP_BYTES:
                self._file.append(parts)
                return False
        parts.append(mark(SNAPSHOT_END, self._revision))
        self._file.append(parts)
        os.rename(self._file.path, self._target)
        self._directory.sync()
        self._file.close()
        return True

    def abandon(self) -> None:
        self._file.close()
        # What cannot be removed now is removed when the directory is opened next.
        with suppress(OSError):
            self._file.path.unlink(missing_ok=True)
