"""What was answered with an error is not there afterwards, and what was acknowledged is: on disks that fail."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pilotage.sandbox.storage import journal_log
from pilotage.sandbox.storage.data_dir import claim
from pilotage.sandbox.storage.journal import Journal, JournalError, open_journal
from pilotage.sandbox.storage.journal_recovery import recover
from pilotage.sandbox.storage.journal_writer import SNAPSHOT_AFTER_BYTES
from pilotage.sandbox.storage.store import AlreadyExists, Change, Expired, Key, NotFound, Store
from tests.sandbox.failing_disk import Disk

KEYS = [Key(resource, "default", f"n{number}") for resource in ("pods", "jobs.batch") for number in range(4)]
Bodies = dict[Key, bytes]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


class Opened:
    """A store on a data directory, and what two kinds of followers make of it."""

    def __init__(self, path: Path, snapshot_after_bytes: int = SNAPSHOT_AFTER_BYTES) -> None:
        self.path = path
        self.journal: Journal = open_journal(path, snapshot_after_bytes=snapshot_after_bytes)
        self.store = Store(history=1000, journal=self.journal)
        self.heard: Bodies = bodies_in(self.store)
        self.watched: Bodies = bodies_in(self.store)
        self._watched_to = self.store.revision
        self._is_closed = False
        self.store.subscribe(None, self._hear)

    def _hear(self, change: Change) -> None:
        if change.type == "DELETED":
            del self.heard[change.record.key]
        else:
            assert (change.record.key in self.heard) == (change.type == "MODIFIED")
            self.heard[change.record.key] = change.record.body

    async def watch(self) -> None:
        """Take what a watch takes: everything that is on disk by now, nothing else."""
        revision = await self.store.settled()
        for resource in ("pods", "jobs.batch"):
            for change in self.store.changes_since(resource, self._watched_to):
                if change.revision > revision:
                    break
                if change.type == "DELETED":
                    del self.watched[change.record.key]
                else:
                    self.watched[change.record.key] = change.record.body
        self._watched_to = revision

    def after_a_kill(self, place: Path) -> Bodies:
        shutil.copytree(self.path, place)
        directory = claim(place)
        records = recover(directory).records
        directory.release()
        shutil.rmtree(place)
        return {key: record.body for key, record in records.items()}

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self.store.take_back_lost()
            self.journal.close()

    async def until_writable(self) -> None:
        self.store.take_back_lost()
        await until(lambda: self.store.is_writable)


@pytest.fixture
def opened(tmp_path: Path, disk: Disk) -> Iterator[Opened]:
    opened = Opened(tmp_path / "data")
    yield opened
    disk.repair()
    opened.close()


def bodies_in(store: Store) -> Bodies:
    return {record.key: record.body for resource in store.resources() for record in store.list(resource)}


def obj(key: Key, text: str = "") -> dict[str, Any]:
    return {"metadata": {"name": key.name, "uid": f"uid-{text}"}, "spec": text}


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for the journal's thread."""
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 - a thread sets no event of ours
            await asyncio.sleep(0.002)


async def is_durable(store: Store, revision: int) -> bool:
    try:
        await store.durable(revision)
    except JournalError:
        return False
    return True


@pytest.mark.parametrize("arrives", [0.0, 0.5, 1.0])
async def test_creations_updates_and_deletions_that_failed_are_taken_back(
    opened: Opened, disk: Disk, tmp_path: Path, arrives: float
) -> None:
    store, (a, b, c, *_) = opened.store, KEYS
    store.create(a, obj(a, "old"))
    await store.durable(store.create(b, obj(b, "old")).revision)
    before, revisions = bodies_in(store), [store.get(key) for key in (a, b)]
    with disk.failing(arrives=arrives):
        failed = [store.update(a, obj(a, "new")).revision, store.delete(b).revision, store.create(c, obj(c)).revision]
        failed += [store.create(b, obj(b, "another")).revision, store.update(c, obj(c, "more")).revision]
        outcomes = await asyncio.gather(*(is_durable(store, revision) for revision in failed))
        assert not any(outcomes)
        assert bodies_in(store) == opened.heard == before
        assert [store.get(key) for key in (a, b)] == revisions, "the revisions are those on disk again"
        await opened.watch()
        assert opened.watched == before
        assert opened.after_a_kill(tmp_path / "killed") == before
        store.check()
        with pytest.raises(JournalError, match="cannot be written: no space left on device"):
            store.create(c, obj(c))
    await opened.until_writable()
    revision = store.create(c, obj(c)).revision
    assert revision > max(failed), "a revision is used once"
    await store.durable(revision)
    assert bodies_in(store) == opened.after_a_kill(tmp_path / "killed") == {**before, c: store.list("pods")[2].body}


async def test_a_subscriber_who_listed_what_was_lost_hears_of_its_end(opened: Opened, disk: Disk) -> None:
    heard: list[tuple[str, str]] = []
    with disk.failing():
        opened.store.create(KEYS[0], obj(KEYS[0]))
        opened.store.subscribe("pods", lambda change: heard.append((change.type, change.record.key.name)))
        await opened.store.settled()
    assert heard == [("DELETED", "n0")]


async def test_a_listener_that_writes_when_the_disk_has_failed_sees_the_store_as_it_is_on_disk(
    opened: Opened, disk: Disk
) -> None:
    store = opened.store
    seen: list[Bodies] = []

    def answer(change: Change) -> None:
        if change.record.key == KEYS[1]:
            with suppress(JournalError):
                while True:
                    store.update(KEYS[1], obj(KEYS[1], "again"))
            seen.append(bodies_in(store))

    store.subscribe("pods", answer)
    with disk.failing():
        store.create(KEYS[0], obj(KEYS[0]))
        store.create(KEYS[1], obj(KEYS[1]))
        assert await store.settled() == store.revision
    assert seen and not any(seen)
    assert bodies_in(store) == opened.heard == {}
    store.check()


async def test_a_frame_that_cannot_be_cut_off_is_reported(
    opened: Opened, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: int, size: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch, disk.failing(arrives=1.0):
        patch.setattr("pilotage.sandbox.storage.journal_log.os.ftruncate", refuse)
        with pytest.raises(JournalError, match="a restart may find what was being written"):
            await opened.store.durable(opened.store.create(KEYS[0], obj(KEYS[0])).revision)
        assert bodies_in(opened.store) == {}
    await opened.until_writable()
    opened.close()
    again = open_journal(opened.path)
    assert bodies_in(Store(history=1, journal=again)) == {}, "it was cut off when the disk came back"
    again.close()


async def test_a_disk_with_room_for_the_mark_alone_stays_rejected(
    opened: Opened, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    write_all = journal_log._write_all

    def refuse_large(file: int, header: bytes, payload: bytes) -> int:
        sizes.append(len(payload))
        if len(payload) > 1000:
            raise OSError(28, "No space left on device")
        return write_all(file, header, payload)

    monkeypatch.setattr(journal_log, "_write_all", refuse_large)
    assert not await is_durable(opened.store, opened.store.create(KEYS[0], obj(KEYS[0], "x" * 2000)).revision)
    await until(lambda: len(sizes) >= 5)
    assert not opened.store.is_writable
    assert min(sizes[1:]) >= 2000
    monkeypatch.setattr(journal_log, "_write_all", write_all)
    await opened.until_writable()


@pytest.mark.parametrize("has_snapshots", [False, True])
@pytest.mark.parametrize("seed", range(8))
async def test_random_writes_and_failures_leave_exactly_what_was_acknowledged(
    disk: Disk, tmp_path: Path, seed: int, has_snapshots: bool
) -> None:
    """The model knows acknowledged writes only; store, listeners, watches and the next start must agree with it."""
    opened = Opened(tmp_path / "data", 10_000 if has_snapshots else SNAPSHOT_AFTER_BYTES)
    rng = random.Random(seed)
    model: Bodies = {}
    failures = 0
    for step in range(60):
        if rng.random() < 0.4:
            disk.fail(rng.randrange(3), rng.choice([0.0, 0.3, 1.0]))
        written = [write for number in range(rng.randrange(1, 20)) if (write := random_write(opened, rng, number))]
        if rng.random() < 0.5:
            await asyncio.sleep(0.001)
            written += [write for number in range(5) if (write := random_write(opened, rng, number))]
        outcomes = await asyncio.gather(*(is_durable(opened.store, revision) for revision, _, _ in written))
        failures += outcomes.count(False)
        assert outcomes == sorted(outcomes, reverse=True), "only the last writes are lost"
        for (_, key, body), is_acknowledged in zip(written, outcomes, strict=True):
            if is_acknowledged:
                model.pop(key, None)
                model.update({} if body is None else {key: body})
        await opened.store.settled()
        assert bodies_in(opened.store) == opened.heard == model
        with suppress(Expired):
            await opened.watch()
            assert opened.watched == model
        opened.store.check()
        # A copy made while a snapshot replaces logs is no state that a kill leaves.
        if not has_snapshots and (step % 10 == 0 or False in outcomes):
            assert opened.after_a_kill(tmp_path / "killed") == model
        disk.repair()
        await opened.until_writable()
    assert failures
    opened.close()
    assert opened.after_a_kill(tmp_path / "killed") == model


def random_write(opened: Opened, rng: random.Random, number: int) -> tuple[int, Key, bytes | None] | None:
    """Revision, key and body (None: deleted) of a write that was taken."""
    store, key = opened.store, rng.choice(KEYS)
    with suppress(AlreadyExists, NotFound, JournalError):
        match rng.randrange(3):
            case 0:
                record = store.create(key, obj(key, f"{rng.random()}" * rng.randrange(30)))
            case 1:
                record = store.update(key, obj(key, f"{number}"))
            case _:
                return store.delete(key).revision, key, None
        return record.revision, key, record.body
    return None
