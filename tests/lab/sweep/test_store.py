"""The directory of a sweep."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from pilotage.lab.results import ResultError
from pilotage.lab.sweep.run import perform
from pilotage.lab.sweep.store import SweepStore, planned
from tests.lab.sweep.specs import content, runs


def test_parts_put_together_are_the_whole(tmp_path: Path) -> None:
    found = runs(tmp_path / "in", seeds=3)
    for name, part in {"whole": found, "a": found[::2], "b": found[1::2]}.items():
        store = SweepStore(tmp_path / name, planned(found))
        for run in part:
            assert perform(run, tmp_path / name) is None
        store.write_table()
    merged = SweepStore(tmp_path / "merged", SweepStore.read(tmp_path / "a"))
    assert [merged.take(tmp_path / name) for name in ("a", "b", "b")] == [2, 1, 0]
    table = merged.write_table()
    assert content(tmp_path / "merged") == content(tmp_path / "whole")
    assert [row["seed"] for row in csv.DictReader(table.open())] == ["0", "1", "2"]


def test_directories_that_hold_something_else(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    with pytest.raises(ResultError, match="holds no sweep"):
        SweepStore(tmp_path, [])
    with pytest.raises(ResultError, match="no sweep"):
        SweepStore.read(tmp_path)
