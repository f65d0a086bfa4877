"""The directory in which the sandbox keeps its objects: who may open it and what its files are called.

    format              one line: the format's name and version; a directory without it was not made by us
    new                 no log was begun yet: the one time when a directory without a log is as it should be
    lock                locked (flock) by the process that has the directory open; holds its id, for the message
    log-00000003        the writes, in order
    snapshot-00000003   every object as it was when the log of the same number was begun

Opening rejects whatever it does not understand before it alters a single byte: a foreign directory, another
version's and one in use stay as they are. The lock goes with the process, so a killed one leaves nothing to clean up.
"""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path
from typing import Final

FORMAT_NAME: Final = "pilotage-data"
FORMAT_VERSION: Final = 1

_FORMAT: Final = "format"
_LOCK: Final = "lock"
_NEW: Final = "new"
# What a first start that was killed half-way may leave behind.
_UNFINISHED: Final = frozenset({_LOCK, _NEW, _FORMAT + ".tmp"})


class DataDirError(Exception):
    """A data directory that cannot be used; the message names the path and the way out."""

    def __init__(self, path: Path, problem: str, way_out: str) -> None:
        super().__init__(f"data directory {path}: {problem}; {way_out}")
        self.path = path


class DataDirectory:
    """A data directory that this process holds the lock of."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    def log(self, number: int) -> Path:
        return self.path / f"log-{number:08d}"

    def snapshot(self, number: int) -> Path:
        return self.path / f"snapshot-{number:08d}"

    def logs(self) -> list[int]:
        """The numbers of the logs that are there, ascending."""
        return self._numbers("log")

    def snapshots(self) -> list[int]:
        """The numbers of the finished snapshots that are there, ascending."""
        return self._numbers("snapshot")

    @property
    def is_new(self) -> bool:
        """Whether no log was ever begun here."""
        return (self.path / _NEW).exists()

    def begun(self) -> None:
        """The first log is on disk: from now on a directory without one has lost it."""
        (self.path / _NEW).unlink(missing_ok=True)
        self.sync()

    def remove_unfinished(self) -> None:
        for path in self.path.glob("*.tmp"):
            path.unlink()

    def sync(self) -> None:
        """Make created, renamed and removed files durable."""
        sync_directory(self.path)

    def release(self) -> None:
        os.close(self._lock)

    def _numbers(self, stem: str) -> list[int]:
        names = (re.fullmatch(rf"{stem}-(\d+)", path.name) for path in self.path.iterdir())
        return sorted(int(name[1]) for name in names if name)


def claim(path: Path) -> DataDirectory:
    """Lock the directory, made first if it is missing; DataDirError if it is not ours to use."""
    try:
        _reject_foreign(path)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _take_lock(path)
        try:
            _reject_foreign(path)
            if not (path / _FORMAT).exists():
                (path / _NEW).touch(mode=0o600)
                _write_format(path)
        except BaseException:
            os.close(lock)
            raise
        return DataDirectory(path, lock)
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise DataDirError(path, problem, "choose a directory that this user can write") from error


def sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _reject_foreign(path: Path) -> None:
    if not path.exists():
        return
    if not path.is_dir():
        raise DataDirError(path, "is a file", "choose a directory, or a path that does not exist yet")
    if (path / _FORMAT).exists():
        _reject_other_version(path)
        return
    names = {entry.name for entry in path.iterdir()}
    if names - _UNFINISHED:
        raise DataDirError(path, "holds other files and none of a sandbox", "choose an empty directory or a new one")


def _reject_other_version(path: Path) -> None:
    text = (path / _FORMAT).read_bytes()[:100].decode(errors="replace").strip()
    if text == f"{FORMAT_NAME} {FORMAT_VERSION}":
        return
    problem = f'was written in format "{text}", this version reads "{FORMAT_NAME} {FORMAT_VERSION}"'
    raise DataDirError(path, problem, "use the version of pilotage that wrote it, or another directory")


def _take_lock(path: Path) -> int:
    lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(lock, 20).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise DataDirError(
            path, f"is in use by process {owner}", "stop that one, or choose another directory"
        ) from None
    os.ftruncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())
    return lock


def _write_format(path: Path) -> None:
    # By way of a rename: a kill leaves the whole line or none, never a directory that looks like another version's.
    unfinished = path / (_FORMAT + ".tmp")
    with unfinished.open("wb") as file:
        file.write(f"{FORMAT_NAME} {FORMAT_VERSION}\n".encode())
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path / _FORMAT)
    sync_directory(path)
    sync_directory(path.parent)
