"""All requeue scenarios with the objects, conditions and bindings of a server instead of those in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.simulate.scenario_file import Scenario, load_scenarios
from pilotage.simulate.scenario_run import play

from .served_api import ServedApi
from .world import World

FILE = Path(__file__).parents[1] / "data" / "requeue" / "scenarios.yaml"
SCENARIOS = load_scenarios(FILE)
REFUSED = {
    ("real", "volume-affinity-corrected"): "field is immutable",  # unless its gate MutablePVNodeAffinity is on
    ("real", "node-declares-feature"): "spec.hostNetwork: Forbidden",  # Kubernetes 1.37 allows it with hostUsers: false
}
"""What a server does not let anybody do, and what it says."""


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
async def test_requeueing(world: World, scenario: Scenario) -> None:
    outcome = await play(scenario, lambda clock: ServedApi(clock, world.api))
    rejection = REFUSED.get((world.server.name, scenario.id))
    if rejection is not None:
        assert "Refused: 422" in outcome.difference and rejection in outcome.difference
    else:
        assert outcome.difference == ""
