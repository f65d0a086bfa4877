"""Commits and snapshots, step by step in one thread: what a kill after any step would leave behind."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pilotage.sandbox.storage.data_dir import DataDirectory, claim
from pilotage.sandbox.storage.journal_recovery import Recovered, recover
from pilotage.sandbox.storage.journal_writer import JournalWriter, pending
from pilotage.sandbox.storage.records import Change, Key, Record

MEBIBYTE = 1 << 20


class World:
    """A writer and the records that it was given."""

    def __init__(self, path: Path, snapshot_after_bytes: int) -> None:
        self.directory: DataDirectory = claim(path)
        self.writer = JournalWriter(self.directory, Recovered(), 0, snapshot_after_bytes=snapshot_after_bytes)
        self.records: dict[Key, Record] = {}
        self.revision = 0

    def put(self, name: str, size: int) -> None:
        record = self._record(name, size)
        self.writer.commit([pending(Change("ADDED", record, None, record.revision))])
        self.records[record.key] = record

    def remove(self, name: str) -> None:
        record = self._record(name, 0)
        self.writer.commit([pending(Change("DELETED", record, None, record.revision))])
        del self.records[record.key]

    def left_by_a_kill(self) -> dict[Key, Record]:
        """What a start after a kill at this moment would find."""
        copy = shutil.copytree(self.directory.path, self.directory.path.with_name("left"))
        left = DataDirectory(copy, -1)
        found = recover(left)
        assert found.revision == self.revision
        shutil.rmtree(copy)
        return found.records

    def _record(self, name: str, size: int) -> Record:
        self.revision += 1
        body = b'{"metadata":{"uid":"u-%b","labels":{"a":"b"}},"x":"%b"}' % (name.encode(), b"x" * size)
        return Record(Key("pods", "ns", name), self.revision, body, f"u-{name}", {"a": "b"})


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "data", snapshot_after_bytes=11 * MEBIBYTE)


def fill(world: World) -> None:
    for number in range(12):
        world.put(f"big-{number}", MEBIBYTE)


def test_snapshot_is_written_in_steps_and_a_kill_after_any_of_them_loses_nothing(world: World) -> None:
    fill(world)
    steps = 0
    while world.writer.is_snapshotting:
        assert world.left_by_a_kill() == world.records
        world.put(f"during-{steps}", 100)
        world.put("big-3", 200)
        world.remove(f"big-{4 + steps}")
        world.writer.advance_snapshot()
        steps += 1
        assert world.left_by_a_kill() == world.records
    assert steps == 3
    assert (world.directory.snapshots(), world.directory.logs()) == ([2], [2])


def test_unfinished_snapshot_is_forgotten_by_the_next_start(world: World) -> None:
    fill(world)
    world.writer.advance_snapshot()
    assert list(world.directory.path.glob("*.tmp"))
    world.writer.release()
    (world.directory.path / "snapshot-00000002.tmp").write_bytes(b"left by a kill")
    recovered = recover(world.directory)
    JournalWriter(world.directory, recovered, world.revision, snapshot_after_bytes=MEBIBYTE)
    assert not list(world.directory.path.glob("*.tmp"))
    assert world.left_by_a_kill() == world.records


def test_files_that_a_kill_left_behind_a_finished_snapshot_are_removed_by_the_next_start(world: World) -> None:
    fill(world)
    path = world.directory.path
    old_log = path / "log-00000001"
    kept = shutil.copy(old_log, path.with_name("kept"))
    while world.writer.is_snapshotting:
        world.writer.advance_snapshot()
    shutil.copy(kept, old_log)
    assert world.left_by_a_kill() == world.records, "the old log no longer counts"
    recovered = recover(world.directory)
    JournalWriter(world.directory, recovered, world.revision, snapshot_after_bytes=MEBIBYTE)
    assert (world.directory.snapshots(), world.directory.logs()) == ([2], [2])


def test_snapshot_waits_until_the_logs_outgrow_the_objects(tmp_path: Path) -> None:
    """Else a big sandbox would be written anew every few seconds."""
    world = World(tmp_path / "data", snapshot_after_bytes=1000)
    world.put("big", 100_000)
    world.writer.advance_snapshot()
    assert world.directory.snapshots() == [2]
    for _ in range(5):
        world.put("small", 10_000)
    assert not world.writer.is_snapshotting
    for _ in range(7):
        world.put("small", 10_000)
    assert world.writer.is_snapshotting
