"""What survives a restart, a torn tail, damage and a disk that refuses to be written.

A kill is played by letting the journal's files be copied while it is open: the copy is what a kill at that moment
would leave behind. Real kills are in test_journal_crash.py.
"""

from __future__ import annotations

import asyncio
import resource
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pilotage.sandbox.storage.data_dir import claim
from pilotage.sandbox.storage.journal import SKIPPED_REVISIONS, DataDirError, Journal, JournalError, open_journal
from pilotage.sandbox.storage.journal_recovery import recover
from pilotage.sandbox.storage.journal_writer import JournalWriter, PendingWrite
from pilotage.sandbox.storage.store import Expired, Key, Store


def key(name: str) -> Key:
    return Key("pods", "default", name)


def pod(name: str, size: int = 0) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "labels": {"app": name}}, "spec": "x" * size}


def opened(path: Path, **options: int) -> tuple[Store, Journal]:
    journal = open_journal(path, **options)
    return Store(history=100, journal=journal), journal


def names_in(path: Path) -> list[str]:
    store, journal = opened(path)
    journal.close()
    return [record.key.name for record in store.list("pods")]


def copy_as_left_by_a_kill(path: Path, to: Path) -> Path:
    shutil.copytree(path, to)
    return to


def numbers(path: Path, stem: str) -> list[int]:
    return sorted(int(file.name[-8:]) for file in path.glob(f"{stem}-????????"))


def size_of(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir())


def last_log(path: Path) -> Path:
    return max(path.glob("log-*"))


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """A disk that is full: the kernel refuses to let any file grow beyond `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_restart_finds_the_same_records_and_goes_on_with_the_revision(tmp_path: Path) -> None:
    store, journal = opened(tmp_path)
    store.create(key("a"), pod("a"))
    store.create(key("b"), pod("b"))
    store.create(Key("nodes", "", "ünïcode"), {"metadata": {"name": "ünïcode"}})
    store.update(key("a"), {**pod("a"), "kept": [1, None, "two"]})
    store.delete(key("b"))
    journal.close()
    again, journal = opened(tmp_path)
    assert again.revision == store.revision == 5
    assert again.list("pods") == store.list("pods")
    assert again.list("nodes") == store.list("nodes")
    assert again.create(key("c"), pod("c")).revision == 6
    again.check()
    journal.close()


async def test_watch_from_before_the_restart_is_expired(tmp_path: Path) -> None:
    store, journal = opened(tmp_path)
    store.create(key("a"), pod("a"))
    store.create(key("b"), pod("b"))
    journal.close()
    again, journal = opened(tmp_path)
    assert again.changes_since("pods", 2) == []
    with pytest.raises(Expired) as rejection:
        again.changes_since("pods", 1)
    assert rejection.value.oldest == 2
    journal.close()


async def test_durable_write_survives_a_kill(tmp_path: Path) -> None:
    store, journal = opened(tmp_path / "data")
    for number in range(50):
        name = f"pod-{number:02d}"
        await store.durable(store.create(key(name), pod(name)).revision)
    await store.durable(store.delete(key("pod-00")).revision)
    left = copy_as_left_by_a_kill(tmp_path / "data", tmp_path / "left")
    assert names_in(left) == [f"pod-{number:02d}" for number in range(1, 50)]
    journal.close()


async def test_durable_returns_at_once_for_what_is_on_disk_and_rejects_what_was_never_written(tmp_path: Path) -> None:
    store, journal = opened(tmp_path)
    await store.durable(store.create(key("a"), pod("a")).revision)
    await store.durable(0)
    with pytest.raises(ValueError, match="revision 2 has not been written"):
        await store.durable(2)
    journal.close()


async def test_many_waiters_are_woken_and_a_cancelled_one_harms_no_one(tmp_path: Path) -> None:
    store, journal = opened(tmp_path)
    async with asyncio.TaskGroup() as group:
        for number in range(100):
            record = store.create(key(str(number)), pod(str(number)))
            task = group.create_task(store.durable(record.revision))
            if number % 7 == 0:
                task.cancel()
    await store.durable(100)
    journal.close()


def test_journal_can_be_awaited_from_one_event_loop_after_another(tmp_path: Path) -> None:
    store, journal = opened(tmp_path)
    for name in ("a", "b"):
        asyncio.run(store.durable(store.create(key(name), pod(name)).revision))
    journal.close()
    assert names_in(tmp_path) == ["a", "b"]


async def test_revisions_of_a_killed_process_are_not_used_again(tmp_path: Path) -> None:
    """A watcher may have seen revisions that never reached the disk; a new object must not come under one of them."""
    store, journal = opened(tmp_path / "data")
    await store.durable(store.create(key("a"), pod("a")).revision)
    before = copy_as_left_by_a_kill(tmp_path / "data", tmp_path / "left")
    seen = store.create(key("b"), pod("b")).revision
    journal.close()

    first, journal = opened(before)
    assert first.revision == seen - 1 + SKIPPED_REVISIONS
    killed_again = copy_as_left_by_a_kill(before, tmp_path / "left-again")
    lost = first.create(key("c"), pod("c")).revision
    journal.close()

    second, journal = opened(killed_again)
    assert second.revision >= lost
    second.check()
    journal.close()


async def test_orderly_end_skips_no_revision_even_if_nothing_was_written(tmp_path: Path) -> None:
    store, journal = opened(tmp_path)
    store.create(key("a"), pod("a"))
    journal.close()
    for _ in range(3):
        store, journal = opened(tmp_path)
        assert store.revision == 1
        journal.close()


async def test_torn_tail_is_cut_off_and_everything_before_it_stays(tmp_path: Path) -> None:
    store, journal = opened(tmp_path / "data")
    for name in ("a", "b"):
        await store.durable(store.create(key(name), pod(name)).revision)
    good = last_log(tmp_path / "data").stat().st_size
    await store.durable(store.create(key("c"), pod("c")).revision)
    whole = last_log(tmp_path / "data").stat().st_size
    for size in (good, good + 1, good + 8, good + 13, whole - 1):
        left = copy_as_left_by_a_kill(tmp_path / "data", tmp_path / f"left-{size}")
        with last_log(left).open("r+b") as file:
            file.truncate(size)
        assert names_in(left) == ["a", "b"]
        assert names_in(left) == ["a", "b"], "opening it once more finds no tail"
    journal.close()


@pytest.mark.parametrize("tail", [b"\0" * 5000, b"\xff" * 77, b"\xffPJ\xfe\xff\xff\xff\xff1234"])
async def test_garbage_behind_the_last_frame_is_cut_off(tmp_path: Path, tail: bytes) -> None:
    store, journal = opened(tmp_path / "data")
    await store.durable(store.create(key("a"), pod("a")).revision)
    left = copy_as_left_by_a_kill(tmp_path / "data", tmp_path / "left")
    with last_log(left).open("ab") as file:
        file.write(tail)
    again, second = opened(left)
    await again.durable(again.create(key("b"), pod("b")).revision)
    second.close()
    assert names_in(left) == ["a", "b"]
    journal.close()


async def test_damage_before_the_last_frame_is_rejected_and_left_as_it_is(tmp_path: Path) -> None:
    store, journal = opened(tmp_path)
    for name in ("a", "b", "c"):
        await store.durable(store.create(key(name), pod(name)).revision)
    journal.close()
    log = last_log(tmp_path)
    damaged = log.read_bytes().replace(b"uid-a", b"uid-X")
    log.write_bytes(damaged)
    with pytest.raises(DataDirError, match=r"log-00000001 is damaged at byte \d+; restore it from a copy"):
        open_journal(tmp_path)
    assert log.read_bytes() == damaged
    with pytest.raises(DataDirError, match="damaged"):
        open_journal(tmp_path)


async def test_snapshot_replaces_the_logs_before_it(tmp_path: Path) -> None:
    store, journal = opened(tmp_path, snapshot_after_bytes=20_000)
    for round_ in range(40):
        for name in ("a", "b", "c"):
            write = store.update if store.get(key(name)) else store.create
            await store.durable(write(key(name), pod(name, size=1000 + round_)).revision)
    store.create(key("d"), pod("d"))
    store.delete(key("b"))
    journal.close()
    assert numbers(tmp_path, "snapshot") == numbers(tmp_path, "log") != [1]
    assert size_of(tmp_path) < 60_000
    again, journal = opened(tmp_path)
    assert again.list("pods") == store.list("pods")
    assert again.revision == store.revision == 122
    journal.close()


async def test_missing_log_is_rejected(tmp_path: Path) -> None:
    store, journal = opened(tmp_path, snapshot_after_bytes=2_000)
    store.create(key("a"), pod("a"))
    for _ in range(10):
        await store.durable(store.update(key("a"), pod("a", size=1000)).revision)
    journal.close()
    log = last_log(tmp_path)
    log.unlink()
    with pytest.raises(DataDirError, match=f"{log.name} is missing; restore it"):
        open_journal(tmp_path)


async def test_log_that_is_torn_although_another_follows_is_rejected(tmp_path: Path) -> None:
    store, journal = opened(tmp_path, snapshot_after_bytes=2_000)
    (tmp_path / "snapshot-00000002.tmp").mkdir()
    store.create(key("a"), pod("a", size=1500))
    for _ in range(3):
        await store.durable(store.update(key("a"), pod("a", size=500)).revision)
    journal.close()
    (tmp_path / "snapshot-00000002.tmp").rmdir()
    assert numbers(tmp_path, "log") == [1, 2]
    with (tmp_path / "log-00000001").open("r+b") as file:
        file.truncate(600)
    with pytest.raises(DataDirError, match="log-00000001 is damaged at byte"):
        open_journal(tmp_path)


async def test_log_that_was_begun_but_never_written_changes_nothing(tmp_path: Path) -> None:
    store, journal = opened(tmp_path / "data")
    await store.durable(store.create(key("a"), pod("a")).revision)
    left = copy_as_left_by_a_kill(tmp_path / "data", tmp_path / "left")
    (left / "log-00000002").touch()
    with (left / "log-00000001").open("ab") as file:
        file.write(b"torn")
    assert names_in(left) == ["a"]
    journal.close()


async def test_damaged_snapshot_is_rejected(tmp_path: Path) -> None:
    store, journal = opened(tmp_path, snapshot_after_bytes=2_000)
    store.create(key("a"), pod("a"))
    while not numbers(tmp_path, "snapshot"):
        await store.durable(store.update(key("a"), pod("a", size=1000)).revision)
    journal.close()
    snapshot = tmp_path / f"snapshot-{numbers(tmp_path, 'snapshot')[-1]:08d}"
    with snapshot.open("r+b") as file:
        file.truncate(snapshot.stat().st_size - 1)
    with pytest.raises(DataDirError, match=f"{snapshot.name} is damaged"):
        open_journal(tmp_path)


async def test_full_disk_rejects_writes_keeps_what_was_acknowledged_and_recovers(tmp_path: Path) -> None:
    store, journal = opened(tmp_path / "data")
    await store.durable(store.create(key("a"), pod("a", size=5000)).revision)
    size = last_log(tmp_path / "data").stat().st_size
    with no_file_beyond(size + 1000):
        taken = store.create(key("b"), pod("b", size=5000))
        with pytest.raises(JournalError, match="cannot be written: file too large"):
            await store.durable(taken.revision)
        with pytest.raises(JournalError, match="cannot be written"):
            store.create(key("refused"), pod("refused"))
        with pytest.raises(JournalError, match="could not be written"):
            await store.durable(taken.revision)
        assert [record.key.name for record in store.list("pods")] == ["a"]
        assert store.revision > taken.revision
        store.check()
        left = copy_as_left_by_a_kill(tmp_path / "data", tmp_path / "left")
    assert names_in(left) == ["a"]
    await until_it_can_be_written(store)
    await store.durable(store.create(key("c"), pod("c")).revision)
    with pytest.raises(JournalError, match="could not be written"):
        await store.durable(taken.revision)
    journal.close()
    assert names_in(tmp_path / "data") == ["a", "c"]


async def until_it_can_be_written(store: Store) -> None:
    async with asyncio.timeout(20):
        while not store.is_writable:  # noqa: ASYNC110 - a thread sets no event of ours
            await asyncio.sleep(0.02)


async def test_close_says_if_something_could_not_be_written(tmp_path: Path) -> None:
    store, journal = opened(tmp_path)
    await store.durable(store.create(key("a"), pod("a")).revision)
    with no_file_beyond(last_log(tmp_path).stat().st_size):
        store.create(key("b"), pod("b"))
        with pytest.raises(JournalError, match="cannot be written"):
            journal.close()
    assert names_in(tmp_path) == ["a"]


async def test_snapshot_that_cannot_be_written_costs_no_write_and_is_tried_again(tmp_path: Path) -> None:
    obstacle = tmp_path / "snapshot-00000002.tmp"
    store, journal = opened(tmp_path, snapshot_after_bytes=10_000)
    obstacle.mkdir()
    store.create(key("a"), pod("a"))
    for _ in range(15):
        await store.durable(store.update(key("a"), pod("a", size=1000)).revision)
    assert (numbers(tmp_path, "snapshot"), numbers(tmp_path, "log")) == ([], [1, 2])
    left = copy_as_left_by_a_kill(tmp_path, tmp_path.with_name("left"))
    (left / obstacle.name).rmdir()
    assert names_in(left) == ["a"]
    for _ in range(8):
        await store.durable(store.update(key("a"), pod("a", size=1000)).revision)
    obstacle.rmdir()
    journal.close()
    assert (numbers(tmp_path, "snapshot"), numbers(tmp_path, "log")) == ([3], [3])
    assert names_in(tmp_path) == ["a"]


async def test_write_after_close_is_rejected(tmp_path: Path) -> None:
    store, journal = opened(tmp_path)
    journal.close()
    with pytest.raises(JournalError, match="is closed"):
        store.create(key("a"), pod("a"))
    assert store.get(key("a")) is None


class HeldDisk(JournalWriter):
    """A disk that does not answer until it is released."""

    released = threading.Event()

    def commit(self, batch: Sequence[PendingWrite]) -> None:
        self.released.wait()
        super().commit(batch)


def test_writer_that_outruns_the_disk_waits_instead_of_filling_memory(tmp_path: Path) -> None:
    directory = claim(tmp_path)
    disk = HeldDisk(directory, recover(directory), 0, snapshot_after_bytes=1 << 30)
    journal = Journal(directory, disk, 0, [])
    store = Store(history=1, journal=journal)
    store.create(key("a"), pod("a"))

    def write_100_mebibytes() -> None:
        for _ in range(25):
            store.update(key("a"), pod("a", size=4 << 20))

    writing = threading.Thread(target=write_100_mebibytes)
    writing.start()
    for _ in range(1000):
        if store.revision == 17:
            break
        writing.join(timeout=0.01)
    writing.join(timeout=0.1)
    assert store.revision == 17, "64 MiB are pending"
    disk.released.set()
    writing.join()
    asyncio.run(store.durable(26))
    journal.close()


@pytest.mark.parametrize("loss", ["missing", "empty"])
def test_a_directory_whose_log_is_gone_is_rejected_with_the_way_out(tmp_path: Path, loss: str) -> None:
    store, journal = opened(tmp_path)
    store.create(key("a"), pod("a"))
    journal.close()
    log = last_log(tmp_path)
    if loss == "missing":
        log.unlink()
    else:
        log.write_bytes(b"")
    before = sorted(file.name for file in tmp_path.iterdir())
    with pytest.raises(
        DataDirError, match=rf"log-00000001 is {loss}.*all objects are lost; restore it from a copy, or"
    ):
        open_journal(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == before


def test_a_first_start_that_was_killed_before_it_had_a_log_is_no_loss(tmp_path: Path) -> None:
    claim(tmp_path).release()
    assert names_in(tmp_path) == []
    assert names_in(tmp_path) == []


def test_a_torn_tail_is_reported_with_its_length(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store, journal = opened(tmp_path)
    store.create(key("a"), pod("a"))
    journal.close()
    with last_log(tmp_path).open("ab") as file:
        file.write(b"x" * 37)
    assert names_in(tmp_path) == ["a"]
    assert any("last 37 bytes of log-00000001" in record.getMessage() for record in caplog.records)
    caplog.clear()
    assert names_in(tmp_path) == ["a"]
    assert not caplog.records
