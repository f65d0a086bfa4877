"""Where a piece of key material comes from: written into the configuration, or a file that may change.

Tokens and certificates on disk are rotated by others (the kubelet swaps a projected token about every hour), so a
file is looked at again, at most once a second, and read again only when its identity changed. A file that vanishes
in the middle of a swap is no reason to fail: the last good content stays in use.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Protocol

from pilotage.clock import Clock
from pilotage.kube.errors import CredentialsError

LOOK_AGAIN_SECONDS = 1.0

_log = logging.getLogger(__name__)


class Source(Protocol):
    """Gives the current bytes; cheap enough to be asked for every request."""

    @property
    def name(self) -> str:
        """For messages: the setting, and the file if it is one."""

    def read(self) -> bytes: ...

    def look_again(self) -> None:
        """Do not trust what was read before: the server refused it."""


class Inline:
    """Bytes that never change."""

    name = "in the configuration"

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self) -> bytes:
        return self._content

    def look_again(self) -> None:
        pass


class WatchedFile:
    """The content of a file, read again when the file was replaced."""

    def __init__(self, path: Path, field: str, clock: Clock) -> None:
        """`field` names the setting that points here, for messages."""
        self._path = path
        self._field = field
        self._clock = clock
        self._content: bytes | None = None
        self._mark: tuple[int, int, int] | None = None
        self._next_look = 0.0

    @property
    def name(self) -> str:
        return f"{self._field}: {self._path}"

    def read(self) -> bytes:
        now = self._clock.monotonic()
        if self._content is not None and now < self._next_look:
            return self._content
        self._next_look = now + LOOK_AGAIN_SECONDS
        try:
            return self._read_if_changed()
        except OSError as error:
            if self._content is None:
                raise CredentialsError(_unreadable(self._field, self._path, error)) from error
            _log.warning("%s; the content read before stays in use", _unreadable(self._field, self._path, error))
            return self._content

    def look_again(self) -> None:
        self._next_look = 0.0
        self._mark = None

    def _read_if_changed(self) -> bytes:
        found = os.stat(self._path)
        mark = (found.st_ino, found.st_mtime_ns, found.st_size)
        if self._content is None or mark != self._mark:
            self._content = self._path.read_bytes()
            self._mark = mark
        return self._content


def _unreadable(field: str, path: Path, error: OSError) -> str:
    return f"{field}: cannot read {path}: {error.strerror or error}"
