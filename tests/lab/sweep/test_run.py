"""One run: as a whole, or not at all."""

from __future__ import annotations

from pathlib import Path

from pilotage.lab.results import Result
from pilotage.lab.sweep.run import failure_path, is_done, perform, result_path
from tests.lab.sweep.specs import content, runs, trace


def test_a_result_is_made_once(tmp_path: Path) -> None:
    (run,) = runs(tmp_path)
    out = tmp_path / "out"
    (out / "results").mkdir(parents=True)
    assert perform(run, out) is None and is_done(out, run.digest)
    assert Result(result_path(out, run.digest)).totals["pods"]["bound"] == 12
    decisions = result_path(out, run.digest) / "decisions.jsonl"
    before = decisions.stat().st_mtime_ns
    assert perform(run, out) is None
    assert decisions.stat().st_mtime_ns == before


def test_a_trace_that_changes_meanwhile_is_noticed_and_then_taken_back(tmp_path: Path) -> None:
    (run,) = runs(tmp_path)
    out = tmp_path / "out"
    trace(tmp_path, pods=3)
    assert "is another file" in (perform(run, out) or "")
    assert not is_done(out, run.digest) and failure_path(out, run.digest).exists()
    trace(tmp_path)
    assert perform(run, out) is None
    assert [name for name in content(out) if run.digest not in name or name.startswith("failed")] == []
