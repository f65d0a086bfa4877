"""Scores from a load watcher: the last good answer counts, an old one does not."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import pytest

from examples import load_watcher
from pilotage.api import CycleState
from pilotage.assembly import options_from_configuration
from pilotage.config.load import load_configuration, parse_configuration
from pilotage.config.problems import ConfigError
from pilotage.framework.plugin_files import load_plugin_file, load_plugin_files
from pilotage.testing import FakeHandle, VirtualClock, check_plugin, node, node_view, pod
from tests.examples.sandbox_world import EXAMPLES, sandbox

[LoadAware] = load_plugin_file(EXAMPLES / "load_aware.py")
Args: Any = LoadAware.args_type
AT = VirtualClock().time()


def watched(at: float = AT, /, **nodes: dict[str, Any] | float) -> dict[str, Any]:
    """A load watcher's answer: percent of CPU, or several (resource, rollup) -> value."""
    data = {}
    for name, loads in nodes.items():
        values = {"cpu AVG": loads} if isinstance(loads, int | float) else loads
        metrics = [{"type": key.split()[0], "rollup": key.split()[1], "value": value} for key, value in values.items()]
        data[name] = {"metrics": metrics}
    return {"timestamp": int(at), "window": {"end": int(at)}, "data": data}


class World:
    """The plugin with a watcher that the test speaks for."""

    def __init__(self, **args: Any) -> None:
        self.clock = VirtualClock()
        self.handle = FakeHandle(clock=self.clock)
        self.plugin: Any = LoadAware(self.handle, Args(**args))  # type: ignore[call-arg]
        self.answer: Any = OSError("nobody answers")
        self.plugin.fetch = self.fetch

    async def fetch(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def __aenter__(self) -> World:
        [(_, poll)] = self.handle.background
        self.task = asyncio.ensure_future(poll())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()

    def score(self, name: str, *pods: Any, cpu: Any = "0.004") -> int:
        view = node_view(node(name).cpu(4).memory("8Gi"), *pods)
        score: int = self.plugin.score(CycleState(), pod("p").requests(cpu=cpu).build(), view)
        return score


async def test_target_load_packing_scores_as_described() -> None:
    """The example of the description: 25, 50 and 75 percent in use, a target of 50, a pod that uses nothing."""
    async with World(target_utilization=50, requests_multiplier=0.0, default_cpu_millis=0) as world:
        world.answer = watched(x=25, y=50, z=75)
        await world.clock.advance(31)
        assert [world.score(name) for name in "xyz"] == [75, 100, 25]
        assert world.score("unknown") == 0
    async with World(target_utilization=50) as world:
        world.answer = watched(z=75)
        await world.clock.advance(31)
        assert world.score("z", cpu=2) == 0, "more than there is"


async def test_pods_that_are_not_measured_yet_count_with_their_requests() -> None:
    async with World(target_utilization=50) as world:
        world.answer = watched(x=25)
        await world.clock.advance(31)
        alone = world.score("x", cpu="0.001")
        coming = pod("coming").node("x").requests(cpu="0.4")
        old = coming.status(startTime="2000-01-01T00:00:00Z")
        new = coming.status(startTime="2100-01-01T00:00:00Z")
        assert world.score("x", old, cpu="0.001") == alone == 75
        assert world.score("x", coming, cpu="0.001") == world.score("x", new, cpu="0.001") == 90


async def test_load_variation_counts_the_risk_of_the_scarcest_resource() -> None:
    async with World(strategy="LoadVariationRiskBalancing", requests_multiplier=1.0) as world:
        world.answer = watched(
            calm={"cpu AVG": 40, "cpu STD": 5, "memory AVG": 10, "memory STD": 0},
            wild={"cpu AVG": 40, "cpu STD": 35, "memory AVG": 10, "memory STD": 0},
            full={"CPU AVG": 10, "Memory AVG": 95},
        )
        await world.clock.advance(31)
        assert [world.score(name, cpu=1) for name in ("calm", "wild", "full")] == [30, 0, 5]


async def test_old_values_count_for_nothing_and_new_ones_again() -> None:
    async with World(stale_after=120.0) as world:
        version = world.plugin.facts_version()
        world.answer = watched(x=20)
        await world.clock.advance(31)
        assert world.score("x") > 0 and world.plugin.facts_version() != version
        good = world.score("x")
        world.answer = OSError("away")
        await world.clock.advance(60)
        assert world.score("x") == good, "the last good values count for a while"
        version = world.plugin.facts_version()
        await world.clock.advance(120)
        assert world.score("x") == world.score("unknown") == 0 and world.plugin.facts_version() != version
        world.answer = watched(world.clock.time(), x=20)
        await world.clock.advance(31)
        assert world.score("x") == good


@pytest.mark.parametrize("answer", [watched(AT - 10_000, x=20), {"data": 5}, [], {"data": {"x": {"metrics": [{}]}}}, 7])
async def test_an_answer_that_is_old_or_none_is_not_taken(answer: Any) -> None:
    async with World() as world:
        world.answer = answer
        await world.clock.advance(100)
        assert world.score("x") == 0 and not world.task.done()
        polls = world.handle.metrics.counter("load_aware_polls_total", "", "result")
        assert polls.value("success") == 0 and polls.total() == 4


async def test_the_real_thing_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the watcher of the example."""
    server = HTTPServer(("127.0.0.1", 0), load_watcher.Watcher)
    monkeypatch.setattr(load_watcher.Watcher, "log_message", lambda *_: None)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        plugin: Any = LoadAware(FakeHandle(), Args(watcher_address=f"http://127.0.0.1:{server.server_port}/"))  # type: ignore[call-arg]
        answer = await plugin.fetch()
        assert json.loads(json.dumps(answer))["data"]["hot"]["metrics"][0]["value"] == 90
    finally:
        server.shutdown()


async def test_in_the_sandbox_the_pod_goes_to_the_node_that_it_fills_best(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fetch(self: Any) -> Any:
        return watched(self._clock.time(), idle=5, warm=40, hot=90)

    name = next(name for name in sys.modules if name.startswith("pilotage_plugin_load_aware"))
    monkeypatch.setattr(sys.modules[name], "_get_json", lambda url: pytest.fail("a real request"))
    original = load_plugin_files

    def loaded(paths: Any) -> Any:
        found = original(paths)
        for one in found:
            one.cls.fetch = fetch  # type: ignore[attr-defined]
        return found

    monkeypatch.setattr("tests.examples.sandbox_world.load_plugin_files", loaded)
    async with sandbox("load_aware", config="load_aware.config.yaml") as world:
        await world.after(20)
        world.api.create("pods", "default", pod("later").requests(cpu="500m").json())
        await world.after(1)
        assert world.nodes_of("later") == {"later": "warm"}


def test_it_meets_the_requirements_with_values() -> None:
    def make(handle: Any) -> Any:
        plugin: Any = LoadAware(handle, Args())  # type: ignore[call-arg]
        plugin._take(watched(handle.clock.time(), **dict.fromkeys(handle.nodes.names, 20)))
        return plugin

    check_plugin(make)


@pytest.mark.parametrize(
    "args", ["watcherAddress: ftp://x", "targetUtilization: 100", "pollInterval: 0s", "staleAfter: 1s"]
)
def test_arguments_that_make_no_sense_are_rejected(args: str) -> None:
    text = f"pluginConfig: [{{name: LoadAware, args: {{{args}}}}}]"
    text = f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{{{text}}}]\n"
    with pytest.raises(ConfigError, match=args.split(":")[0]):
        options_from_configuration(parse_configuration(text), load_plugin_files([EXAMPLES / "load_aware.py"]))


def test_the_configuration_is_valid() -> None:
    configuration = load_configuration(EXAMPLES / "load_aware.config.yaml")
    options = options_from_configuration(configuration, load_plugin_files([Path(EXAMPLES / "load_aware.py")]))
    assert options.profiles["default-scheduler"].points is not None
