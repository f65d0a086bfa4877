"""Victims for a group: found on columns or on the cluster itself they are the same, and the search changes nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilotage.api import CycleState, Filter, NodeView, Plugin, Rejection, Sees
from pilotage.api.pod_groups import GroupVictims
from pilotage.cycle import group_preemption
from pilotage.cycle.cycle_budget import CycleBudgets, CycleGuard
from pilotage.cycle.group_placement import GroupPlacer, Member
from pilotage.cycle.group_preemption import GroupPreemption
from pilotage.cycle.slow_plugins import SlowPlugins
from pilotage.model import KINDS, Pod
from pilotage.observe.metrics import Metrics
from pilotage.testing import PodBuilder, VirtualClock, node, pod
from tests.framework.preemption.preemption_world import PreemptionWorld, budget


def group(name: str, min_count: int, priority: int, **spec: Any) -> Any:
    described = {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}, "priority": priority, **spec},
    }
    return KINDS["podgroups"].decode(msgspec.json.encode(described))


def member(name: str, group_name: str, cpu: int, priority: int) -> PodBuilder:
    return pod(name).requests(cpu=cpu).priority(priority).spec(schedulingGroup={"podGroupName": group_name})


class GroupSearch:
    """A cluster, and the search for victims of one group in it."""

    def __init__(self, world: PreemptionWorld) -> None:
        self.world = world
        self.cluster = world.cluster
        clock = VirtualClock()
        metrics = Metrics(lambda gate: True)
        budgets = CycleBudgets(float("inf"), clock, metrics)
        guard = CycleGuard(budgets, SlowPlugins(clock, metrics, budgets.budget))
        placer = GroupPlacer(world.engine, world.cluster, guard)
        self._search = GroupPreemption(world.engine, world.cluster, placer)

    def put_group(self, one: Any) -> None:
        self.cluster.put_object("PodGroup", one)

    def search(self, one: Any, pods: list[Pod]) -> GroupVictims:
        before = self._facts()
        try:
            return self._search.search(one, [Member(each, CycleState()) for each in pods])
        finally:
            self.cluster.check()
            assert self._facts() == before, "the cluster is as it was"

    def _facts(self) -> list[object]:
        nodes, counts = self.cluster.nodes, self.cluster.placed_count
        columns = [nodes.requested("cpu").tolist(), nodes.pod_count.tolist()]
        rows = [(nodes.requested_at(row, "cpu"), sorted(nodes.pods_on(row))) for row in range(len(nodes))]
        return [*columns, rows, counts, self.cluster.assumed_count, list(self.cluster.nominations.nodes())]


def names(found: GroupVictims) -> tuple[list[str], list[tuple[str, str]], str]:
    return [v.name for v in found.victims], [(p.name, n) for p, n in found.places], found.message


amounts = st.integers(1, 3)
running_pods = st.lists(st.tuples(st.integers(0, 3), amounts, st.integers(0, 3), st.integers(0, 4)), max_size=14)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(2, 6), min_size=1, max_size=4), running_pods, st.lists(amounts, min_size=1, max_size=5),
       st.integers(1, 4), st.integers(0, 2), st.booleans())  # fmt: skip
@example([2, 3], [(0, 1, 0, 3), (0, 1, 0, 3), (1, 1, 0, 0), (1, 1, 0, 1), (1, 1, 0, 1)], [1], 1, 1, True)
def test_columns_and_the_cluster_itself_give_the_same_victims(
    sizes: list[int],
    pods: list[tuple[int, int, int, int]],
    wanted: list[int],
    priority: int,
    allowed: int,
    has_budget: bool,
) -> None:
    world = PreemptionWorld(*(node(f"n{at}").cpu(cpu).pods(20) for at, cpu in enumerate(sizes)))
    search = GroupSearch(world)
    search.put_group(group("whole", 1, 1, disruptionMode={"all": {}}))
    search.put_group(group("single", 1, 2))
    left = dict(enumerate(sizes))
    for number, (at, cpu, level, belongs) in enumerate(pods):
        at %= len(sizes)
        if left[at] < cpu:
            continue
        left[at] -= cpu
        builder = pod(f"p{number}").requests(cpu=cpu).priority(level).label("app", "x" if belongs % 2 else "y")
        if belongs == 3:
            builder = member(f"p{number}", "whole", cpu, 1)
        elif belongs == 4:
            builder = member(f"p{number}", "single", cpu, 2)
        world.put(builder.node(f"n{at}"))
    if has_budget:
        world.put(budget("pdb", allowed, app="x"))
    one = group("g", min(len(wanted), 3), priority)
    search.put_group(one)
    waiting = [member(f"g{at}", "g", cpu, priority).build() for at, cpu in enumerate(wanted)]
    on_columns = search.search(one, waiting)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_preemption, "_looks_at_amounts_only", lambda engine, member: False)
        everywhere = search.search(one, waiting)
    assert names(on_columns) == names(everywhere)
    assert all(victim.priority < priority for victim in on_columns.victims)


def test_only_as_many_go_as_are_needed_and_the_least_important() -> None:
    search = GroupSearch(PreemptionWorld(node("n").cpu(4).pods(9)))
    for name, level in (("a", 3), ("b", 1), ("c", 2), ("d", 1)):
        search.world.put(pod(name).requests(cpu=1).priority(level).node("n"))
    one = group("g", 2, 9)
    found = search.search(one, [member(f"g{at}", "g", 1, 9).build() for at in range(2)])
    assert names(found) == (["b", "d"], [("g0", "n"), ("g1", "n")], "")


def running(name: str, node_name: str, cpu: int = 1, priority: int = 0) -> PodBuilder:
    return pod(name).requests(cpu=cpu).priority(priority).node(node_name)


Repelling = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"labelSelector": {"matchLabels": {"app": "repelled"}}, "topologyKey": "kubernetes.io/hostname"}
]}}  # fmt: skip


@pytest.mark.parametrize("looks_around", [False, True], ids=["amounts", "pods"])
@pytest.mark.parametrize(
    ("pods", "count", "victims"),
    [
        ([running("a1", "a"), running("a2", "a"), running("b1", "b"), running("b2", "b")], 2, {"a1", "a2"}),
        ([running("a1", "a", 2, 5), running("b1", "b", 2, 1), running("c1", "c", 2, 5)], 1, {"b1"}),
        ([running("a1", "a"), running("a2", "a"), running("b1", "b", 2), running("c1", "c", 2, 9)], 1, {"b1"}),
        ([running("a1", "a", 2, 1), running("b1", "b", 2, 2), running("c1", "c", 2, 3)], 2, {"a1", "b1"}),
    ],
    ids=["a free node is taken", "the least important", "one instead of two", "the two least important"],
)
def test_members_go_where_they_do_the_least_harm(
    pods: list[PodBuilder], count: int, victims: set[str], looks_around: bool
) -> None:
    """And not where they would score best if all the others were gone."""
    search = GroupSearch(PreemptionWorld(*(node(name).cpu(2).pods(9) for name in "abc"), *pods))
    one = group("g", count, 9)
    search.put_group(one)
    waiting = [member(f"g{at}", "g", 2, 9) for at in range(count)]
    if looks_around:
        waiting = [each.spec(affinity=Repelling, schedulingGroup={"podGroupName": "g"}) for each in waiting]
    found = search.search(one, [each.build() for each in waiting])
    assert {victim.name for victim in found.victims} == victims
    assert len(found.places) == count


def test_a_group_that_goes_as_a_whole_makes_room_on_all_its_nodes() -> None:
    search = GroupSearch(PreemptionWorld(*(node(name).cpu(2).pods(9) for name in "abcd")))
    search.put_group(group("whole", 2, 1, disruptionMode={"all": {}}))
    search.world.put(running("other", "a", 2, 1), running("another", "b", 2, 1))
    search.world.put(*(member(f"whole-{at}", "whole", 2, 1).node(at) for at in "cd"))
    one = group("g", 2, 9)
    search.put_group(one)
    found = search.search(one, [member(f"g{at}", "g", 2, 9).build() for at in range(2)])
    assert len(found.victims) == 2
    assert {victim.name for victim in found.victims} in ({"other", "another"}, {"whole-c", "whole-d"})


def test_a_budget_that_is_used_up_counts_more_than_a_few_more_victims() -> None:
    search = GroupSearch(PreemptionWorld(*(node(name).cpu(2).pods(9) for name in "ab")))
    search.world.put(running("a1", "a", 2).label("app", "x"), running("b1", "b"), running("b2", "b"))
    search.world.put(budget("pdb", 0, app="x"))
    one = group("g", 1, 9)
    search.put_group(one)
    found = search.search(one, [member("g0", "g", 2, 9).build()])
    assert ({victim.name for victim in found.victims}, found.violations) == ({"b1", "b2"}, 0)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(2, 6), min_size=1, max_size=4), running_pods, st.integers(1, 3), st.integers(1, 4))
def test_no_more_harm_is_done_than_where_the_members_would_score_best(
    sizes: list[int], pods: list[tuple[int, int, int, int]], cpu: int, count: int
) -> None:
    world = PreemptionWorld(*(node(f"n{at}").cpu(size).pods(20) for at, size in enumerate(sizes)))
    search = GroupSearch(world)
    left = dict(enumerate(sizes))
    for number, (at, asked, level, _) in enumerate(pods):
        at %= len(sizes)
        if left[at] >= asked:
            left[at] -= asked
            world.put(running(f"p{number}", f"n{at}", asked, level))
    one = group("g", count, 4)
    search.put_group(one)
    waiting = [member(f"g{at}", "g", cpu, 4).build() for at in range(count)]
    found = search.search(one, waiting)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GroupPreemption, "_with_less_harm", lambda self, found, *others: found)
        plain = search.search(one, waiting)
    assert found.message == plain.message and len(found.places) >= len(plain.places)
    assert harm(found) <= harm(plain)


def harm(found: GroupVictims) -> tuple[int, int]:
    return max((victim.priority for victim in found.victims), default=0), len(found.victims)


def test_no_one_goes_for_a_group_that_does_not_fit_even_then() -> None:
    search = GroupSearch(PreemptionWorld(node("n").cpu(4).pods(9), pod("a").requests(cpu=4).priority(1).node("n")))
    found = search.search(group("g", 5, 9), [member(f"g{at}", "g", 1, 9).build() for at in range(5)])
    assert names(found) == ([], [], "minCount (5) cannot be satisfied: 4 scheduled, 0 remaining")


def test_members_that_look_at_pods_are_placed_without_the_victims() -> None:
    """The ports of victims are free, and the victim that repels members is gone."""
    port = {"containers": [{"name": "c", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "1"}}}]}
    search = GroupSearch(PreemptionWorld(node("n").cpu(4).pods(9), pod("a").spec(**port).priority(1).node("n")))
    search.world.put(pod("b").requests(cpu=1).priority(1).node("n"))
    waiting = pod("g0").spec(**port, schedulingGroup={"podGroupName": "g"}).priority(9).build()
    assert names(search.search(group("g", 1, 9), [waiting])) == (["a"], [("g0", "n")], "")


class Touchy(Plugin, Filter):
    """Raises when it has been asked a number of times."""

    filter_sees = Sees.NODE

    def __init__(self, patience: int, sees: Sees) -> None:
        self.patience = patience
        self.filter_sees = sees  # type: ignore[misc]

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        self.patience -= 1
        if self.patience < 0:
            raise RuntimeError("enough")
        return None


@pytest.mark.parametrize("sees", [Sees.NODE, Sees.PODS])
@pytest.mark.parametrize("patience", range(0, 12))
def test_the_cluster_is_as_it_was_when_a_plugin_raises(patience: int, sees: Sees) -> None:
    world = PreemptionWorld(*(node(f"n{at}").cpu(2).pods(9) for at in range(2)), plugins=(Touchy(patience, sees),))
    for number in range(4):
        world.put(pod(f"p{number}").requests(cpu=1).node(f"n{number % 2}"))
    search = GroupSearch(world)
    try:
        search.search(group("g", 2, 9), [member(f"g{at}", "g", 1, 9).build() for at in range(2)])
    except Exception as error:
        assert "enough" in str(error)


def test_without_lower_priorities_the_table_counts_as_if_they_were_not_there() -> None:
    world = PreemptionWorld(node("n").cpu(4).pods(9), node("m").cpu(4).pods(9))
    world.put(pod("low").requests(cpu=1, memory="1Gi").node("n"), pod("high").requests(cpu=2).priority(5).node("n"))
    world.put(pod("odd").requests({"example.com/card": 3}).node("m"))
    nodes = world.cluster.nodes
    row, other = nodes.row("n"), nodes.row("m")
    assert row is not None and other is not None
    with nodes.without_lower(5) as gone:
        assert {name for r in gone for name in (p.name for p in gone[r].values())} == {"low", "high", "odd"}
        assert [p.name for p in nodes.pods_on(row).values()] == ["high"]
        assert nodes.requested("cpu").tolist()[row] == nodes.requested_at(row, "cpu") == 2000
        assert nodes.requested_at(other, "example.com/card") == 0 and nodes.pod_count.tolist()[other] == 0
        nodes.check()
    assert nodes.requested_at(row, "cpu") == 3000 and nodes.requested_at(other, "example.com/card") == 3
    nodes.check()
