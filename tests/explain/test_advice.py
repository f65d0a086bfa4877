"""Would fit if: the change is told, and it is true."""

from __future__ import annotations

import pytest

from pilotage.explain.explainer import explain
from pilotage.testing import NodeBuilder, PodBuilder, node, pod
from tests.explain.world import engine_of

SMALL = pod("p").requests(cpu="1", memory="1Gi")


def advice(waiting: PodBuilder, *things: NodeBuilder | PodBuilder) -> list[tuple[str, str]]:
    report = explain(engine_of(*things), waiting.build())
    return [(found.change, found.node) for found in report.would_fit_if]


def test_less_of_a_resource() -> None:
    found = advice(pod("p").requests(cpu="3"), node("a").cpu("2"), node("b").cpu("2500m"))
    assert found[0] == ("it asked for 2500m cpu instead of 3", "b")


def test_toleration() -> None:
    found = advice(SMALL, node("a").taint("gpu", "NoSchedule", "a100"))
    assert found[0] == ("it tolerated the taint gpu=a100:NoSchedule", "a")


def test_uncordoned_node() -> None:
    assert ("node a were uncordoned", "a") in advice(SMALL, node("a").unschedulable())


def test_label_of_a_selector() -> None:
    found = advice(SMALL.node_selector({"disk": "ssd"}), node("a"), node("b").cpu("100m"))
    assert found[0] == ("node a had the label disk=ssd", "a")


def test_label_of_an_affinity_term() -> None:
    found = advice(SMALL.node_affinity_in("zone", ["z1", "z2"]), node("a"))
    assert found[0] == ("node a had the label zone=z1", "a")


def test_one_more_node() -> None:
    full = pod("other").requests(cpu="4").node("a")
    assert ("there were one more node like a", "") in advice(pod("p").requests(cpu="4"), node("a").cpu("4"), full)


def test_higher_priority_that_lets_it_evict() -> None:
    full = pod("other").priority(7).requests(cpu="4").node("a")
    found = advice(pod("p").priority(5).requests(cpu="4"), node("a").cpu("4"), full)
    assert ("its priority were above 7 instead of 5 (by preemption)", "a") in found


def test_every_kind_of_change_is_reported_before_a_second_of_one_kind() -> None:
    tainted = [node(name).cpu("4").taint(name, "NoSchedule") for name in ("x", "y", "z")]
    full = pod("other").requests(cpu="3").node("a")
    found = advice(pod("p").requests(cpu="2"), node("a").cpu("4"), full, node("c").cpu("4").unschedulable(), *tainted)
    assert [change for change, _ in found] == [
        "it asked for 1 cpu instead of 2",
        "it tolerated the taint x:NoSchedule",
        "node c were uncordoned",
        "there were one more node like a",
        "its priority were above 0 instead of 0 (by preemption)",
    ]


@pytest.mark.parametrize(
    "nodes",
    [
        [node("a").taint("x", "NoSchedule").taint("y", "NoSchedule")],
        [node("a").cpu("100m").taint("x", "NoSchedule")],
        [node("a").unschedulable().taint("x", "NoExecute")],
    ],
    ids=["two taints", "too small and tainted", "cordoned and tainted"],
)
def test_single_change_that_would_not_be_enough_is_not_told(nodes: list[NodeBuilder]) -> None:
    single = [change for change, _ in advice(SMALL, *nodes)]
    assert single == []
