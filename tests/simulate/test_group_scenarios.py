"""Groups of pods that start, wait, preempt and stay together, and extenders: all shared scenarios, on the engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.simulate.scenario_file import Scenario, load_scenarios
from pilotage.simulate.scenario_run import AnyScenario, load_any, play, run_scenario

DATA = Path(__file__).parents[1] / "data"
GROUPS = load_scenarios(DATA / "gang" / "scenarios.yaml")
EXTENDERS = load_any(DATA / "extenders" / "cases.yaml")


@pytest.mark.parametrize("scenario", GROUPS, ids=lambda scenario: scenario.id)
async def test_groups(scenario: Scenario) -> None:
    assert (await play(scenario)).difference == ""


@pytest.mark.parametrize("scenario", EXTENDERS, ids=lambda scenario: scenario.id)
def test_extenders(scenario: AnyScenario) -> None:
    assert run_scenario(scenario).difference == ""


def test_nothing_was_left_out() -> None:
    assert (len(GROUPS), len(EXTENDERS)) == (106, 16)
