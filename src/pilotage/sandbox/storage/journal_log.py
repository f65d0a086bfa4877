"""A file that grows by frames, each on disk before `append` returns.

A failed append leaves the file with a piece of the frame, or with all of it and no word from the disk. It is cut off
before the failure is reported: what was answered with an error must not be found by the next start. Where that
fails too, the next append begins with it, and `is_torn` says so until then.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pilotage.sandbox.storage.journal_frames import frame_of


class LogFile:
    """Opened for appending behind the first `size` bytes, which are known to be good."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.size = size
        self.is_torn = True
        """Bytes may lie behind the last frame known to be on disk."""
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def append(self, parts: Sequence[bytes]) -> None:
        """Write one frame and return when it is on disk; OSError if it is not."""
        if self.is_torn:
            self._cut_back()
        self.is_torn = True
        try:
            written = _write_all(self._file, *frame_of(parts))
            os.fdatasync(self._file)
        except OSError:
            with suppress(OSError):
                self._cut_back()
            raise
        self.is_torn = False
        self.size += written

    def _cut_back(self) -> None:
        os.ftruncate(self._file, self.size)
        os.fdatasync(self._file)
        self.is_torn = False

    def close(self) -> None:
        os.close(self._file)


def _write_all(file: int, header: bytes, payload: bytes) -> int:
    size = len(header) + len(payload)
    written = os.writev(file, (header, payload))
    if written < size:
        # A nearly full disk takes a part first and names the reason on the next call.
        rest = memoryview(header + payload)
        while written < size:
            written += os.write(file, rest[written:])
    return size
