"""Watches: each reads the store's history at its own pace.

A watch keeps no queue of its own. It remembers the revision up to which it has sent and, when woken by a write, waits
until the write is on disk, takes what came since from the store's history, filters it and sends it as one chunk. A
client that reads too slowly falls behind; when the history no longer reaches back to it, it is sent 410 (as an ERROR
event) and cut, and can list anew. So memory does not depend on how many clients watch or how slowly.

    subscribe -> initial objects (if asked for) -> [wait for a write -> changes since -> filter -> chunk]* -> end

Bookmarks and time limits come from `WatchHub.tick`, which the server calls now and then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pilotage.clock import Clock
from pilotage.sandbox.errors import ApiError, gone
from pilotage.sandbox.http.exchange import encode_json
from pilotage.sandbox.http.presentation import Presentation
from pilotage.sandbox.operations.selection import ObjectSelection
from pilotage.sandbox.storage.records import Change, Record
from pilotage.sandbox.storage.store import Expired, Store

_BOOKMARK_SECONDS: Final = 60.0
_CHUNK_BYTES: Final = 256 * 1024
_KNOWN_MATCHES: Final = 4096
_PREFIXES: Final = {
    name: b'{"type":"%s","object":' % name.encode() for name in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")
}


@dataclass(frozen=True, slots=True)
class WatchScope:
    """What a watch is about."""

    presentation: Presentation
    namespace: str | None
    selection: ObjectSelection
    start: int
    """The revision after which changes are sent."""
    initial: Sequence[Record] | None = None
    """Objects to send as ADDED first."""
    marks_initial_end: bool = False
    wants_bookmarks: bool = False
    timeout_seconds: float | None = None


class Watch:
    """An endless answer: iterate over its chunks, close it when the client is gone."""

    status: Final = 200
    content_type: Final = "application/json"

    def __init__(self, store: Store, scope: WatchScope, clock: Clock, hub: WatchHub) -> None:
        now = clock.monotonic()
        self._store = store
        self._scope = scope
        self._hub = hub
        self._sent = scope.start
        is_about_all = scope.namespace is None and scope.selection.is_everything
        self._takes_lines_as_they_are = is_about_all and scope.presentation.is_verbatim
        self._known_matches: dict[int, bool] = {}
        self._wake = asyncio.Event()
        self._is_over = False
        self._bookmark_is_due = False
        self._next_bookmark = now + _BOOKMARK_SECONDS
        self._deadline = None if scope.timeout_seconds is None else now + scope.timeout_seconds
        self._unsubscribe = store.subscribe(scope.presentation.resource_type.storage, self._on_change)
        hub.add(self)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks()

    def close(self) -> None:
        """End the iteration; safe to call twice."""
        self._is_over = True
        self._unsubscribe()
        self._hub.discard(self)
        self._wake.set()

    def tick(self, now: float) -> None:
        """Time has passed: a bookmark may be due, or the end."""
        if self._deadline is not None and now >= self._deadline:
            self._bookmark_is_due = self._scope.wants_bookmarks
            self._is_over = True
            self._wake.set()
        elif self._scope.wants_bookmarks and now >= self._next_bookmark:
            self._next_bookmark = now + _BOOKMARK_SECONDS
            self._bookmark_is_due = True
            self._wake.set()

    def _on_change(self, change: Change) -> None:
        self._wake.set()

    async def _chunks(self) -> AsyncIterator[bytes]:
        try:
            if self._sent > self._store.revision:
                # The client has seen a state that this server lost (restarted without a data directory).
                yield error_line(gone(f"too large resource version: {self._sent}, current: {self._store.revision}"))
                return
            for chunk in _joined(self._initial_lines()):
                yield chunk
            while True:
                for chunk in _joined(self._new_lines(await self._store.settled())):
                    yield chunk
                if self._is_over:
                    return
                await self._wake.wait()
                self._wake.clear()
        except Expired as error:
            yield error_line(gone(f"too old resource version: {self._sent} ({error.oldest})"))
        finally:
            self.close()

    def _initial_lines(self) -> Iterator[bytes]:
        scope = self._scope
        for record in scope.initial or ():
            yield _line("ADDED", scope.presentation.one(record))
        if scope.marks_initial_end:
            yield _line("BOOKMARK", scope.presentation.bookmark(scope.start, ends_initial=True))

    def _new_lines(self, revision: int) -> Iterator[bytes]:
        """The lines of everything since the last call and up to `revision`, and a bookmark if one is due."""
        storage = self._scope.presentation.resource_type.storage
        changes = self._store.changes_since(storage, self._sent) if revision > self._sent else ()
        for change in changes:
            if change.revision > revision:
                break
            self._sent = change.revision
            line = change.line if self._takes_lines_as_they_are else self._line_of(change)
            if line:
                yield line
        self._sent = max(self._sent, revision)
        if self._bookmark_is_due:
            self._bookmark_is_due = False
            yield _line("BOOKMARK", self._scope.presentation.bookmark(self._sent, ends_initial=False))

    def _line_of(self, change: Change) -> bytes:
        """The change as this watch sees it: nothing, or an event whose type depends on what matched before."""
        scope = self._scope
        if scope.namespace is not None and change.record.key.namespace != scope.namespace:
            return b""
        if scope.selection.is_everything:
            if scope.presentation.is_verbatim:
                return change.line
            return _line(change.type, scope.presentation.one(change.record))
        before = change.previous is not None and self._matched(change.previous)
        after = change.type != "DELETED" and self._matches(change.record)
        if after:
            kind = "MODIFIED" if before else "ADDED"
            if kind == change.type and scope.presentation.is_verbatim:
                return change.line
            return _line(kind, scope.presentation.one(change.record))
        if before and change.previous is not None:
            # It left the selection: the client sees the last state that it knows about, at the revision of the change.
            return _line("DELETED", scope.presentation.one(_restamped(change)))
        return b""

    def _matches(self, record: Record) -> bool:
        known = self._known_matches
        if len(known) >= _KNOWN_MATCHES:
            known.clear()
        matches = known[record.revision] = self._scope.selection.matches(record)
        return matches

    def _matched(self, previous: Record) -> bool:
        """Most records are followed by the next one soon: the answer is still known."""
        known = self._known_matches.pop(previous.revision, None)
        return self._scope.selection.matches(previous) if known is None else known


class WatchHub:
    """The open watches of a server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._watches: dict[Watch, None] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._watches)

    def add(self, watch: Watch) -> None:
        self._watches[watch] = None
        if self._is_closed:
            watch.close()

    def discard(self, watch: Watch) -> None:
        self._watches.pop(watch, None)

    def tick(self) -> None:
        now = self._clock.monotonic()
        for watch in list(self._watches):
            watch.tick(now)

    def close(self) -> None:
        """End every watch, and those that are still to come."""
        self._is_closed = True
        for watch in list(self._watches):
            watch.close()


def error_line(error: ApiError) -> bytes:
    return _line("ERROR", encode_json(error.status()))


def _restamped(change: Change) -> Record:
    if change.type == "DELETED" or change.previous is None:
        return change.record
    obj = change.previous.object()
    obj["metadata"]["resourceVersion"] = str(change.revision)
    previous = change.previous
    return Record(previous.key, change.revision, encode_json(obj), previous.uid, previous.labels)


def _line(kind: str, body: bytes) -> bytes:
    return b"%b%b}\n" % (_PREFIXES[kind], body)


def _joined(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Lines in chunks of a size that a socket takes gladly; as few as possible."""
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if size >= _CHUNK_BYTES:
            yield b"".join(batch)
            batch.clear()
            size = 0
    if batch:
        yield b"".join(batch)
