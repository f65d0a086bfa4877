"""What a reflector keeps of lists and watches: pages, unfinished lines, objects that do not decode, and delays.

The server keeps a list consistent over its pages by a token that it forgets after some minutes. If that happens
(410), the list starts from the beginning with larger pages, so that it needs fewer requests than before.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from pilotage.model.errors import DecodeError
from pilotage.model.kinds import ListPage, WatchEvent
from pilotage.observe.skipped_objects import SkippedObjects

PAGE_GROWTH = 10
LONGEST_LINE_BYTES = 64 << 20
FIRST_SECONDS = 0.1
LONGEST_SECONDS = 30.0


class Listing:
    """What has been listed so far and how to ask for the next page."""

    def __init__(self, page_size: int) -> None:
        self.limit = page_size
        self.continue_token = ""
        self.resource_version = ""
        self.items: list[Any] = []
        self.errors: list[DecodeError] = []

    def add(self, page: ListPage) -> bool:
        """True if this was the last page."""
        if not self.continue_token:
            # The version of the first page is safe for a watch whether or not the server freezes the later ones:
            # what those already contain is at worst delivered once more.
            self.resource_version = page.resource_version
        self.items.extend(page.items)
        self.errors.extend(page.errors)
        self.continue_token = page.continue_token
        return not page.continue_token

    def start_again(self) -> None:
        """The token expired: begin anew with fewer, larger pages."""
        self.limit *= PAGE_GROWTH
        self.continue_token = ""
        self.items.clear()
        self.errors.clear()


class LineTooLong(Exception):
    """No end of line in more bytes than any object can have: this is not a watch."""


class LineJoiner:
    """Complete lines out of chunks that are cut anywhere; the unfinished tail is kept until the rest of it arrives.

    A watch sends one JSON document per line. All complete lines that are there are handed out as one piece, so that
    decoding and delivery are paid per batch and not per event.
    """

    def __init__(self) -> None:
        self._tail: list[bytes] = []
        self._tail_bytes = 0

    def complete(self, chunk: bytes) -> bytes:
        """All complete lines up to now that were not handed out before; b"" if there is none."""
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._keep(chunk)
            return b""
        lines = b"".join((*self._tail, chunk[:end])) if self._tail else chunk[:end]
        self._tail.clear()
        self._tail_bytes = 0
        if end < len(chunk):
            self._keep(chunk[end:])
        return lines

    def _keep(self, piece: bytes) -> None:
        self._tail.append(piece)
        self._tail_bytes += len(piece)
        if self._tail_bytes > LONGEST_LINE_BYTES:
            raise LineTooLong(f"more than {LONGEST_LINE_BYTES >> 20} MiB without an end of line")


class Undecodable:
    """Objects of one kind that exist on the server but do not decode: their keys, and how often one was skipped.

    To us such an object is not there, however we learn of it: a list leaves it out, a watch event for it is not passed
    on. Only one case needs action: an object that decoded before and no longer does. The sink holds its old state,
    which a fresh list (where the object is missing) takes away. Each object is reported once while it stays so.
    """

    def __init__(self, kind: str, skipped: SkippedObjects) -> None:
        self._kind = kind
        self._skipped = skipped
        self._keys: set[str] = set()
        self.skipped_total = 0

    def __len__(self) -> int:
        return len(self._keys)

    def listed(self, errors: Iterable[DecodeError]) -> None:
        """A complete list had exactly these."""
        before, self._keys = self._keys, set()
        for error in errors:
            self._skip(error)
        for key in before - self._keys:
            self._skipped.understood(self._kind, key)

    def sink_is_stale_after(self, event_type: str, error: DecodeError) -> bool:
        """Take note of a change that did not decode; True if the sink may hold an older state of the object."""
        was_known = error.key in self._keys
        self._skip(error)
        if event_type == "DELETED":
            self._keys.discard(error.key)
            self._skipped.understood(self._kind, error.key)
        return event_type != "ADDED" and not was_known

    def understood(self, changes: Iterable[WatchEvent]) -> None:
        for key in self._keys.intersection(change.object.key for change in changes) if self._keys else ():
            self._keys.discard(key)
            self._skipped.understood(self._kind, key)

    def _skip(self, error: DecodeError) -> None:
        self.skipped_total += 1
        self._keys.add(error.key)
        self._skipped.skip(self._kind, error.key, "decode", error)


class Backoff:
    """Delays of consecutive failures: doubling from 0.1 s to 30 s, spread by chance; `reset` after a success.

    The spread keeps many clients (and the twenty reflectors of one client) from coming back in the same instant after
    a server restart.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._base = FIRST_SECONDS

    def next_delay(self) -> float:
        """Between half and one and a half of the current step, never above the longest."""
        delay = self._base * (0.5 + self._rng.random())
        self._base = min(self._base * 2, LONGEST_SECONDS)
        return min(delay, LONGEST_SECONDS)

    def reset(self) -> None:
        self._base = FIRST_SECONDS
