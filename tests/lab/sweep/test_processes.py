"""Runs in processes: killed, failing and interrupted ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.lab.sweep.processes import perform_in_processes
from pilotage.lab.sweep.run import is_done
from pilotage.lab.sweep.spec import Run
from pilotage.lab.sweep.store import SweepStore, planned
from tests.lab.sweep.specs import BOTH, content, faulty, runs


def _performed(found: list[Run], out: Path) -> dict[str, str | None]:
    ended: dict[str, str | None] = {}
    store = SweepStore(out, planned(found))
    todo = [run for run in found if not is_done(out, run.digest)]
    perform_in_processes(todo, out, 2, lambda run, problem: ended.update({run.digest: problem}))
    store.write_table()
    return ended


def test_a_sweep_that_was_interrupted_and_goes_on_is_byte_for_byte_one_that_was_not(tmp_path: Path) -> None:
    found = runs(tmp_path / "in", configurations=[{"name": "default"}, BOTH], seeds=2)
    assert set(_performed(found, tmp_path / "whole").values()) == {None}

    def interrupt(run: Run, problem: str | None) -> None:
        raise KeyboardInterrupt

    parts = tmp_path / "parts"
    store = SweepStore(parts, planned(found))
    with pytest.raises(KeyboardInterrupt):
        perform_in_processes(found, parts, 2, interrupt)
    assert 1 <= len(found) - len(store.missing) < len(found)
    assert len(_performed(found, parts)) < len(found)
    assert content(parts) == content(tmp_path / "whole")


def test_a_killed_process_is_started_again(tmp_path: Path) -> None:
    found = runs(tmp_path, configurations=[faulty(tmp_path, once=True)])
    assert _performed(found, tmp_path / "out") == {found[0].digest: None}


def test_one_that_is_always_killed_fails_and_the_rest_goes_on(tmp_path: Path) -> None:
    found = runs(tmp_path, configurations=[faulty(tmp_path, once=False), {"name": "default"}])
    ended = _performed(found, tmp_path / "out")
    assert "ended by SIGKILL" in (ended[found[0].digest] or "") and ended[found[1].digest] is None
    assert not [name for name in content(tmp_path / "out") if "/." in name]
