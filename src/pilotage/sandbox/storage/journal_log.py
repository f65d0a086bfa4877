"""A file that grows by frames, each on disk before `append` returns.

A failed append leaves the file with a piece of the frame, or with all of it and no word from the disk. The next append
first cuts the file back to the last frame known to be on disk; writing the cut bytes again also makes the kernel try
again with pages that it has given up after a failed sync.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pilotage.sandbox.storage.journal_frames import frame_of


class LogFile:
    """Opened for appending behind the first `size` bytes, which are known to be good."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.size = size
        self._is_torn = True
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def append(self, parts: Sequence[bytes]) -> None:
        """Write one frame and return when it is on disk; OSError if it is not."""
        if self._is_torn:
            os.ftruncate(self._file, self.size)
        self._is_torn = True
        written = _write_all(self._file, *frame_of(parts))
        os.fdatasync(self._file)
        self._is_torn = False
        self.size += written

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
