"""Workload queueing as the conformance suite describes it: all scenarios on the real engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.simulate.scenario_run import AnyScenario, load_any, run_scenario

FILE = Path(__file__).parents[1] / "data" / "kueue" / "scenarios.yaml"
SCENARIOS = load_any(FILE)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_queueing(scenario: AnyScenario) -> None:
    assert run_scenario(scenario).difference == ""


def test_nothing_was_left_out() -> None:
    assert len(SCENARIOS) == 85
