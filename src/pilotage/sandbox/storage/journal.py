"""Durability: an acknowledged write survives kill -9 and power loss.

The store hands every change to the journal in the middle of a synchronous write, so taking it must cost microseconds,
while a disk needs some hundred of them to sync. One thread of the journal's own therefore does group commit: it takes
all changes that have come in, writes them as one frame, syncs, wakes those who wait in `durable()`, and takes what has
come in meanwhile. The more writers, the bigger the groups.

    append() --> pending --> [thread: one frame, one sync] --> durable revision --> futures of durable()
                                             | OSError
                                             +--> lost --> the store takes it back: go_on()

A disk that cannot be written (full, failed) rejects writes without ending anything: what is pending is lost, all of it,
so that what is on disk stays a beginning of what happened, and append() and durable() raise JournalError. When the
store has taken the lost changes back, the disk is tried twice a second, and once it takes as much as it rejected, so
does the journal. Nothing that was lost is ever written later: its authors know that it failed.

Pending changes are bounded in number and bytes; a writer that outruns the disk waits in `append()`. The bound in number
also limits how many revisions a killed process can have handed out without a trace (see journal_recovery.py).
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

from pilotage.sandbox.storage.data_dir import DataDirectory, DataDirError, claim
from pilotage.sandbox.storage.journal_recovery import recover
from pilotage.sandbox.storage.journal_writer import SNAPSHOT_AFTER_BYTES, JournalWriter, PendingWrite, pending
from pilotage.sandbox.storage.records import Change, Record
from pilotage.sandbox.storage.store import JournalError

__all__ = ["DataDirError", "Journal", "JournalError", "open_journal"]

PENDING_LIMIT: Final = 1 << 16
SKIPPED_REVISIONS: Final = PENDING_LIMIT + 1
"""The most that were handed out and left no trace on disk: of pending changes, and of taking them back."""
_PENDING_BYTES_LIMIT: Final = 64 << 20
_BATCH_LIMIT: Final = 4096
_BATCH_BYTES: Final = 4 << 20
_RETRY_SECONDS: Final = 0.5
_LOSSES_REMEMBERED: Final = 64

_Futures: TypeAlias = "list[asyncio.Future[None]]"

_log = logging.getLogger(__name__)


def open_journal(path: Path | str, *, snapshot_after_bytes: int = SNAPSHOT_AFTER_BYTES) -> Journal:
    """Lock and read a data directory, made if it is missing; DataDirError if it cannot be used."""
    directory = claim(Path(path))
    try:
        recovered = recover(directory)
        loaded = list(recovered.records.values())
        revision = recovered.revision + (0 if recovered.ended_in_order else SKIPPED_REVISIONS)
        writer = JournalWriter(directory, recovered, revision, snapshot_after_bytes=snapshot_after_bytes)
    except OSError as error:
        directory.release()
        problem = f"cannot be used: {(error.strerror or str(error)).lower()}"
        raise DataDirError(directory.path, problem, "make it readable and writable, or choose another") from error
    except BaseException:
        directory.release()
        raise
    if recovered.torn_bytes:
        _log.warning(
            "data directory %s: the last %d bytes of %s are an incomplete write and were cut off; it was never "
            "acknowledged",
            directory.path,
            recovered.torn_bytes,
            directory.log(recovered.log_number).name,
        )
    return Journal(directory, writer, revision, loaded)


class Journal:
    """An open data directory. `append` and `durable` belong to the event loop, the writer to the thread."""

    def __init__(self, directory: DataDirectory, writer: JournalWriter, revision: int, loaded: list[Record]) -> None:
        self._directory = directory
        self._writer = writer
        self._loaded = loaded
        self._accepted = revision
        self._durable = revision
        # The lock guards everything below; it is held for microseconds, never during I/O.
        lock = threading.Lock()
        self._work = threading.Condition(lock)
        self._room = threading.Condition(lock)
        self._pending: deque[PendingWrite] = deque()
        self._pending_bytes = 0
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._failure: str | None = None
        self._rejected_bytes = 0
        self._lost: list[Change] = []
        self._losses: deque[range] = deque(maxlen=_LOSSES_REMEMBERED)
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def load(self) -> tuple[int, list[Record]]:
        """The revision to go on from, and the records as they were when the journal was opened."""
        loaded, self._loaded = self._loaded, []
        return self._accepted, loaded

    def append(self, change: Change) -> None:
        """Take the change for the next commit; JournalError if the disk does not take any at present."""
        item = pending(change)
        with self._work:
            self._raise_if_unwritable()
            while len(self._pending) >= PENDING_LIMIT or self._pending_bytes >= _PENDING_BYTES_LIMIT:
                self._room.wait()
                self._raise_if_unwritable()
            self._pending.append(item)
            self._pending_bytes += item.size
            self._accepted = change.revision
            self._work.notify()

    async def durable(self, revision: int) -> None:
        """Return when everything up to `revision` is on disk; JournalError if the disk did not take it."""
        if revision <= self._durable:
            return self._raise_if_lost(revision)
        with self._work:
            if revision <= self._durable:
                return self._raise_if_lost(revision)
            if revision > self._accepted:
                raise ValueError(f"revision {revision} has not been written; the last is {self._accepted}")
            if self._failure is not None:
                raise JournalError(self._failure)
            future = asyncio.get_running_loop().create_future()
            self._waiters.append((revision, future))
        await future

    @property
    def is_writable(self) -> bool:
        """Whether writes are taken, as far as is known."""
        return self._failure is None

    @property
    def lost(self) -> Sequence[Change]:
        """What was taken and is never going to be on disk, oldest first, until `go_on`."""
        return self._lost

    def go_on(self, revision: int) -> None:
        """What was lost is taken back; `revision` is the last one handed out, all that counts up to it is on disk."""
        with self._work:
            self._losses.append(range(self._lost[0].revision, self._lost[-1].revision + 1))
            self._lost = []
            self._accepted = self._durable = revision

    def close(self) -> None:
        """Commit what is pending and let the directory go; JournalError if not everything could be committed."""
        with self._work:
            self._is_closing = True
            self._work.notify()
        self._thread.join()
        self._directory.release()
        if self._durable < self._accepted:
            raise JournalError(self._failure or "closed")

    def _raise_if_lost(self, revision: int) -> None:
        if any(revision in loss for loss in self._losses):
            raise JournalError(f"data directory {self._directory.path}: revision {revision} could not be written")

    def _raise_if_unwritable(self) -> None:
        if self._failure is not None:
            raise JournalError(self._failure)
        if self._is_closing:
            raise JournalError(f"data directory {self._directory.path}: is closed")

    def _run(self) -> None:
        try:
            while self._commit_next():
                self._writer.advance_snapshot()
            self._end_writer()
        except BaseException as error:
            # No one may go on waiting for a thread that is gone.
            self._fail(error)
            _log.exception("the journal of %s has ended; every further write is rejected", self._directory.path)

    def _end_writer(self) -> None:
        if self._durable < self._accepted:
            self._writer.release()
            return
        # Without the mark of an orderly end the next start only leaves out some revisions.
        with suppress(OSError):
            self._writer.close(self._durable)

    def _commit_next(self) -> bool:
        """Commit one group, if there is one; False when the thread is to end."""
        if self._failure is not None:
            return self._try_again()
        batch = self._next_batch()
        if not batch:
            return not self._is_closing
        try:
            self._writer.commit(batch)
        except OSError as error:
            self._rejected_bytes = sum(item.size for item in batch)
            self._fail(error)
            return True
        self._acknowledge(batch)
        return True

    def _next_batch(self) -> list[PendingWrite]:
        """What is pending, up to one group; empty when there is a snapshot to go on with, or the end has come."""
        with self._work:
            while not self._pending and not self._is_closing and not self._writer.is_snapshotting:
                self._work.wait()
            batch: list[PendingWrite] = []
            size = 0
            for item in islice(self._pending, _BATCH_LIMIT):
                batch.append(item)
                size += item.size
                if size >= _BATCH_BYTES:
                    break
            return batch

    def _acknowledge(self, batch: list[PendingWrite]) -> None:
        with self._work:
            for item in batch:
                self._pending.popleft()
                self._pending_bytes -= item.size
            self._durable = durable = batch[-1].change.revision
            ready = [future for revision, future in self._waiters if revision <= durable]
            self._waiters = [waiter for waiter in self._waiters if waiter[0] > durable]
            self._room.notify_all()
        _settle(ready, None)

    def _fail(self, error: BaseException) -> None:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        failure = f"data directory {self._directory.path}: cannot be written: {reason.lower()}"
        if self._writer.is_torn:
            failure += " (nor cut back: a restart may find what was being written)"
        with self._work:
            self._failure = failure
            self._lost += [item.change for item in self._pending]
            self._pending.clear()
            self._pending_bytes = 0
            rejected = [future for _, future in self._waiters]
            self._waiters = []
            self._room.notify_all()
        _log.error("%s; writes are rejected until it can", failure)
        _settle(rejected, failure)

    def _try_again(self) -> bool:
        """See whether the disk can be written again, some time after it could not; False when the thread is to end."""
        with self._work:
            if not self._is_closing:
                self._work.wait(_RETRY_SECONDS)
            if self._is_closing or self._lost:
                return not self._is_closing
        # Nothing is accepted before this has succeeded.
        with suppress(OSError):
            self._writer.go_on(self._accepted, self._rejected_bytes)
            self._failure = None
            _log.warning("data directory %s can be written again", self._directory.path)
        return True


def _settle(futures: _Futures, failure: str | None) -> None:
    """Wake the waiters, each in its own event loop, with one call per loop."""
    by_loop: dict[asyncio.AbstractEventLoop, _Futures] = {}
    for future in futures:
        by_loop.setdefault(future.get_loop(), []).append(future)
    for loop, group in by_loop.items():
        # A loop that has been closed has no one left to wake.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_wake, group, failure)


def _wake(futures: _Futures, failure: str | None) -> None:
    for future in futures:
        if future.done():
            continue
        if failure is None:
            future.set_result(None)
        else:
            future.set_exception(JournalError(failure))
