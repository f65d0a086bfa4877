"""All scenarios of pod groups with the objects, conditions and bindings of a server instead of those in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pilotage.simulate.scenario_file import Scenario, load_scenarios
from pilotage.simulate.scenario_run import play

from .served_api import ServedApi
from .servers import Server
from .world import World

FILE = Path(__file__).parents[1] / "data" / "gang" / "scenarios.yaml"
OFF_UNLESS_NAMED = ("TopologyAwareWorkloadScheduling", "PodGroupPreemptionPolicy", "DRAWorkloadResourceClaims")
"""A server that has these fields fills them in, whatever the scenario is about."""
CHANGES_THE_MINIMUM = (
    "lower-minimum-frees-a-gated-gang",
    "higher-minimum-wakes-nobody",
    "lower-minimum-does-not-shorten-backoff",
    "higher-minimum-judges-only-newcomers",
)


def as_written(scenario: Scenario) -> Scenario:
    """With the gates of kube-scheduler, not ours: what is not named is off."""
    return replace(scenario, gates={**dict.fromkeys(OFF_UNLESS_NAMED, False), **scenario.gates})


SCENARIOS = [as_written(scenario) for scenario in load_scenarios(FILE)]


@pytest.fixture(params=["sandbox", "real"])
def server(request: pytest.FixtureRequest) -> Server:
    running: Server = request.getfixturevalue("sandbox_server" if request.param == "sandbox" else "grouped_server")
    return running


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
async def test_groups_of_pods(world: World, scenario: Scenario) -> None:
    outcome = await play(scenario, lambda clock: ServedApi(clock, world.api))
    if scenario.id in CHANGES_THE_MINIMUM and world.api.kinds["podgroups"].version == "v1alpha2":
        assert "Refused: 422" in outcome.difference and "field is immutable" in outcome.difference
    else:
        assert outcome.difference == ""
