"""`pilotage simulate` as its user calls it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
import yaml

from pilotage.cli.main import call
from pilotage.cli.simulation_view import SimulationProgress, sparkline
from pilotage.lab.results import Result
from pilotage.lab.simulation import Progress
from pilotage.testing import VirtualClock
from tests.lab.worlds import node, pod, put, write


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    pods = [put(number, pod(f"p{number}").requests(cpu="1"), runs=300) for number in range(1, 9)]
    return write(tmp_path / "monday.jsonl.gz", [put(0, node("n").cpu("4")), *pods])


def test_a_table_with_pictures_and_a_directory(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["simulate", str(trace)]) == 0
    shown = capsys.readouterr().out
    assert "8 bound, 8 ended" in shown and "used_cpu" in shown and "█" in shown and "ties: scheduler" in shown
    assert Result(trace.with_name("monday.result")).totals["pods"]["bound"] == 8


def test_totals_as_json(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "r")
    arguments = ["simulate", str(trace), "-o", out, "--json", "--seed", "4", "--ties", "random", "--until", "2m"]
    assert call(arguments) == 0
    totals = json.loads(capsys.readouterr().out)
    assert (totals["seed"], totals["ties"], totals["pods"]["running"], totals["seconds"]) == (4, "random", 4, 120)


def test_other_nodes(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text(yaml.safe_dump_all([node("x").cpu("8").json()]))
    assert call(["simulate", str(trace), "--nodes", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["waited"]["max"] == 0


def test_a_complete_result_is_kept_with_resume_and_one_of_other_inputs_is_not_overwritten(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["simulate", str(trace)]) == 0
    decisions = trace.with_name("monday.result") / "decisions.jsonl"
    before = decisions.stat().st_mtime_ns
    assert call(["simulate", str(trace), "--resume"]) == 0
    assert decisions.stat().st_mtime_ns == before
    capsys.readouterr()
    assert call(["simulate", str(trace), "--resume", "--seed", "1"]) == 2
    assert "has another seed; choose another with -o" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["none.jsonl"], "none.jsonl: cannot be read: No such file"),
        (["--until", "soon"], "--until"),
        (["--every", "0s"], "--every: 0s is not longer than nothing"),
        (["--nodes", "none.yaml"], "none.yaml"),
        (["--config", "none.yaml"], "none.yaml"),
        (["-o", "/proc/nowhere"], "/proc/nowhere: cannot be written"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_line(
    trace: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], problem: str
) -> None:
    given = arguments if arguments[0].endswith("jsonl") else [str(trace), *arguments]
    assert call(["simulate", *given]) == 2
    assert problem in capsys.readouterr().err


def test_a_directory_with_something_else_in_it_is_left_alone(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    assert call(["simulate", str(trace), "-o", str(tmp_path / "mine")]) == 2
    assert "is not empty, and holds no result" in capsys.readouterr().err


@pytest.fixture
def _ctrl_c_is_heeded() -> Iterator[None]:
    """What a shell starts in the background ignores the signal, and so do its children unless they say otherwise."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_ctrl_c_is_heeded")
def test_ctrl_c_leaves_what_was_computed(tmp_path: Path) -> None:
    pods = [put(number / 10, pod(f"p{number}"), runs=20) for number in range(1, 100_000)]
    trace = write(tmp_path / "long.jsonl", [put(0, node("n").cpu("400").pods(9000)), *pods])
    command = [sys.executable, "-m", "pilotage", "simulate", str(trace), "-o", str(tmp_path / "r")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        first = running.stderr.readline()  # how far it is, after some seconds
        running.send_signal(signal.SIGINT)
        rest = running.stderr.read()
    assert "pods/s" in first and "interrupted; what was computed is in" in rest and running.returncode == 1
    result = Result(tmp_path / "r")
    assert not result.totals["complete"] and 0 < result.totals["pods"]["ended"] < len(pods)
    assert len(result.pods["pod"]) == result.totals["pods"]["pods"]


def test_a_series_as_a_row_of_bars() -> None:
    assert sparkline([]) == "" and sparkline([0, 0]) == "▁▁"
    assert sparkline([0, 1, 2, 7]) == "▁▂▃█" and sparkline([5.0] * 3) == "███"
    assert sparkline(list(range(400)), width=8) == "▁▂▃▄▅▆▇█"


async def test_progress_says_how_fast_it_is_and_how_long_it_takes() -> None:
    clock, stream = VirtualClock(), StringIO()
    progress = SimulationProgress(clock, stream)
    progress.show(Progress(0.5, 60, 1000))  # what it goes on with took no time
    await clock.advance(10)
    progress.show(Progress(0.6, 3600, 6000))
    assert stream.getvalue() == "60%  at 60 min  500 pods/s  40 s left\n"
