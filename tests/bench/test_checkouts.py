"""Two versions of the project, measured in turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pilotage.bench.checkouts import CheckoutFailed, ComparedRound, in_turn, own_checkout, ratios_of, unpack
from pilotage.cli.main import cli

OWN, ALL = "schedulerMicrosPerPod", "cpuSecondsPer1000Pods"


def test_who_begins_changes_from_round_to_round() -> None:
    asked: list[str] = []

    def measure(name: str) -> Callable[[], dict[str, Any]]:
        return lambda: asked.append(name) or {"by": name}  # type: ignore[func-returns-value]

    rounds = list(in_turn(measure("ours"), measure("theirs"), 3))
    assert asked == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]
    assert rounds == [ComparedRound({"by": "ours"}, {"by": "theirs"})] * 3


def test_ratios_are_of_single_rounds() -> None:
    rounds = [
        ComparedRound({OWN: 10.0}, {OWN: 20.0}),  # a quiet moment
        ComparedRound({OWN: 90.0}, {OWN: 100.0}),  # a busy one
        ComparedRound({OWN: 12.0}, {OWN: 20.0}),
    ]
    (ratio,) = ratios_of(rounds)
    assert (ratio.figure, ratio.ours, ratio.theirs) == (OWN, 12.0, 20.0)
    assert (ratio.least, ratio.median, ratio.most) == (0.5, 0.6, 0.9)


def test_what_one_of_them_did_not_measure_is_not_compared() -> None:
    found = ratios_of([ComparedRound({OWN: None, ALL: 1.0}, {OWN: 5.0, ALL: 2.0})])
    assert [ratio.figure for ratio in found] == [ALL]


def test_another_version_runs_from_its_own_files(tmp_path: Path) -> None:
    other = unpack("HEAD", tmp_path)
    (other.source / "pilotage" / "cli" / "bench.py").write_text(
        "import json, click\n"
        "@click.command(context_settings={'ignore_unknown_options': True})\n"
        "@click.argument('words', nargs=-1)\n"
        "def bench(words):\n"
        "    print(json.dumps({'file': __file__, 'words': words}))\n"
    )
    said = other.measure(["--workload=W"])
    assert said == {"file": str(other.source / "pilotage/cli/bench.py"), "words": ["--workload=W", "-o", "json"]}


def test_an_unknown_version_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(CheckoutFailed, match='there is no version "--none"'):
        unpack("--none", tmp_path)


def test_the_reason_why_a_version_cannot_measure_is_passed_on() -> None:
    with pytest.raises(CheckoutFailed, match="here could not measure: error: unknown workload"):
        own_checkout().measure(["--workload=None"])


def test_a_version_is_compared_with_another() -> None:
    sizes = ["--nodes", "6", "--init-pods", "2", "--pods", "10"]
    done = CliRunner().invoke(cli, ["bench", "--compare", "HEAD", "--rounds", "1", *sizes])
    assert done.exit_code == 0, done.output
    assert "in 1 rounds: 6 nodes, 2 pods before, 10 measured" in done.stdout and "RATIO" in done.stdout


@pytest.mark.parametrize("option", [["--viewer"], ["--server", "real"], ["--compare-gate", "X"]])
def test_versions_are_compared_by_themselves(option: list[str]) -> None:
    done = CliRunner().invoke(cli, ["bench", "--compare", "HEAD", *option])
    assert done.exit_code == 2 and "--compare does not go with" in done.output


def test_figures_with_goals_are_compared_if_they_say_how_much_it_took() -> None:
    def said(seconds: float, us: float) -> dict[str, Any]:
        figures = [
            {"name": "CPU", "value": seconds, "unit": "s"},
            {"name": "slower", "value": 3.0, "unit": "% slower"},
        ]
        return {"figures": figures, "nodes": [10, 1000], "micros": [{"name": "W", "micros": [1.0, us]}]}

    found = ratios_of([ComparedRound(said(10.0, 30.0), said(20.0, 20.0))])
    assert [(one.figure, one.median) for one in found] == [("CPU", 0.5), ("W, 10 nodes", 1.0), ("W, 1,000 nodes", 1.5)]


def test_a_workload_with_goals_is_compared_too() -> None:
    words = ["bench", "--workload", "WorkloadQueueing", "--pods", "4", "--compare", "HEAD", "--rounds", "1"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert "WorkloadQueueing in 1 rounds" in done.stdout and "CPU time of everything" in done.stdout
