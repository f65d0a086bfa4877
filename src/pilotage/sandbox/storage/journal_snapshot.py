"""A snapshot: all objects in one file, so that the logs before it can go.

Writing 100,000 objects takes seconds, and commits must not wait for that. A snapshot is therefore begun together with a
new log, from the records of that moment (they are never altered, so a list of them is enough), and written in steps
between commits. Only the finished file gets its name; until then the older snapshot and all logs since count.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from pilotage.sandbox.storage.data_dir import DataDirectory
from pilotage.sandbox.storage.journal_frames import PUT, SNAPSHOT_END, entry_head, mark
from pilotage.sandbox.storage.journal_log import LogFile
from pilotage.sandbox.storage.records import Record

_STEP_BYTES: Final = 4 << 20


class SnapshotWriter:
    """Writes snapshot `number`: the state at `revision`, which is `records`."""

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
