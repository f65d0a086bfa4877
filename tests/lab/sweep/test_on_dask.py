"""Runs on a Dask cluster of real processes, one of which dies."""

from __future__ import annotations

from pathlib import Path

import pytest
from distributed import LocalCluster

from pilotage.lab.sweep.on_dask import DaskError, perform_on_dask
from pilotage.lab.sweep.processes import perform_in_processes
from pilotage.lab.sweep.store import SweepStore, planned
from tests.lab.sweep.specs import content, faulty, runs


def test_a_worker_is_killed_and_the_results_are_those_of_one_machine(tmp_path: Path) -> None:
    found = runs(tmp_path, configurations=[faulty(tmp_path, once=True), {"name": "default"}], seeds=2)
    ended: dict[str, str | None] = {}
    SweepStore(tmp_path / "far", planned(found)).write_table()
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        address = cluster.scheduler_address
        perform_on_dask(found, tmp_path / "far", address, lambda run, problem: ended.update({run.digest: problem}))
    assert (tmp_path / "mark").exists(), "no worker was killed"
    assert ended == {run.digest: None for run in found}
    SweepStore(tmp_path / "near", planned(found)).write_table()
    perform_in_processes(found, tmp_path / "near", 2, lambda run, problem: None)
    far = {name: data for name, data in content(tmp_path / "far").items() if "/." not in name}
    assert far == content(tmp_path / "near")


def test_a_worker_with_threads_is_rejected(tmp_path: Path) -> None:
    found = runs(tmp_path)
    problems: list[str | None] = []
    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, host="127.0.0.1", protocol="tcp"
    ) as cluster:
        address = cluster.scheduler_address
        perform_on_dask(found, tmp_path / "out", address, lambda run, problem: problems.append(problem))
    assert ["--nthreads 1" in (problem or "") for problem in problems] == [True]


def test_nobody_at_the_address(tmp_path: Path) -> None:
    with pytest.raises(DaskError, match="no Dask scheduler"):
        perform_on_dask([], tmp_path, "nonsense://", lambda run, problem: None)
