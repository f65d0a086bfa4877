"""Columns say of many nodes at once that nothing helps there, and who rejects, only if that is certain."""

from __future__ import annotations

from pilotage.testing import PodBuilder, node, pod
from tests.framework.preemption.preemption_world import PreemptionWorld

ENOUGH = 10
"""So many nodes are worth asking columns."""


def with_port(builder: PodBuilder, cpu: int) -> PodBuilder:
    container = {
        "name": "main",
        "resources": {"requests": {"cpu": str(cpu)}},
        "ports": [{"hostPort": 80, "containerPort": 80}],
    }
    return builder.spec(containers=[container])


def reasons(world: PreemptionWorld, builder: PodBuilder) -> dict[str, tuple[str, list[str]]]:
    found = world.search(builder.build()).rejections()
    return {
        name: (plugin, sorted(reason.message for reason in rejection.reasons))
        for name, (plugin, rejection) in found.items()
    }


def same_everywhere(world: PreemptionWorld, builder: PodBuilder) -> tuple[str, list[str]]:
    found = reasons(world, builder)
    assert len(found) == ENOUGH
    first = found["n0"]
    assert all(reason == first for reason in found.values())
    return first


def world_of(*pods: PodBuilder, max_pods: int = 10) -> PreemptionWorld:
    """Nodes that have all of these pods each."""
    world = PreemptionWorld(*(node(f"n{number}").cpu(4).memory("4Gi").pods(max_pods) for number in range(ENOUGH)))
    for number in range(ENOUGH):
        world.put(*(builder.uid(f"{builder.build().name}-{number}").node(f"n{number}") for builder in pods))
    return world


LOW = pod("low").requests(cpu=1).priority(1)
HIGH = pod("high").requests(cpu=4).priority(10)


def test_nodes_without_anyone_who_could_go() -> None:
    world = world_of(pod("same").requests(cpu=1).priority(10))
    assert same_everywhere(world, HIGH) == ("", ["No preemption victims found for incoming pod"])


def test_nodes_that_stay_too_small_are_rejected_for_all_reasons() -> None:
    world = world_of(LOW, pod("kept").requests(cpu=1, memory="3Gi").priority(10))
    greedy = pod("greedy").requests(cpu=4, memory="2Gi").priority(10)
    assert same_everywhere(world, greedy) == ("NodeResourcesFit", ["Insufficient cpu", "Insufficient memory"])


def test_a_filter_that_no_column_knows_may_reject_first() -> None:
    world = world_of(LOW, with_port(pod("web").priority(10), cpu=3))
    taken = "node(s) didn't have free ports for the requested pod ports"
    assert same_everywhere(world, with_port(HIGH, cpu=4)) == ("NodePorts", [taken])


def test_nominated_pods_may_add_to_the_reasons() -> None:
    world = world_of(LOW, pod("kept").requests(cpu=1).priority(10), max_pods=2)
    assert same_everywhere(world, HIGH) == ("NodeResourcesFit", ["Insufficient cpu"])
    for number in range(ENOUGH):
        world.put(pod(f"nominated-{number}").priority(10).nominated(f"n{number}"))
    assert same_everywhere(world, HIGH) == ("NodeResourcesFit", ["Insufficient cpu", "Too many pods"])


def test_nodes_that_may_do_are_tried_one_by_one() -> None:
    world = world_of(LOW)
    world.put(pod("kept").requests(cpu=4).priority(10).node("n3"))
    assert list(reasons(world, HIGH)) == ["n3"]
    assert list(world.victims(HIGH)) == [f"n{number}" for number in range(ENOUGH) if number != 3]
