"""Costs between zones and regions: near what a pod depends on, and never too far."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.api import Action, CycleState, Hint, Pod, Skip
from pilotage.framework.plugin_files import load_plugin_file
from pilotage.testing import FakeHandle, PodBuilder, check_plugin, node, pod
from tests.examples.sandbox_world import EXAMPLES, sandbox

[NetworkCost] = load_plugin_file(EXAMPLES / "network_cost.py")
MODULE: Any = __import__("sys").modules[NetworkCost.__module__]
PLACES = {
    "n1": ("west", "z1"), "n2": ("west", "z1"), "n3": ("west", "z2"), "n4": ("east", "z3"), "n5": ("east", "z4"),
    "n6": ("", ""),
}  # fmt: skip
ARGS = MODULE.NetworkCostArgs(
    app_groups={
        "a1": {
            "p1": (MODULE.Dependency("p2", 15),),
            "p2": (MODULE.Dependency("p3", 20), MODULE.Dependency("p1", 5)),
        }
    },
    region_costs=(MODULE.Cost("west", "east", 20),),
    zone_costs=(MODULE.Cost("z1", "z2", 5), MODULE.Cost("z3", "z4", 10), MODULE.Cost("z4", "z3", 12)),
)


def part(name: str, workload: str, where: str = "", group: str = "a1") -> PodBuilder:
    built = pod(name).label(MODULE.GROUP, group).label(MODULE.WORKLOAD, workload)
    return built.node(where) if where else built


class World:
    def __init__(self, *there: PodBuilder) -> None:
        self.handle = FakeHandle()
        for name, (region, zone) in PLACES.items():
            built = node(name)
            self.handle.put((built.region(region).zone(zone) if zone else built).build())
        self.handle.put(*(one.build() for one in there))
        self.plugin: Any = NetworkCost(self.handle, ARGS)  # type: ignore[call-arg]

    def judged(self, asked: Pod) -> dict[str, tuple[int, bool]]:
        """Per node, the cost and whether it is rejected."""
        state, nodes = CycleState(), self.handle.nodes
        assert self.plugin.pre_filter(state, asked, nodes) is None
        [(rejected, _)] = self.plugin.filter_all(state, asked, nodes)
        costs = self.plugin.score_all(state, asked, nodes)
        return dict(zip(nodes.names, zip(costs.tolist(), rejected.tolist(), strict=True), strict=True))


def test_costs_add_up_and_far_nodes_are_rejected() -> None:
    world = World(part("p2-0", "p2", "n1"), part("p3-0", "p3", "n4"), part("other", "p2", "n5", group="a2"))
    assert world.judged(part("p1-0", "p1").build()) == {
        "n1": (0, False), "n2": (1, False), "n3": (5, False), "n4": (20, True), "n5": (20, True), "n6": (100, True),
    }  # fmt: skip
    assert world.judged(part("p2-1", "p2").build())["n5"] == (12, False), "each direction has its own cost"


def test_a_pod_without_dependencies_is_no_ones_business() -> None:
    world = World()
    for one in (pod("plain"), part("p3-0", "p3"), part("x", "p1", group="unknown")):
        assert world.plugin.pre_filter(CycleState(), one.build(), world.handle.nodes) == Skip()


def test_the_cheapest_node_is_the_best_one() -> None:
    plugin = World().plugin
    normalize = plugin.normalize
    assert normalize(CycleState(), None, np.array([0, 5, 20])).tolist() == [100, 75, 0]
    assert normalize(CycleState(), None, np.array([7, 7])).tolist() == [100, 100]


def naive(there: list[tuple[str, str]], workload: str, at: str) -> tuple[int, bool]:
    """The description, pod by pod."""
    zones = {("z1", "z2"): 5, ("z2", "z1"): 5, ("z3", "z4"): 10, ("z4", "z3"): 12}
    cost = near = far = 0
    for dependency in ARGS.app_groups["a1"][workload]:
        for other, where in there:
            if other != dependency.workload:
                continue
            if where == at:
                near += 1
                continue
            if PLACES[where] == PLACES[at]:
                cost, near = cost + 1, near + 1
                continue
            regions = {PLACES[where][0], PLACES[at][0]}
            between = zones.get((PLACES[at][1], PLACES[where][1]), 100) if len(regions) == 1 else 100
            between = 20 if regions == {"west", "east"} else between
            cost += between
            near, far = (near + 1, far) if between <= dependency.max_network_cost else (near, far + 1)
    return cost, far > near


PLACED = st.lists(st.tuples(st.sampled_from(["p1", "p2", "p3"]), st.sampled_from(list(PLACES))), max_size=8)


@settings(max_examples=60, deadline=None)
@given(there=PLACED, workload=st.sampled_from(["p1", "p2"]))
def test_columns_say_what_counting_pod_by_pod_says(there: list[tuple[str, str]], workload: str) -> None:
    world = World(*(part(f"x{at}", what, where) for at, (what, where) in enumerate(there)))
    found = world.judged(part("asked", workload).build())
    assert found == {name: naive(there, workload, name) for name in PLACES}


def test_hints_are_about_what_the_pod_depends_on() -> None:
    plugin = World().plugin
    asked = part("p1-0", "p1").build()
    for new, expected in (
        (part("a", "p2", "n1"), Hint.QUEUE),
        (part("a", "p3", "n1"), Hint.SKIP),
        (part("a", "p2", "n1", group="a2"), Hint.SKIP),
        (pod("a").node("n1"), Hint.SKIP),
    ):
        assert plugin.after_pod(asked, None, new.build()) is expected
        assert plugin.after_pod(asked, new.build(), None) is expected
    here, there = node("n").zone("z1").build(), node("n").zone("z2").build()
    assert (plugin.after_node(asked, here, here), plugin.after_node(asked, here, there)) == (Hint.SKIP, Hint.QUEUE)
    assert Action.ADD in {action for one in plugin.registrations() for action in one.event.action}


def test_it_meets_the_requirements_with_applications() -> None:
    nodes = [node(f"s{at}").region(region).zone(zone) for at, (region, zone) in enumerate(list(PLACES.values())[:5])]
    pods = [part("s1", "p1"), part("s2", "p2"), part("s3", "p3")]
    check_plugin(NetworkCost, args=ARGS, nodes=nodes, pods=pods)


async def test_in_the_sandbox_the_pod_goes_to_the_node_of_what_it_depends_on() -> None:
    async with sandbox("network_cost", config="network_cost.config.yaml") as world:
        await world.after(1)
        assert world.nodes_of("p1") == {"p1-0": "n1"}
        for name in ("n1", "n2", "n3", "n4"):
            world.api.patch("nodes", "", name, b'{"spec": {"unschedulable": true}}', "application/merge-patch+json")
        world.api.create("pods", "default", part("p1-1", "p1").json())
        await world.after(1)
        assert "node(s) were too far from what the pod depends on" in world.condition("p1-1")["message"]


@pytest.mark.parametrize("cost", [-1])
def test_negative_costs_are_rejected(cost: int) -> None:
    args = MODULE.NetworkCostArgs(zone_costs=(MODULE.Cost("a", "b", cost),))
    assert list(args.problems()) == [("zoneCosts", "costs must not be negative")]
