"""Workload queueing as the conformance suite and our own scenarios describe it: all of them on the real engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.simulate.scenario_run import AnyScenario, load_any, run_scenario

DATA = Path(__file__).parents[1] / "data" / "kueue"
SCENARIOS = load_any(DATA / "scenarios.yaml")
DECISIONS = load_any(DATA / "decisions.yaml")
OWN = load_any(DATA / "behaviour.yaml")


@pytest.mark.parametrize("scenario", [*SCENARIOS, *DECISIONS, *OWN], ids=lambda scenario: scenario.id)
def test_queueing(scenario: AnyScenario) -> None:
    assert run_scenario(scenario).difference == ""


def test_nothing_was_left_out() -> None:
    assert (len(SCENARIOS), len(DECISIONS)) == (85, 83)
