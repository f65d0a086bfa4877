"""Who would have to go from a node: nobody of equal or higher priority, nobody too many, the protected last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
    Sees,
    VectorFilter,
)
from pilotage.model import Pod
from pilotage.testing import PodBuilder, node, pod
from tests.framework.preemption.preemption_world import PreemptionWorld, budget

NODE = node("n").cpu(4).pods(10)
HIGH = pod("high").requests(cpu=4).priority(10)


def on_node(name: str, cpu: int | str = 1, priority: int = 1) -> PodBuilder:
    return pod(name).requests(cpu=cpu).priority(priority).node("n")


def started(builder: PodBuilder, minute: int) -> PodBuilder:
    return builder.status(startTime=f"2026-01-01T00:{minute:02}:00Z")


def test_all_must_go_if_all_room_is_needed() -> None:
    assert PreemptionWorld(NODE, on_node("a"), on_node("b")).victims(HIGH) == {"n": ["a", "b"]}


def test_pods_of_the_same_or_higher_priority_stay() -> None:
    world = PreemptionWorld(NODE, on_node("same", 2, priority=10), on_node("higher", 1, priority=11), on_node("low", 1))
    assert world.victims(HIGH) == {}
    assert world.search(HIGH.build()).rejections()["n"][0] == "NodeResourcesFit"
    assert world.victims(pod("small").requests(cpu=1).priority(10)) == {"n": ["low"]}


def test_the_most_important_pods_are_spared() -> None:
    world = PreemptionWorld(NODE, on_node("a", priority=1), on_node("b", priority=3), on_node("c", 2, priority=2))
    assert world.victims(pod("p").requests(cpu=1).priority(10)) == {"n": ["a"]}
    assert world.victims(pod("p").requests(cpu=2).priority(10)) == {"n": ["c"]}
    assert world.victims(pod("p").requests(cpu=3).priority(10)) == {"n": ["c", "a"]}


def test_of_equal_priority_those_that_run_longest_are_spared() -> None:
    pods = [started(on_node("young"), 30), on_node("not-started"), started(on_node("old", 2), 10)]
    world = PreemptionWorld(NODE, *pods)
    assert world.victims(pod("p").requests(cpu=1).priority(10)) == {"n": ["not-started"]}
    assert world.victims(pod("p").requests(cpu=2).priority(10)) == {"n": ["young", "not-started"]}


def test_a_small_pod_is_spared_even_if_a_more_important_one_is_not() -> None:
    world = PreemptionWorld(NODE, on_node("big", 3, priority=5), on_node("small", 1, priority=1))
    assert world.victims(pod("p").requests(cpu=3).priority(10)) == {"n": ["big"]}


def test_too_many_pods_is_a_reason_too() -> None:
    world = PreemptionWorld(node("n").cpu(4).pods(2), on_node("a", "1m", priority=1), on_node("b", "1m", priority=2))
    assert world.victims(pod("p").requests(cpu=1).priority(10)) == {"n": ["a"]}


def test_pods_under_a_budget_are_spared_first() -> None:
    world = PreemptionWorld(
        NODE, on_node("precious", 2, priority=1).label("app", "web"), on_node("common", 2, priority=5)
    )
    need_two = pod("p").requests(cpu=2).priority(10)
    assert world.victims(need_two) == {"n": ["precious"]}
    world.put(budget("b", 0, app="web"))
    assert world.victims(need_two) == {"n": ["common"]}
    (candidate,) = world.search(need_two.build()).candidates
    assert candidate.violations == 0


def test_a_budget_is_violated_if_there_is_no_other_way() -> None:
    world = PreemptionWorld(
        NODE, *(on_node(name, 2).label("app", "web") for name in ("a", "b")), budget("b", 1, app="web")
    )
    (candidate,) = world.search(HIGH.build()).candidates
    assert (len(candidate.victims), candidate.violations) == (2, 1)


def test_victims_are_listed_by_importance_also_with_budgets() -> None:
    world = PreemptionWorld(
        NODE,
        on_node("protected", 2, priority=1).label("app", "web"),
        on_node("important", 2, priority=5),
        budget("b", 0, app="web"),
    )
    assert world.victims(HIGH) == {"n": ["important", "protected"]}


def test_a_node_without_anyone_of_lower_priority_is_no_candidate() -> None:
    world = PreemptionWorld(NODE, on_node("same", 4, priority=10))
    ((plugin, rejection),) = world.search(HIGH.build()).rejections().values()
    assert plugin == "" and rejection.unresolvable
    assert [reason.message for reason in rejection.reasons] == ["No preemption victims found for incoming pod"]


def test_a_place_that_is_nominated_for_an_equal_pod_is_not_to_be_had() -> None:
    world = PreemptionWorld(NODE, on_node("low", 4), pod("first").requests(cpu=3).priority(10).nominated("n"))
    assert world.victims(HIGH) == {}
    assert world.victims(pod("p").requests(cpu=1).priority(10)) == {"n": ["low"]}
    assert world.victims(pod("more").requests(cpu=4).priority(11)) == {"n": ["low"]}


def test_who_comes_back_must_leave_room_for_nominated_pods_too() -> None:
    world = PreemptionWorld(NODE, on_node("a", 1, priority=2), on_node("b", 2, priority=1))
    need_two = pod("p").requests(cpu=2).priority(10)
    assert world.victims(need_two) == {"n": ["b"]}
    world.put(pod("first").requests(cpu=1).priority(10).nominated("n"))
    assert world.victims(need_two) == {"n": ["b"]}
    world.put(pod("second").requests(cpu=1).priority(10).nominated("n"))
    assert world.victims(need_two) == {"n": ["a", "b"]}


def test_a_pod_is_not_in_the_way_of_itself() -> None:
    mine = HIGH.nominated("n")
    world = PreemptionWorld(NODE, on_node("low", 4), mine)
    assert world.victims(mine) == {"n": ["low"]}
    assert world.victims(pod("other").requests(cpu=4).priority(10)) == {}
    assert world.victims(mine) == {"n": ["low"]}


class Quarrelsome(Plugin, Filter):
    """Rejects nodes on which there is a pod with a certain name: something that no column knows."""

    name = "Quarrelsome"

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        if any(other.name == "enemy" for other in node.pods):
            return Reject(Reason("Enemy", "the enemy is there"))
        return None


class Moody(Plugin, Filter):
    """Rejects every node once, and none when asked again."""

    name = "Moody"

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        if node.name in self.seen:
            return None
        self.seen.add(node.name)
        return Reject(Reason("Mood", "not now"))


class Broken(Plugin, Filter):
    """Works while nothing is missing from the node, and raises otherwise."""

    name = "Broken"

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        if not node.pods:
            raise ZeroDivisionError("no pods")
        return Reject(Reason("Broken", "there are pods"))


class BrokenScales(Plugin, Filter, VectorFilter):
    """Looks at amounts, and fails where nothing is requested."""

    name = "BrokenScales"
    filter_sees = Sees.AMOUNTS

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        if not node.requested("cpu"):
            raise ZeroDivisionError("nothing on the scales")
        return Reject(Reason("Scales", "too heavy")) if node.requested("cpu") > 1000 else None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        if not nodes.requested("cpu").all():
            raise ZeroDivisionError("nothing on the scales")
        yield nodes.requested("cpu") > 1000, Reason("Scales", "too heavy")


def test_a_filter_that_fails_on_some_nodes_does_not_spoil_the_others() -> None:
    world = PreemptionWorld(*(node(f"n{number}").cpu(4) for number in range(9)), plugins=(BrokenScales(),))
    for number in range(9):
        world.put(pod(f"low-{number}").requests(cpu=2).priority(1).node(f"n{number}"))
    world.put(pod("kept").requests(cpu=1).priority(10).node("n4"))
    search = world.search(pod("p").requests(cpu=1).priority(10).build())
    assert [c.node_name for c in search.candidates] == ["n4"]
    assert {str(error) for error in search.errors} == {
        'running "BrokenScales" filter plugin: ZeroDivisionError: nothing on the scales'
    }
    assert len(search.errors) == 8


def test_filters_that_look_at_pods_see_who_is_imagined_away() -> None:
    world = PreemptionWorld(NODE, on_node("enemy"), on_node("friend"), plugins=(Quarrelsome(),))
    assert world.victims(pod("p").priority(10)) == {"n": ["enemy"]}


@pytest.mark.parametrize(
    ("plugin", "text"),
    [
        (Moody(), 'expected at least one victim pod on node "n"'),
        (Broken(), 'running "Broken" filter plugin: ZeroDivisionError: no pods'),
    ],
)
def test_a_node_that_cannot_be_tried_is_an_error_and_no_candidate(plugin: Any, text: str) -> None:
    search = PreemptionWorld(NODE, on_node("low"), plugins=(plugin,)).search(pod("p").priority(10).build())
    assert (search.candidates, search.best) == ([], None)
    assert [str(error) for error in search.errors] == [text]
