"""The benchmark of events, small: it measures what it says; how fast that is, it does not say here."""

from __future__ import annotations

import json

import pytest

from pilotage.bench import event_handling
from pilotage.bench.event_handling import measure
from pilotage.cli.main import call
from pilotage.cycle import inbox


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("_NODE_EVENTS", 20), ("_CLAIM_EVENTS", 20), ("_GATED", 20), ("_BATCHES", 1), ("_NARROWED", 40)):
        monkeypatch.setattr(event_handling, name, size)
    monkeypatch.setattr(event_handling, "_PODS_PER_BATCH", 5)


def test_every_figure_has_a_goal_and_nothing_is_kept_when_idle() -> None:
    steps: list[str] = []
    figures = {figure.name: figure for figure in measure(100, steps.append)}
    assert len(figures) == 9 and all(figure.goal for figure in figures.values())
    assert figures["events kept for pods in flight when idle"].value == 0
    assert steps[:3] == ["10 waiting pods", "100 waiting pods", "20 gated pods"]


def test_without_narrowing_every_pod_is_asked_about() -> None:
    """The contrast that KEP-6132 asks for, within one run: each claim concerns one of 40 pods."""
    figure = {figure.name: figure for figure in measure(100, lambda step: None)}[
        "hints asked without pre-queueing hints, 40 pods"
    ]
    assert figure.value == 40 and figure.is_met


def test_events_are_measured_to_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many turns of the inbox they take."""
    monkeypatch.setattr(inbox, "SLICE_SECONDS", 1e-5)
    assert len(list(measure(100, lambda step: None))) == 9


def test_command_prints_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    call(["bench", "--workload", "EventHandling", "--pods", "100", "-o", "json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["workload"], told["waitingPods"], len(told["figures"])) == ("EventHandling", 100, 9)
