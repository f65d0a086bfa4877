"""The benchmark of sizes, small: it measures what it says; how fast that is, it does not say here."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from pilotage.bench import scaling
from pilotage.bench.scaling import ScalingRow, figures_of
from pilotage.cli.main import call
from pilotage.cycle import intake

EVENT_KINDS = set(intake._RESOURCES)
"""Every kind whose changes may wake pods, but nodes and pods: they have rows for each thing that happens to them."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("_EVENTS", 3), ("_BATCHES", 1), ("_PODS_PER_BATCH", 2)):
        monkeypatch.setattr(scaling, name, size)


def test_every_sort_of_pod_and_event_is_measured_at_every_size() -> None:
    steps: list[str] = []
    rows = scaling.measure(300, steps.append)
    assert steps == ["3 nodes", "30 nodes", "300 nodes"]
    assert [row.name for row in rows[:2]] == ["SchedulingBasic", "SchedulingDistinct"]
    events = {row.name.removeprefix("event: ") for row in rows if row.name.startswith("event: ")}
    assert events >= EVENT_KINDS and len(events) == 9 + len(EVENT_KINDS) and len(rows) == len(events) + 14
    assert all(len(row.micros) == 3 and min(row.micros) > 0 for row in rows)


def _rows(basic: tuple[float, float, float], distinct: tuple[float, float, float]) -> list[ScalingRow]:
    return [ScalingRow("SchedulingBasic", basic), ScalingRow("SchedulingDistinct", distinct)]


@pytest.mark.parametrize(
    ("rows", "are_met"),
    [
        (_rows((80, 90, 120), (200, 400, 2000)), [True, True, True]),
        (_rows((80, 90, 120), (200, 1100, 2000)), [False, True, True]),
        (_rows((80, 90, 400), (200, 400, 2000)), [True, False, True]),
        (_rows((80, 90, 120), (200, 400, 6000)), [True, True, False]),
    ],
    ids=["as it should be", "different pods are dear", "equal pods look at all nodes", "worse than linear"],
)
def test_ratios_that_are_too_large_are_goals_missed(rows: list[ScalingRow], are_met: list[bool]) -> None:
    assert [figure.is_met for figure in figures_of(rows)] == are_met


def test_steepness_is_that_of_the_last_step() -> None:
    row = ScalingRow("x", (1.0, 2.0, 30.0))
    assert row.steepness == [after / before for before, after in pairwise(row.micros)][-1]


def test_command_prints_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    call(["bench", "--workload", "Scaling", "--nodes", "300", "-o", "json"])
    told = json.loads(capsys.readouterr().out)
    assert told["nodes"] == [3, 30, 300] and len(told["micros"]) == 23 + len(EVENT_KINDS) and len(told["figures"]) == 3


def test_a_cluster_that_is_too_small_is_an_error_that_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["bench", "--workload", "Scaling", "--nodes", "100"]) == 1
    assert "did not fit on 1 nodes; there must be more" in capsys.readouterr().err
