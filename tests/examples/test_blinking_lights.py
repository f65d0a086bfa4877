"""KEP-624's example of a score."""

from __future__ import annotations

from tests.examples.sandbox_world import sandbox


async def test_pods_go_where_the_lights_are() -> None:
    async with sandbox("blinking_lights") as world:
        assert world.nodes_of() == {"dancer": "disco"}


async def test_without_the_plugin_they_do_not() -> None:
    async with sandbox("blinking_lights", plugin=False) as world:
        assert world.nodes_of()["dancer"] in ("attic", "office")
