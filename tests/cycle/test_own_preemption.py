"""Preemption by a policy of a plugin's own, as docs/plugins.md shows it: from the search to the bound pod."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pilotage.api import Plugin
from pilotage.config.load import configuration_of
from pilotage.framework.plugin_files import load_plugin_file
from pilotage.testing import node, pod
from tests.cycle.live_scheduler import live

PAGE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text()
FIRST = configuration_of({
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{
        "schedulerName": "default-scheduler",
        "plugins": {
            "multiPoint": {"enabled": [{"name": "SpotPreemption"}]},
            "postFilter": {
                "enabled": [{"name": "SpotPreemption"}, {"name": "DefaultPreemption"}], "disabled": [{"name": "*"}],
            },
        },
    }],
})  # fmt: skip


@pytest.fixture
def plugin(tmp_path: Path) -> type[Plugin]:
    [source] = [one for one in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL) if "SpotPreemption" in one]
    file = tmp_path / "spot.py"
    file.write_text(source)
    [cls] = load_plugin_file(file)
    return cls


async def test_a_spot_pod_of_the_same_priority_makes_room(plugin: type[Plugin]) -> None:
    async with live(plugin, configuration=FIRST) as world:
        await world.put(node("a").cpu(2), pod("spot").requests(cpu=2).label("example.com/spot", ""))
        await world.put(pod("firm").requests(cpu=2))
        await world.after(1)
        assert world.api.deletions == ["spot"]
        await world.after(60)
        assert world.node_of("firm") == "a"
        assert ("Preempted", "Preempted by pod") in [(reason, note[:16]) for reason, note in world.notes("spot")]


async def test_others_stay_and_the_reason_is_reported(plugin: type[Plugin]) -> None:
    async with live(plugin, configuration=FIRST) as world:
        await world.put(node("a").cpu(2), pod("there").requests(cpu=2), pod("firm").requests(cpu=2))
        await world.after(1)
        assert world.api.deletions == [] and world.node_of("firm") == ""
        assert "spot preemption: 0/1 nodes are available: 1 No preemption victims found" in world.condition("firm")[2]


async def test_default_preemption_comes_after_it(plugin: type[Plugin]) -> None:
    async with live(plugin, configuration=FIRST) as world:
        await world.put(node("a").cpu(2), pod("low").requests(cpu=2))
        await world.put(pod("high").requests(cpu=2).priority(5))
        await world.after(60)
        assert world.api.deletions == ["low"] and world.node_of("high") == "a"
