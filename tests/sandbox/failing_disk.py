"""Disks that fail when they are told to: a real journal on a bad disk, and one in memory for virtual time."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from pilotage.sandbox.storage import journal, journal_log
from pilotage.sandbox.storage.records import Change, Record
from pilotage.sandbox.storage.store import JournalError


class Disk:
    """Under a real journal, from `frames_left` on: none, a half (full) or all of a frame (no sync) arrives."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.frames_left = 1 << 30
        self.arrives = 0.5
        self._write_all = journal_log._write_all
        monkeypatch.setattr(journal_log, "_write_all", self._write)
        monkeypatch.setattr(journal, "_RETRY_SECONDS", 0.01)

    def fail(self, after_frames: int = 0, arrives: float = 0.5) -> None:
        self.arrives = arrives
        self.frames_left = after_frames

    def repair(self) -> None:
        self.frames_left = 1 << 30

    @contextmanager
    def failing(self, after_frames: int = 0, arrives: float = 0.5) -> Iterator[None]:
        self.fail(after_frames, arrives)
        yield
        self.repair()

    def _write(self, file: int, header: bytes, payload: bytes) -> int:
        self.frames_left -= 1
        if self.frames_left >= 0:
            return self._write_all(file, header, payload)
        frame = header + payload
        os.write(file, frame[: int(len(frame) * self.arrives)])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class MemoryJournal:
    """A journal that commits and fails by hand, in no time at all."""

    def __init__(self) -> None:
        self.pending: list[Change] = []
        self.lost: Sequence[Change] = ()
        self.is_writable = True
        self.refused = 0

    def load(self) -> tuple[int, list[Record]]:
        return 0, []

    def append(self, change: Change) -> None:
        if not self.is_writable:
            self.refused += 1
            raise JournalError("no space left on device")
        self.pending.append(change)

    async def durable(self, revision: int) -> None:
        if any(change.revision <= revision for change in self.lost):
            raise JournalError("no space left on device")
        self.commit()

    def commit(self) -> None:
        self.pending = []

    def fail(self) -> None:
        """Everything since the last commit is lost."""
        self.lost, self.pending = self.pending, []
        self.is_writable = False

    def go_on(self, revision: int) -> None:
        self.lost = ()
