"""Complete lines out of chunks that are cut anywhere.

A watch sends one JSON document per line; the network cuts it where it likes. All complete lines that are there are
handed out as one piece, so that decoding and delivery are paid per batch and not per event.
"""

from __future__ import annotations

LONGEST_LINE_BYTES = 64 << 20


class LineTooLong(Exception):
    """No end of line in more bytes than any object can have: this is not a watch."""


class LineJoiner:
    """Keeps the unfinished tail until the rest of its line arrives."""

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
