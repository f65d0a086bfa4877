"""`pilotage sweep` as its user calls it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pilotage.cli.main import call
from tests.lab.sweep.specs import content, faulty, spec


def test_a_sweep_goes_on_where_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = str(spec(tmp_path, seeds=2)), str(tmp_path / "out")
    assert call(["sweep", path, "-o", out, "--dry-run"]) == 0
    assert "2 runs: 0 are there, 2 to compute" in capsys.readouterr().out
    assert call(["sweep", path, "-o", out, "--jobs", "2"]) == 0
    shown = capsys.readouterr()
    assert "2 of 2 runs" in shown.out and "2/2" in shown.err and "left" in shown.err
    assert call(["sweep", path, "-o", out]) == 0
    assert "2 are there, 0 to compute" in capsys.readouterr().err


def test_shards_merged_are_the_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(spec(tmp_path, seeds=2))
    a, b, merged, whole = (str(tmp_path / name) for name in ("a", "b", "merged", "whole"))
    assert call(["sweep", path, "-o", whole]) == 0
    assert call(["sweep", path, "-o", a, "--shard", "0/2"]) == call(["sweep", path, "-o", b, "--shard", "1/2"]) == 0
    assert call(["sweep", "merge", a, "-o", merged]) == 1
    assert "missing: default, t.jsonl, seed 1" in capsys.readouterr().err
    assert call(["sweep", "merge", a, b, "-o", merged]) == 0
    assert content(Path(merged)) == content(Path(whole))


def test_a_run_that_fails_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = spec(tmp_path, configurations=[faulty(tmp_path, once=False), {"name": "default"}])
    assert call(["sweep", str(path), "-o", str(tmp_path / "out")]) == 1
    shown = capsys.readouterr()
    assert "failed: faulty, t.jsonl, seed 0" in shown.err and "1 of 2 runs" in shown.out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--shard", "2/2"], "is no part such as 0/8"),
        (["--shard", "x"], "is no part such as 0/8"),
        (["--dask", "tcp://127.0.0.1:1", "--jobs", "2"], "--jobs is for this machine"),
        (["more.yaml"], "one spec at a time"),
    ],
)
def test_wrong_usage(arguments: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = spec(tmp_path)
    assert call(["sweep", str(path), "-o", str(tmp_path / "out"), *arguments]) == 2
    assert text in capsys.readouterr().err


def test_a_plugin_that_there_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = spec(tmp_path, configurations=[{"name": "a", "arguments": {"Nope": [{"x": 1}]}}])
    assert call(["sweep", str(path), "-o", str(tmp_path / "out")]) == 2
    assert 'unknown plugin "Nope"' in capsys.readouterr().err


def test_without_dask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert call(["sweep", str(spec(tmp_path)), "-o", str(tmp_path / "out"), "--dask", "tcp://127.0.0.1:1"]) == 3
    assert "pip install 'pilotage[dask]'" in capsys.readouterr().err
