"""Pods of groups as victims of a single pod: a group that is disrupted as one goes or stays as a whole."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotage.api.group_members import PodGroups
from pilotage.framework.preemption.budgets import DisruptionBudgets
from pilotage.framework.preemption.units import VictimUnits
from pilotage.model import KINDS
from pilotage.testing import PodBuilder, node, pod
from tests.framework.preemption.preemption_world import PreemptionWorld, budget

BOSS = pod("boss").requests(cpu=2).priority(10)


def group(name: str, priority: int, mode: str = "all") -> Any:
    spec = {"schedulingPolicy": {"gang": {"minCount": 1}}, "priority": priority, "disruptionMode": {mode: {}}}
    described = {"metadata": {"name": name, "namespace": "default", "uid": f"{name}-{priority}-{mode}"}, "spec": spec}
    return KINDS["podgroups"].decode(msgspec.json.encode(described))


def member(name: str, of: str, on: str, cpu: int = 2, priority: int = 1) -> PodBuilder:
    grouped = pod(name).requests(cpu=cpu).priority(priority).spec(schedulingGroup={"podGroupName": of})
    return grouped.node(on)


def two_nodes(*pods: PodBuilder, groups: tuple[Any, ...]) -> PreemptionWorld:
    world = PreemptionWorld(node("a").cpu(2).pods(9), node("b").cpu(2).pods(9))
    for one in groups:
        world.cluster.put_object("PodGroup", one)
    world.put(*pods)
    return world


def test_units_are_pods_or_whole_groups_with_the_priority_of_the_group() -> None:
    world = two_nodes(
        member("w-0", "whole", "a"), member("w-1", "whole", "b"), member("s-0", "single", "a", cpu=0),
        member("safe", "high", "b", cpu=0), member("orphan", "nobody", "b", cpu=0), pod("plain").priority(2).node("a"),
        groups=(group("whole", 3), group("single", 4, "single"), group("high", 20, "single")),
    )  # fmt: skip
    cluster = world.cluster
    units = VictimUnits(cluster.index(DisruptionBudgets), cluster.index(PodGroups))
    everybody = [one for row in range(2) for one in cluster.nodes.pods_on(row).values()]
    found = {tuple(sorted(one.name for one in unit.pods)): unit.priority for unit in units.below(everybody, 10)}
    assert found == {("w-0", "w-1"): 3, ("s-0",): 4, ("orphan",): 1, ("plain",): 2}
    by_importance = sorted(units.below(everybody, 10), key=lambda unit: unit.importance)
    assert [unit.pods[0].name for unit in by_importance] == ["s-0", "w-0", "plain", "orphan"]


def test_all_pods_of_the_group_are_victims_on_either_node() -> None:
    world = two_nodes(member("w-0", "whole", "a"), member("w-1", "whole", "b"), groups=(group("whole", 1),))
    found = world.victims(BOSS)
    assert {name: sorted(victims) for name, victims in found.items()} == {"a": ["w-0", "w-1"], "b": ["w-0", "w-1"]}


def test_the_unit_is_spared_as_a_whole_if_another_pod_is_enough() -> None:
    world = PreemptionWorld(node("a").cpu(3).pods(9), node("b").cpu(9).pods(9))
    world.cluster.put_object("PodGroup", group("whole", 5))
    world.put(
        member("w-0", "whole", "a", cpu=1), member("w-1", "whole", "b", cpu=9), pod("low").requests(cpu=2).node("a")
    )
    assert world.victims(BOSS)["a"] == ["low"]


def test_a_group_that_is_more_important_protects_its_pods_whatever_they_say() -> None:
    world = two_nodes(member("w-0", "whole", "a"), member("w-1", "whole", "b"), groups=(group("whole", 50),))
    assert world.victims(BOSS) == {}


def test_a_budget_counts_the_pods_of_a_unit() -> None:
    protected = member("w-0", "whole", "a").label("app", "x"), member("w-1", "whole", "b").label("app", "x")
    world = two_nodes(*protected, groups=(group("whole", 1),))
    world.put(budget("pdb", 1, app="x"))
    assert {candidate.violations for candidate in world.search(BOSS.build()).candidates} == {1}


def test_what_is_remembered_of_a_node_is_void_when_the_unit_changes() -> None:
    """The node itself stays as it is."""
    world = two_nodes(member("w-0", "whole", "a"), member("w-1", "whole", "b"), groups=())
    assert world.victims(BOSS) == {"a": ["w-0"], "b": ["w-1"]}
    world.cluster.put_object("PodGroup", group("whole", 1))
    assert sorted(world.victims(BOSS)["a"]) == ["w-0", "w-1"]
    gone = next(iter(world.cluster.nodes.pods_on(world.cluster.nodes.row("b") or 0).values()))
    world.cluster.remove_pod(gone.uid)
    assert world.victims(BOSS).get("a", world.victims(BOSS).get("b")) is not None
    remembered = {c.node_name: [v.name for v in c.victims] for c in world.search(BOSS.build()).candidates}
    afresh = {c.node_name: [v.name for v in c.victims] for c in world.search(BOSS.build(), fresh=True).candidates}
    assert remembered == afresh
    world.cluster.remove_object("PodGroup", "default/whole")
    world.put(member("w-2", "whole", "b"))
    assert world.victims(BOSS) == {"a": ["w-0"], "b": ["w-2"]}
