"""The walk over the nodes: when it ends, what is taken, what is said, and what is remembered for the next pod."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pilotage.api import (
    CycleState,
    Filter,
    Mask,
    NodeTable,
    NodeView,
    Plugin,
    Reason,
    Reject,
    Rejection,
    VectorFilter,
)
from pilotage.model import Pod
from pilotage.testing import PodBuilder, node, pod
from tests.framework.preemption.preemption_world import PreemptionWorld, budget

HIGH = pod("high").requests(cpu=4).priority(10)


def on_node(name: str, where: str, cpu: int = 4, priority: int = 1) -> PodBuilder:
    return pod(name).requests(cpu=cpu).priority(priority).node(where)


def started(builder: PodBuilder, minute: int) -> PodBuilder:
    return builder.status(startTime=f"2026-01-01T00:{minute:02}:00Z")


def full_nodes(count: int) -> PreemptionWorld:
    nodes = [node(f"n{number}").cpu(4) for number in range(count)]
    return PreemptionWorld(*nodes, *(on_node(f"v{number}", f"n{number}") for number in range(count)))


# --- when it ends -----------------------------------------------------------------------------------------------------


def test_enough_candidates_are_enough() -> None:
    assert [c.node_name for c in full_nodes(5).search(HIGH.build(), wanted=2).candidates] == ["n0", "n1"]


def test_among_enough_candidates_one_must_be_harmless() -> None:
    world = full_nodes(4)
    world.put(
        *(on_node(f"v{number}", f"n{number}").label("app", "web") for number in range(3)), budget("b", 0, app="web")
    )
    found = world.search(HIGH.build(), wanted=2).candidates
    assert [(c.node_name, c.violations) for c in found] == [("n0", 1), ("n1", 1), ("n2", 1), ("n3", 0)]


def test_a_walk_that_was_made_before_ends_at_the_same_place() -> None:
    world = full_nodes(6)
    first = [world.search(HIGH.build(), wanted=w).candidates for w in (2, 4, 2)]
    assert [len(found) for found in first] == [2, 4, 2]


# --- what is taken ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        pytest.param(
            [on_node("a", "x").label("app", "web")],
            [on_node("b", "y", priority=9)],
            id="fewest violations of budgets",
        ),
        pytest.param(
            [on_node("a", "x", priority=3)], [on_node("b", "y", 2, 2), on_node("c", "y", 2, 2)], id="lowest top"
        ),
        pytest.param(
            [on_node("a", "x", 2, 5), on_node("b", "x", 2, 4)],
            [on_node("c", "y", 2, 5), on_node("d", "y", 2, 1)],
            id="smallest sum of priorities",
        ),
        pytest.param([on_node("a", "x", 2), on_node("b", "x", 2)], [on_node("c", "y")], id="fewest victims"),
        pytest.param(
            [started(on_node("a", "x"), 10)], [started(on_node("b", "y"), 20)], id="the youngest of the oldest victims"
        ),
        pytest.param([started(on_node("a", "x"), 10)], [on_node("b", "y")], id="who has not started is young"),
        pytest.param(
            [started(on_node("a", "x", 2, 5), 10), started(on_node("b", "x", 2, 1), 50)],
            [started(on_node("c", "y", 2, 5), 20), started(on_node("d", "y", 2, 1), 1)],
            id="only the most important victims' times count",
        ),
    ],
)
def test_the_least_loss_is_chosen(worse: list[PodBuilder], better: list[PodBuilder]) -> None:
    world = PreemptionWorld(node("x").cpu(4), node("y").cpu(4), *worse, *better, budget("b", 0, app="web"))
    search = world.search(HIGH.build())
    assert [c.node_name for c in search.candidates] == ["x", "y"]
    assert search.best is not None and search.best.node_name == "y"
    assert search.best is min(search.candidates, key=lambda c: c.cost)


def test_of_equal_candidates_the_first_is_taken() -> None:
    search = full_nodes(3).search(HIGH.build())
    assert search.best is search.candidates[0]


# --- what is said -----------------------------------------------------------------------------------------------------


def test_without_a_candidate_it_is_said_why_node_by_node() -> None:
    world = PreemptionWorld(
        node("tiny").cpu(1),
        node("cordoned").cpu(4).unschedulable(),
        node("kept").cpu(4),
        on_node("same", "kept", priority=10),
        node("partly").cpu(4),
        on_node("big", "partly", 3, priority=10),
        on_node("low", "partly", 1),
    )
    assert world.search(HIGH.build()).message() == (
        "0/4 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, "
        "2 Preemption is not helpful for scheduling."
    )


def test_a_nominated_node_is_rejected_for_the_pod_that_is_nominated_it() -> None:
    world = PreemptionWorld(node("n").cpu(4).pods(1), on_node("low", "n"), HIGH.nominated("n"))
    message = world.search(pod("p").requests(cpu="1m").priority(10).build()).message()
    assert message == "0/1 nodes are available: 1 Insufficient cpu, 1 Too many pods."


# --- what is remembered -----------------------------------------------------------------------------------------------


def node_names(world: PreemptionWorld, builder: PodBuilder = HIGH) -> list[str]:
    remembered = world.search(builder.build())
    fresh = world.search(builder.build(), fresh=True)
    found = [c.node_name for c in remembered.candidates]
    assert found == [c.node_name for c in fresh.candidates]
    assert remembered.rejections() == fresh.rejections()
    return found


def test_a_pod_that_leaves_or_comes_changes_its_node_only() -> None:
    world = full_nodes(3)
    assert node_names(world) == ["n0", "n1", "n2"]
    world.cluster.remove_pod("uid-default-v1")
    world.put(on_node("important", "n1", priority=10))
    assert node_names(world) == ["n0", "n2"]


def test_a_nomination_and_its_end_change_the_node() -> None:
    world = full_nodes(2)
    assert node_names(world) == ["n0", "n1"]
    first = pod("first").requests(cpu=4).priority(10).build()
    world.cluster.nominations.nominate(first, "n0")
    assert node_names(world) == ["n1"]
    world.cluster.nominations.remove(first.uid)
    assert node_names(world) == ["n0", "n1"]


def test_a_node_that_changes_is_looked_at_again() -> None:
    world = full_nodes(2)
    assert node_names(world) == ["n0", "n1"]
    world.put(node("n0").cpu(4).taint("gpu", "NoSchedule"))
    assert node_names(world) == ["n1"]


def test_nodes_that_come_and_go_change_everything() -> None:
    world = full_nodes(3)
    assert node_names(world) == ["n0", "n1", "n2"]
    world.cluster.remove_node("n0")
    world.put(node("n3").cpu(4), on_node("v3", "n3"))
    assert sorted(node_names(world)) == ["n1", "n2", "n3"]


def test_a_start_that_is_reported_later_counts() -> None:
    world = PreemptionWorld(node("n").cpu(4), on_node("a", "n", 2), on_node("b", "n", 2))
    need_two = pod("p").requests(cpu=2).priority(10)
    assert world.victims(need_two) == {"n": ["b"]}
    world.put(started(on_node("b", "n", 2), 10))
    assert world.victims(need_two) == {"n": ["a"]}


def test_a_victim_that_begins_to_terminate_is_seen_as_such() -> None:
    world = full_nodes(1)
    assert not world.search(HIGH.build()).candidates[0].victims[0].is_terminating
    world.put(on_node("v0", "n0").terminating())
    assert world.search(HIGH.build()).candidates[0].victims[0].is_terminating


def test_budgets_that_come_or_change_count() -> None:
    world = full_nodes(1)
    world.put(on_node("v0", "n0").label("app", "web"))
    assert [c.violations for c in world.search(HIGH.build()).candidates] == [0]
    world.put(budget("b", 0, app="web"))
    assert [c.violations for c in world.search(HIGH.build()).candidates] == [1]
    world.put(budget("b", 1, app="web"))
    assert [c.violations for c in world.search(HIGH.build()).candidates] == [0]


def test_pods_of_other_priority_or_content_have_a_memory_of_their_own() -> None:
    world = PreemptionWorld(node("n").cpu(4), on_node("a", "n", 2, 5), on_node("b", "n", 2, 1))
    assert world.victims(HIGH) == {"n": ["a", "b"]}
    assert world.victims(pod("p").requests(cpu=4).priority(3)) == {}
    assert world.victims(pod("p").requests(cpu=2).priority(10)) == {"n": ["b"]}


class Fickle(Plugin, Filter, VectorFilter):
    """Rejects all nodes while it is told to; says which version of that its answers belong to."""

    name = "Fickle"

    def __init__(self) -> None:
        self.is_closed = False
        self.times_asked = 0
        self._no = Reason("Closed", "closed for today")

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        self.times_asked += 1
        return Reject(self._no) if self.is_closed else None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        if self.is_closed:
            yield nodes.everywhere(True), self._no

    def sign(self, pod: Pod) -> str:
        return "equal"

    def facts_version(self) -> bool:
        return self.is_closed


def test_equal_pods_are_not_tried_again_on_nodes_that_did_not_change() -> None:
    plugin = Fickle()
    world = PreemptionWorld(*(node(f"n{n}").cpu(4) for n in range(9)), plugins=(plugin,))
    world.put(*(on_node(f"v{n}", f"n{n}") for n in range(9)))
    world.search(HIGH.build())
    asked = plugin.times_asked
    assert asked >= 9
    world.search(pod("equal").requests(cpu=4).priority(10).build())
    assert plugin.times_asked == asked
    world.put(on_node("more", "n3", 0))
    world.search(HIGH.build())
    assert 0 < plugin.times_asked - asked < 9


def test_what_depends_on_other_facts_is_forgotten_with_them() -> None:
    plugin = Fickle()
    world = PreemptionWorld(node("n").cpu(4), on_node("v", "n"), plugins=(plugin,))
    assert world.victims(HIGH) == {"n": ["v"]}
    plugin.is_closed = True
    assert world.victims(HIGH) == {}
    plugin.is_closed = False
    assert world.victims(HIGH) == {"n": ["v"]}
