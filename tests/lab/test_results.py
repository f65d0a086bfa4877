"""A result is written as it comes about, and read as columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pilotage.lab.lives import PodStory
from pilotage.lab.results import DECISIONS, SERIES, Result, ResultError, ResultWriter, waiting


def test_what_is_written_is_read_as_columns(tmp_path: Path) -> None:
    writer = ResultWriter(tmp_path / "r")
    writer.decision(PodStory("n/a", 1.0, 5, attempts=2, bound=3.5, node="x", ended=9.0, end="ended", reason="why"))
    writer.decision(PodStory("n/b", 2.0, attempts=1, reason="never"))
    writer.sample(0, {"used_cpu": 0.25})
    writer.sample(60, {"used_cpu": 0.75})
    writer.close({"seed": 7}, complete=True)
    result = Result(tmp_path / "r")
    assert result.pods["pod"].tolist() == ["n/a", "n/b"] and result.pods["priority"].tolist() == [5, 0]
    assert result.pods["bound"][0] == 3.5 and np.isnan(result.pods["bound"][1])
    assert result.pods["reason"].tolist() == ["why", "never"]
    assert result.series["time"].tolist() == [0, 60] and result.series["used_cpu"].tolist() == [0.25, 0.75]
    totals = result.totals
    assert totals["seed"] == 7 and totals["mean"] == {"used_cpu": 0.5} and totals["most"] == {"used_cpu": 0.75}
    assert (totals["pods"]["pods"], totals["pods"]["bound"], totals["pods"]["waiting"]) == (2, 1, 1)
    assert totals["waited"]["mean"] == 2.5 and totals["reasons"] == {"never": 1}


def test_lines_leave_out_what_is_not_there(tmp_path: Path) -> None:
    writer = ResultWriter(tmp_path)
    writer.decision(PodStory("n/a", 0.0))
    writer.sample(1 / 3, {"x": 2.0})
    writer.close({}, complete=False)
    assert (tmp_path / DECISIONS).read_text() == '{"pod":"n/a","arrived":0.0}\n'
    assert (tmp_path / SERIES).read_text() == "time,x\n0.333333,2\n"


def test_a_result_without_pods_and_samples_can_be_read(tmp_path: Path) -> None:
    ResultWriter(tmp_path).close({}, complete=True)
    result = Result(tmp_path)
    assert result.totals["waited"] == {} and result.series == {} and len(result.pods["pod"]) == 0


def test_a_new_result_takes_the_place_of_the_old_totals_at_once(tmp_path: Path) -> None:
    ResultWriter(tmp_path).close({}, complete=True)
    ResultWriter(tmp_path)
    with pytest.raises(ResultError, match="no result"):
        Result(tmp_path)


def test_waiting_times_are_those_that_occurred() -> None:
    assert waiting(np.array([0.0, 0.0, 4.0, 8.0])) == {"mean": 3.0, "p50": 0.0, "p90": 8.0, "p99": 8.0, "max": 8.0}
