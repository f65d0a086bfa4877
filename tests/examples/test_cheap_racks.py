"""A score of placements: the cheapest rack that can take the whole gang."""

from __future__ import annotations

from pilotage.framework.plugin_files import load_plugin_files, named_files
from pilotage.simulate.scenario_run import load_any, run_scenario, with_plugins
from tests.examples.sandbox_world import EXAMPLES

(SCENARIO,) = load_any(EXAMPLES / "cheap_racks.yaml")


def test_the_gang_goes_to_the_cheapest_rack_that_can_take_it() -> None:
    loaded = load_plugin_files(named_files((), EXAMPLES, [EXAMPLES / "cheap_racks.py"]))
    assert run_scenario(with_plugins(SCENARIO, loaded)).difference == ""


def test_without_the_plugin_it_goes_by_name() -> None:
    assert "gold" in run_scenario(SCENARIO).difference
