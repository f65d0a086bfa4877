"""The versioned store under the sandbox's API server: every object, one counter of revisions, and who listens.

Kubernetes clients rely on four guarantees, which this file gives:

1. Each write gets the next revision, one counter for all resources; the object carries it as its resourceVersion.
2. An update or deletion that expects a revision fails with `Conflict` if another write came first.
3. A list at revision R and the changes since R together miss nothing and show nothing twice, as long as
   the history reaches back to R; if it does not, `Expired` says so instead of leaving a gap.
4. Listeners hear of every write once, in order, after it has happened.

The store is synchronous and does no I/O. With a journal each write is handed to it before it shows in memory (a journal
that cannot write any more rejects it there) and `durable()` waits until it is on disk. What the journal could not write
is taken back before the failure is reported: the store then holds what the disk holds. No one outside may be shown a
revision before `durable()` has returned for it; listeners inside hear that the objects went and came again as they are
on disk.

Objects come in as dicts. A write stamps `metadata.resourceVersion` into the dict it is given, encodes it and keeps only
the bytes, so the caller may go on using the dict.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from pilotage.sandbox.storage.history import Expired, History
from pilotage.sandbox.storage.records import NO_LABELS, Change, ChangeType, Key, Record
from pilotage.sandbox.storage.resource_records import ResourceRecords

__all__ = [
    "AlreadyExists",
    "Change",
    "Conflict",
    "Durability",
    "Expired",
    "JournalError",
    "Key",
    "NotFound",
    "Record",
    "Store",
]

Records: TypeAlias = list[Record]
Changes: TypeAlias = list[Change]
Names: TypeAlias = list[str]
Listener: TypeAlias = Callable[[Change], None]

_log = logging.getLogger(__name__)
_encode_into = msgspec.json.Encoder().encode_into


class AlreadyExists(Exception):
    def __init__(self, key: Key) -> None:
        super().__init__(f"{key} already exists")
        self.key = key


class NotFound(Exception):
    def __init__(self, key: Key) -> None:
        super().__init__(f"{key} not found")
        self.key = key


class Conflict(Exception):
    def __init__(self, key: Key, expected: int, actual: int) -> None:
        super().__init__(f"{key} is at revision {actual}, not {expected}")
        self.key = key
        self.expected = expected
        self.actual = actual


class JournalError(Exception):
    """The write is not on disk, or was rejected; the message names the directory and the reason."""


class Durability(Protocol):
    """What the store asks of a journal."""

    def load(self) -> tuple[int, Iterable[Record]]:
        """The revision to go on from and all live records."""

    def append(self, change: Change) -> None:
        """Take the change to be written soon; JournalError if it cannot be."""

    async def durable(self, revision: int) -> None:
        """Return when everything up to `revision` is on disk; JournalError if it cannot be."""

    @property
    def is_writable(self) -> bool:
        """Whether writes are taken, as far as is known."""

    @property
    def lost(self) -> Sequence[Change]:
        """The last changes taken, oldest first, if they are never going to be on disk; nothing is taken meanwhile."""

    def go_on(self, revision: int) -> None:
        """They are taken back; `revision` is the last one handed out."""


class _Subscription:
    __slots__ = ("is_active", "listener", "since")

    def __init__(self, listener: Listener, since: int) -> None:
        self.listener = listener
        self.since = since
        self.is_active = True


class Store:
    """All objects of the sandbox. With a journal, it starts from what the journal holds."""

    def __init__(self, *, history: int, journal: Durability | None = None) -> None:
        self._journal = journal
        self._by_resource: dict[str, ResourceRecords] = {}
        self._revision = 0
        if journal is not None:
            self._revision, records = journal.load()
            for record in records:
                self._records_of(record.key.resource).put(record)
        self._history = History(history, self._revision)
        self._subscriptions: dict[str | None, tuple[_Subscription, ...]] = {}
        self._audience: dict[str, tuple[_Subscription, ...]] = {}
        self._outbox: deque[Change] = deque()
        self._encoded = bytearray()
        self._is_delivering = False

    @property
    def has_journal(self) -> bool:
        """Whether writes have to be waited for to be durable."""
        return self._journal is not None

    @property
    def is_writable(self) -> bool:
        """Whether writes are taken at present; the journal tries by itself until they are."""
        return self._journal is None or self._journal.is_writable

    @property
    def revision(self) -> int:
        """The revision of the last write."""
        return self._revision

    def get(self, key: Key) -> Record | None:
        kept = self._by_resource.get(key.resource)
        return None if kept is None else kept.records.get(key)

    def list(self, resource: str, namespace: str | None = None) -> Records:
        """The live records of a resource (in one namespace, if given), sorted by namespace and name."""
        kept = self._by_resource.get(resource)
        if kept is None:
            return []
        return kept.sorted() if namespace is None else kept.sorted_in(resource, namespace)

    def count(self, resource: str) -> int:
        kept = self._by_resource.get(resource)
        return 0 if kept is None else len(kept.records)

    def resources(self) -> Names:
        """The resources that have live records, sorted."""
        return sorted(resource for resource, kept in self._by_resource.items() if kept.records)

    def create(self, key: Key, obj: dict[str, Any]) -> Record:
        if self.get(key) is not None:
            raise AlreadyExists(key)
        record = self._stamp(key, obj)
        self._write("ADDED", record, None)
        return record

    def update(self, key: Key, obj: dict[str, Any], *, expect: int | None = None) -> Record:
        """Replace the object; with `expect`, only if its revision is still that one."""
        previous = self._expected(key, expect)
        record = self._stamp(previous.key, obj)
        self._write("MODIFIED", record, previous)
        return record

    def delete(self, key: Key, obj: dict[str, Any] | None = None, *, expect: int | None = None) -> Record:
        """Remove the object and return its last state (`obj` if given), stamped with the revision of the deletion."""
        previous = self._expected(key, expect)
        record = self._stamp(previous.key, previous.object() if obj is None else obj)
        self._write("DELETED", record, previous)
        return record

    def changes_since(self, resource: str, revision: int) -> Changes:
        """Every change of `resource` after `revision`, oldest first; Expired if the history starts later."""
        return self._history.since(resource, revision)

    def subscribe(self, resource: str | None, listener: Listener) -> Callable[[], None]:
        """Call `listener` after each write from now on (None: of any resource); returns the function that ends it.

        A listener may write and subscribe: what it writes is delivered after the change in hand, so that every
        listener sees the writes in their order. A listener that raises is logged and the others still hear.
        """
        subscription = _Subscription(listener, self._revision)
        self._audience.clear()
        self._subscriptions[resource] = (*self._subscriptions.get(resource, ()), subscription)

        def unsubscribe() -> None:
            subscription.is_active = False
            self._audience.clear()
            others = tuple(other for other in self._subscriptions.get(resource, ()) if other is not subscription)
            if others:
                self._subscriptions[resource] = others
            else:
                self._subscriptions.pop(resource, None)

        return unsubscribe

    async def durable(self, revision: int) -> None:
        """Return when everything up to `revision` is on disk; at once without a journal.

        JournalError: it could not be written, and is taken back.
        """
        if self._journal is None:
            return
        try:
            await self._journal.durable(revision)
        except JournalError:
            self.take_back_lost()
            raise

    async def settled(self) -> int:
        """The revision of now, when everything up to it is on disk; what could not be written is taken back."""
        while True:
            revision = self._revision
            try:
                await self.durable(revision)
            except JournalError:
                continue
            return revision

    def take_back_lost(self) -> None:
        """Return to what the journal has on disk, if it lost changes; needed where no one waits in `durable()`."""
        journal = self._journal
        if journal is None or not journal.lost:
            return
        lost = journal.lost
        first: dict[Key, Change] = {}
        for change in lost:
            first.setdefault(change.record.key, change)
        gone = [record for key in reversed(first) if (record := self.get(key)) is not None]
        kept = [change.previous for change in first.values() if change.previous is not None]
        kept.sort(key=lambda record: record.revision)
        # One more revision, so that subscribers who listed the lost changes hear of their end.
        self._revision += 1
        self._history.cut(lost[0].revision - 1)
        for record in gone:
            self._records_of(record.key.resource).remove(record.key)
        for record in kept:
            self._records_of(record.key.resource).put(record)
        journal.go_on(self._revision)
        # Also what was only altered goes and comes: listeners with notes about an object drop them when it goes.
        self._outbox.extend(Change("DELETED", record, record, self._revision) for record in gone)
        self._outbox.extend(Change("ADDED", record, None, self._revision) for record in kept)
        if not self._is_delivering:
            self._deliver()

    def check(self) -> None:
        """Records carry their own, distinct revisions, no later than the store's; records and history are whole."""
        revisions: set[int] = set()
        for resource, kept in self._by_resource.items():
            kept.check()
            for key, record in kept.records.items():
                assert key.resource == resource, "a record is among those of its resource"
                stamped = record.object()["metadata"]["resourceVersion"]
                assert stamped == str(record.revision), "an object carries the revision that wrote it"
                assert 0 < record.revision <= self._revision, "no record is newer than the store"
                assert record.revision not in revisions, "a revision is used once"
                revisions.add(record.revision)
        self._history.check()
        assert self._is_delivering or not self._outbox, "a write returns when its listeners have heard"

    def _records_of(self, resource: str) -> ResourceRecords:
        kept = self._by_resource.get(resource)
        if kept is None:
            kept = self._by_resource[resource] = ResourceRecords()
        return kept

    def _expected(self, key: Key, expect: int | None) -> Record:
        current = self.get(key)
        if current is None:
            raise NotFound(key)
        if expect is not None and expect != current.revision:
            raise Conflict(key, expect, current.revision)
        return current

    def _stamp(self, key: Key, obj: dict[str, Any]) -> Record:
        revision = self._revision + 1
        metadata = obj["metadata"]
        metadata["resourceVersion"] = str(revision)
        labels = metadata.get("labels")
        # By way of one reused buffer: encoded directly, a body would be cut from a bigger piece of memory, and the
        # offcuts, too small for the next body, would cost half as much again as the bodies themselves.
        _encode_into(obj, self._encoded)
        body = bytes(self._encoded)
        return Record(key, revision, body, metadata.get("uid", ""), dict(labels) if labels else NO_LABELS)

    def _write(self, kind: ChangeType, record: Record, previous: Record | None) -> None:
        change = Change(kind, record, previous, record.revision)
        if self._journal is not None:
            try:
                self._journal.append(change)
            except JournalError:
                self.take_back_lost()
                raise
        self._revision = record.revision
        resource = record.key.resource
        kept = self._by_resource.get(resource) or self._records_of(resource)
        if kind == "DELETED":
            kept.remove(record.key)
        else:
            kept.put(record)
        self._history.append(change)
        self._outbox.append(change)
        if not self._is_delivering:
            self._deliver()

    def _deliver(self) -> None:
        self._is_delivering = True
        try:
            while self._outbox:
                change = self._outbox.popleft()
                _announce(change, self._audience_of(change.record.key.resource))
        finally:
            self._is_delivering = False

    def _audience_of(self, resource: str) -> tuple[_Subscription, ...]:
        """Who hears of changes of the resource: remembered, because it is asked for by every write."""
        audience = self._audience.get(resource)
        if audience is None:
            audience = self._subscriptions.get(None, ()) + self._subscriptions.get(resource, ())
            self._audience[resource] = audience
        return audience


def _announce(change: Change, audience: tuple[_Subscription, ...]) -> None:
    revision = change.revision
    for subscription in audience:
        # Subscribed by a listener while this change waited: its list already showed the change.
        if not subscription.is_active or revision <= subscription.since:
            continue
        try:
            subscription.listener(change)
        except Exception:
            # The write has happened: a listener that fails must not make it look as if it had not.
            _log.exception("a listener failed on %s of %s", change.type, change.record.key)
