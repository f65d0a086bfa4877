"""Whatever is written and wherever the log is cut: a restart finds a state that was, with all that was durable.

Writes come in groups that are made durable together. The model keeps the records after every revision and, for every
group, the size of the log when it was acknowledged.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.sandbox.storage.journal import open_journal
from pilotage.sandbox.storage.store import Key, Record, Store

keys = st.builds(Key, st.sampled_from(["pods", "nodes"]), st.sampled_from(["", "ns"]), st.sampled_from(["x", "ÿ", "z"]))
# A key and the size of the new body; None removes the object, if it is there.
writes = st.tuples(keys, st.none() | st.integers(0, 600))
groups = st.lists(st.lists(writes, min_size=1, max_size=6), min_size=1, max_size=8)

Records = dict[Key, Record]


def records_of(store: Store) -> Records:
    return {record.key: record for resource in store.resources() for record in store.list(resource)}


def apply(store: Store, key: Key, size: int | None) -> None:
    if size is not None:
        obj = {"metadata": {"name": key.name, "labels": {"size": str(size)}}, "spec": "é" * size}
        _ = store.update(key, obj) if store.get(key) else store.create(key, obj)
    elif store.get(key):
        store.delete(key)


@dataclass
class Run:
    """A store that writes to `path`, and what the model knows about it."""

    path: Path
    store: Store
    states: dict[int, Records] = field(default_factory=dict)
    durable: list[tuple[int, int]] = field(default_factory=list)
    """(size of the log, revision) at each acknowledgement, oldest first."""

    def write(self, group: list[tuple[Key, int | None]]) -> None:
        for key, size in group:
            apply(self.store, key, size)
            self.states[self.store.revision] = records_of(self.store)
        asyncio.run(self.store.durable(self.store.revision))
        self.durable.append((max(self.path.glob("log-*")).stat().st_size, self.store.revision))


@contextmanager
def begun() -> Iterator[Run]:
    with tempfile.TemporaryDirectory() as parent:
        path = Path(parent) / "data"
        journal = open_journal(path)
        run = Run(path, Store(history=5, journal=journal))
        run.states[0] = {}
        run.durable.append((max(path.glob("log-*")).stat().st_size, 0))
        yield run
        journal.close()


def reloaded(path: Path) -> Store:
    journal = open_journal(path)
    store = Store(history=5, journal=journal)
    journal.close()
    store.check()
    return store


@settings(max_examples=40, deadline=None)
@given(groups)
def test_reload_after_every_group_equals_the_memory(groups: list[list[tuple[Key, int | None]]]) -> None:
    with begun() as run:
        for number, group in enumerate(groups):
            run.write(group)
            left = shutil.copytree(run.path, run.path.with_name(f"left-{number}"))
            again = reloaded(left)
            assert records_of(again) == records_of(run.store)
            assert again.revision >= run.store.revision


@settings(max_examples=80, deadline=None)
@given(groups, st.data())
def test_log_cut_at_any_byte_of_its_tail_keeps_all_that_was_durable_before(
    groups: list[list[tuple[Key, int | None]]], data: st.DataObject
) -> None:
    with begun() as run:
        for group in groups:
            run.write(group)
        cut = data.draw(st.integers(run.durable[0][0], run.durable[-1][0]), label="cut at byte")
        left = shutil.copytree(run.path, run.path.with_name("left"))
        with max(left.glob("log-*")).open("r+b") as file:
            file.truncate(cut)
        again = reloaded(left)
        acknowledged = max(revision for size, revision in run.durable if size <= cut)
        possible = [state for revision, state in run.states.items() if revision >= acknowledged]
        assert records_of(again) in possible
        if cut in [size for size, _ in run.durable]:
            assert records_of(again) == run.states[acknowledged]


@settings(max_examples=40, deadline=None)
@given(groups, st.integers(0, 3000))
def test_restarts_and_snapshots_at_any_point_change_nothing(
    groups: list[list[tuple[Key, int | None]]], snapshot_after_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as parent:
        records: Records = {}
        revision = 0
        for group in groups:
            journal = open_journal(parent, snapshot_after_bytes=snapshot_after_bytes)
            store = Store(history=5, journal=journal)
            assert (records_of(store), store.revision) == (records, revision)
            for key, size in group:
                apply(store, key, size)
                asyncio.run(store.durable(store.revision))
            journal.close()
            records, revision = records_of(store), store.revision
        assert records_of(reloaded(Path(parent))) == records
