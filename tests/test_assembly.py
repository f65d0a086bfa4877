"""A scheduler put together from a configuration: profiles side by side, arguments, backoff, gates."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotage.api import CycleState, NodeView, Plugin, Score
from pilotage.assembly import SchedulerOptions, build_scheduler, options_from_configuration
from pilotage.config.feature_gates import FeatureGates
from pilotage.config.load import configuration_of, default_configuration, parse_configuration
from pilotage.config.problems import ConfigError
from pilotage.framework.plugin_files import LoadedPlugin, PluginFileError
from pilotage.framework.recipes import ProfileRecipe
from pilotage.model import Pod
from pilotage.plugins import DEFAULT_PLUGINS, GATED_PLUGINS, NOT_BUILT_YET
from pilotage.plugins.args import ARGS_OF_DEFAULT_PLUGINS
from pilotage.queue.backoff import BackoffPolicy
from pilotage.rng import seeded
from pilotage.testing import VirtualClock, node, pod
from tests.cycle.in_memory_api import InMemoryApi

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
UPSTREAM_ORDER = """
    SchedulingGates PrioritySort NodeName NodeUnschedulable TaintToleration NodeAffinity NodePorts NodeResourcesFit
    VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DynamicResources
    DefaultPreemption NodeResourcesBalancedAllocation ImageLocality DefaultBinder NodeDeclaredFeatures
""".split()  # noqa: SIM905
UPSTREAM_WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
}


class Alphabet(Plugin, Score):
    """Prefers the node whose name comes last."""

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return ord(node.name[0]) - ord("a")


def options(body: str = "", plugins: Sequence[type[Plugin]] = (), **gates: bool) -> SchedulerOptions:
    return options_from_configuration(parse_configuration(HEADER + body, "f"), plugins, FeatureGates(gates))


def names(recipe: ProfileRecipe, point: str) -> tuple[str, ...]:
    assert recipe.points is not None
    return recipe.points[point]


@asynccontextmanager
async def running(wanted: SchedulerOptions) -> AsyncIterator[tuple[InMemoryApi, VirtualClock]]:
    clock = VirtualClock()
    api: Any = InMemoryApi(clock)
    scheduler = build_scheduler(api, clock, seeded(1), wanted)
    api.connect(scheduler.intake)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(scheduler.run())
        await clock.settle()
        yield api, clock
        task.cancel()


def node_of(api: InMemoryApi, name: str) -> str:
    found: str = api.pods[f"default/{name}"]["spec"].get("nodeName", "")
    return found


async def test_two_profiles_place_pods_side_by_side_each_in_its_own_way() -> None:
    body = """
profiles:
- schedulerName: default-scheduler
  plugins: {score: [{name: Alphabet}]}
- schedulerName: packer
  plugins: {score: [{name: NodeResourcesFit}]}
  pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]
"""
    async with running(options(body, [Alphabet])) as (api, clock):
        for name in "abc":
            api.put_node(node(name))
        api.create_pod(pod("first").requests(cpu="1", memory="1Gi").spec(nodeName="b"))
        for number in range(3):
            api.create_pod(pod(f"last-{number}").requests(cpu="100m"))
            api.create_pod(pod(f"packed-{number}").requests(cpu="1", memory="1Gi").spec(schedulerName="packer"))
        api.create_pod(pod("nobodys").spec(schedulerName="somebody-else"))
        await clock.settle()
        assert {node_of(api, f"last-{number}") for number in range(3)} == {"c"}
        assert {node_of(api, f"packed-{number}") for number in range(3)} == {"b"}
        assert node_of(api, "nobodys") == ""


async def test_a_filter_that_is_disabled_does_not_refuse() -> None:
    body = """
profiles:
- schedulerName: default-scheduler
- schedulerName: careless
  plugins: {filter: {disabled: [{name: TaintToleration}]}}
"""
    async with running(options(body)) as (api, clock):
        api.put_node(node("a").taint("gpu", "NoSchedule"))
        api.create_pod(pod("careful"))
        api.create_pod(pod("careless").spec(schedulerName="careless"))
        await clock.settle()
        assert (node_of(api, "careful"), node_of(api, "careless")) == ("", "a")


def test_backoff_comes_from_the_configuration() -> None:
    assert options("podInitialBackoffSeconds: 3\npodMaxBackoffSeconds: 30").backoff == BackoffPolicy(3, 30)
    assert options().backoff == SchedulerOptions().backoff == BackoffPolicy(1, 10)


def test_the_default_options_are_those_of_an_empty_configuration() -> None:
    assert options().profiles == SchedulerOptions().profiles


def test_a_plugin_that_nobody_names_runs_last_in_every_profile() -> None:
    found = options("profiles: [{schedulerName: a}, {schedulerName: b}]", [Alphabet])
    assert [names(recipe, "score")[-1] for recipe in found.profiles.values()] == ["Alphabet", "Alphabet"]


def test_a_plugin_that_the_configuration_names_runs_only_where_it_says() -> None:
    enabled = "{score: {enabled: [{name: Alphabet, weight: 7}]}}"
    found = options(f"profiles: [{{schedulerName: a}}, {{schedulerName: b, plugins: {enabled}}}]", [Alphabet])
    assert "Alphabet" not in names(found.profiles["a"], "score")
    assert names(found.profiles["b"], "score")[-1] == "Alphabet"
    assert {choice.name: choice.weight for choice in found.profiles["b"].plugins}["Alphabet"] == 7


def test_arguments_alone_do_not_count_as_naming_a_plugin() -> None:
    found = options("profiles: [{pluginConfig: [{name: Alphabet, args: {x: 1}}]}]", [Alphabet])
    assert names(found.profiles["default-scheduler"], "score")[-1] == "Alphabet"


def test_an_installed_plugin_runs_only_if_it_is_named() -> None:
    installed = [LoadedPlugin(Alphabet, "package x")]
    found = options_from_configuration(default_configuration(), installed=installed)
    assert "Alphabet" not in names(found.profiles["default-scheduler"], "score")
    named = parse_configuration(HEADER + "profiles: [{plugins: {multiPoint: {enabled: [{name: Alphabet}]}}}]")
    found = options_from_configuration(named, installed=installed)
    assert names(found.profiles["default-scheduler"], "score")[-1] == "Alphabet"


def test_a_plugin_with_the_name_of_a_default_one_is_refused() -> None:
    class NodeName(Alphabet):
        pass

    with pytest.raises(PluginFileError, match=r'a plugin named "NodeName" already exists \(built-in\)'):
        options("", [NodeName])


def test_gates_of_the_file_are_used_unless_others_are_given() -> None:
    kind = "---\napiVersion: config.pilotage.dev/v1alpha1\nkind: PilotageConfiguration\n"
    additions = f"{kind}featureGates: {{GenericWorkload: true}}\n"
    configuration = parse_configuration(HEADER + additions)
    assert options_from_configuration(configuration).feature_gates["GenericWorkload"]
    assert not options_from_configuration(configuration, gates=FeatureGates()).feature_gates["GenericWorkload"]


def test_arguments_whose_gate_is_off_are_refused() -> None:
    body = "profiles: [{pluginConfig: [{name: VolumeBinding, args: {shape: [{utilization: 0, score: 1}]}}]}]"
    assert options(body)
    with pytest.raises(
        ConfigError, match=r"args\.shape: Forbidden: .* turn on the feature gate StorageCapacityScoring"
    ):
        options(body, StorageCapacityScoring=False)


def test_the_default_plugins_have_kube_schedulers_order_and_weights() -> None:
    built = [cls.plugin_name() for cls, _ in DEFAULT_PLUGINS]
    assert built == [name for name in UPSTREAM_ORDER if name in built]
    assert [weight for _, weight in DEFAULT_PLUGINS] == [UPSTREAM_WEIGHTS.get(name, 1) for name in built]


def test_every_plugin_of_kube_scheduler_is_known() -> None:
    known = {cls.plugin_name() for cls, _ in DEFAULT_PLUGINS} | set(NOT_BUILT_YET)
    assert set(UPSTREAM_ORDER) <= known
    assert set(ARGS_OF_DEFAULT_PLUGINS) <= known
    assert set(GATED_PLUGINS) <= known


def test_a_default_plugin_declares_the_arguments_that_are_listed_for_it() -> None:
    declared = {cls.plugin_name(): cls.args_type for cls, _ in DEFAULT_PLUGINS if cls.args_type is not None}
    assert declared == {name: ARGS_OF_DEFAULT_PLUGINS[name] for name in declared}


def test_configurations_that_the_real_kube_scheduler_ran_with_are_accepted() -> None:
    lines = (Path(__file__).parent / "data" / "configs" / "recorded.jsonl").read_text().splitlines()
    assert len(lines) == 148
    for line in lines:
        assert options_from_configuration(configuration_of(msgspec.json.decode(line))).profiles
