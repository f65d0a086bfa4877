"""Who comes back to the queue, when, and who stays: all requeue scenarios on the real engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.simulate.scenario_file import Scenario, load_scenarios
from pilotage.simulate.scenario_run import play

FILE = Path(__file__).parents[1] / "data" / "requeue" / "scenarios.yaml"
SCENARIOS = load_scenarios(FILE)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
async def test_requeueing(scenario: Scenario) -> None:
    assert (await play(scenario)).difference == ""


def test_nothing_was_left_out() -> None:
    assert len(SCENARIOS) == 98
