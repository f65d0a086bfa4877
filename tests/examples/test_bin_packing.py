"""A vectorised score that fills nodes up."""

from __future__ import annotations

import pytest

from pilotage.assembly import options_from_configuration
from pilotage.config.load import parse_configuration
from pilotage.config.problems import ConfigError
from pilotage.framework.plugin_files import load_plugin_files
from tests.examples.sandbox_world import EXAMPLES, sandbox


async def test_all_pods_go_to_one_node() -> None:
    async with sandbox("bin_packing", config="bin_packing.config.yaml") as world:
        placed = world.nodes_of("boxes")
        assert len(placed) == 6 and "" not in placed.values() and len(set(placed.values())) == 1


async def test_without_the_plugin_they_spread() -> None:
    async with sandbox("bin_packing", plugin=False) as world:
        assert len(set(world.nodes_of("boxes").values())) == 3


def test_weights_that_make_no_sense_are_rejected() -> None:
    args = '{"pluginConfig": [{"name": "BinPacking", "args": {"resources": {"cpu": 0}}}]}'
    with pytest.raises(ConfigError, match="weights above 0"):
        options_from_configuration(parse_configuration(args, "f"), load_plugin_files([EXAMPLES / "bin_packing.py"]))
