"""Groups of pods that start, wait, preempt and stay together, and extenders: all shared scenarios, on the engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.simulate.scenario_file import Scenario, load_scenarios
from pilotage.simulate.scenario_run import AnyScenario, load_any, play, run_scenario

DATA = Path(__file__).parents[1] / "data"
GROUPS = load_scenarios(DATA / "gang" / "scenarios.yaml")
EXTENDERS = load_any(DATA / "extenders" / "cases.yaml")
NOT_YET = {
    "single-pod-takes-the-whole-all-group": "gone: old-1 is still there",
    "siblings-share-a-claim": "pod p-0: node: expected a, is null",
}
"""What docs/pod-groups.md says is not there yet, with how it differs."""


@pytest.mark.parametrize("scenario", GROUPS, ids=lambda scenario: scenario.id)
async def test_groups(scenario: Scenario) -> None:
    difference = (await play(scenario)).difference
    if scenario.id in NOT_YET:
        assert NOT_YET[scenario.id] in difference, "it is there: take it out of NOT_YET and out of the docs"
    else:
        assert difference == ""


@pytest.mark.parametrize("scenario", EXTENDERS, ids=lambda scenario: scenario.id)
def test_extenders(scenario: AnyScenario) -> None:
    assert run_scenario(scenario).difference == ""


def test_nothing_was_left_out() -> None:
    assert (len(GROUPS), len(EXTENDERS)) == (106, 16)
