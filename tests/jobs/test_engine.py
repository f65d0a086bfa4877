"""The engine of workload queueing where the conformance suite does not look."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.jobs.effects import StatusChanged
from pilotage.jobs.quota import Quota, QuotaNode
from pilotage.model.kueue import Workload
from pilotage.simulate.queueing_file import Named
from pilotage.simulate.queueing_objects import made
from tests.jobs.world import World

CPU = ("std", "cpu")


def tree(root: Quota, inner: Quota, leaf: Quota, other: Quota) -> tuple[QuotaNode, QuotaNode]:
    """root <- (inner <- leaf, other)"""
    quotas = zip("rilo", (root, inner, leaf, other), strict=True)
    nodes = [QuotaNode(name, {CPU: quota}, is_queue=name in "lo") for name, quota in quotas]
    nodes[1].attach(nodes[0])
    nodes[2].attach(nodes[1])
    nodes[3].attach(nodes[0])
    nodes[0].total_up()
    return nodes[2], nodes[3]


@pytest.mark.parametrize(
    ("inner", "leaf", "other", "available", "potential"),
    [
        (Quota(0), Quota(4), Quota(6), 11, 11),
        (Quota(0), Quota(4, borrowing_limit=2), Quota(6), 6, 6),
        (Quota(0), Quota(4), Quota(6, lending_limit=1), 6, 6),
        (Quota(3, borrowing_limit=0), Quota(4), Quota(6), 7, 7),
        (Quota(3, lending_limit=0), Quota(4, lending_limit=1), Quota(6), 14, 14),
    ],
)
def test_quota_flows_through_the_tree(inner: Quota, leaf: Quota, other: Quota, available: int, potential: int) -> None:
    node, _ = tree(Quota(1), inner, leaf, other)
    assert (node.available(CPU), node.potential(CPU)) == (available, potential)


def test_booking_passes_on_what_is_not_kept_and_back() -> None:
    node, other = tree(Quota(0), Quota(0), Quota(4, lending_limit=1), Quota(6))
    node.add({CPU: 5})
    assert (node.available(CPU), other.available(CPU)) == (5, 5)
    assert node.borrowing_level(CPU, 1) == (2, False) and other.borrowing_level(CPU, 1) == (0, True)
    node.remove({CPU: 5})
    assert (node.available(CPU), other.available(CPU)) == (10, 7)


def test_a_rejected_write_gives_the_reservation_back_for_a_while() -> None:
    """Given again at once it would be refused at once: hundreds of times a second while a permission is missing."""
    world = World()
    world.queue("main", std=1)
    world.engine.upsert(_workload("a"))
    world.engine.cycle()
    assert [one.reserving for one in world.engine.cluster_queues()] == [1]
    world.engine.write_rejected("ns/a", "gone", 8.0)
    world.engine.cycle()
    assert [(one.reserving, one.pending) for one in world.engine.cluster_queues()] == [(0, 1)]
    world.engine.check()
    world.stage.clock.step(9.0)
    world.engine.fire_timers()
    world.engine.cycle()
    assert [one.reserving for one in world.engine.cluster_queues()] == [1]


def test_an_old_echo_is_no_news() -> None:
    """The watch shows the workload as it was before the engine's write: the reservation stays."""
    world = World()
    world.queue("main", std=1)
    first = _workload("a")
    world.engine.upsert(first)
    world.engine.cycle()
    world.engine.upsert(msgspec.structs.replace(first, metadata=msgspec.structs.replace(first.metadata, generation=2)))
    found = world.engine.workload("ns/a")
    assert found is not None and any(one.type == "Admitted" and one.status == "True" for one in found.status.conditions)


def test_changes_of_one_workload_are_one_write() -> None:
    world = World()
    world.queue("main", std=1)
    world.engine.upsert(_workload("a"))
    world.engine.cycle()
    writes = [one for one in world.engine.take_effects() if isinstance(one, StatusChanged)]
    assert len(writes) == 1 and writes[0].workload.status.admission is not None


def test_a_namesake_with_another_uid_is_another_workload() -> None:
    world = World()
    world.queue("main", std=1)
    world.engine.upsert(_workload("a"))
    world.engine.cycle()
    world.engine.upsert(_workload("a", uid="second"))
    assert [(one.reserving, one.pending) for one in world.engine.cluster_queues()] == [(0, 1)]


def test_explain_names_what_is_lacking_and_who_holds_it() -> None:
    world = World()
    world.queue("main", std=4)
    world.submit("holder", "main", 3)
    world.submit("waiter", "main", 2)
    report = world.engine.explain("ns/waiter")
    assert report is not None
    assert (report.state, report.place, report.position) == ("pending", "inadmissible", 0)
    (shortage,) = report.shortages
    assert (shortage.need, shortage.have, shortage.most, shortage.holders) == (2000, 1000, 4000, (("ns/holder", 3000),))


def test_a_release_wakes_only_the_first_that_may_fit() -> None:
    world = World()
    world.queue("main", std=4)
    world.submit("holder", "main", 2)
    world.submit("rest", "main", 2)
    for number in range(5):
        world.submit(f"big-{number}", "main", 3 + number % 2)
    world.finish("rest")
    assert {report.place for name in range(5) if (report := world.engine.explain(f"ns/big-{name}"))} == {"inadmissible"}
    world.finish("holder")
    assert [world.state(f"big-{number}") for number in range(5)] == ["admitted", *["pending"] * 4]


def test_who_waits_for_its_victims_is_not_overtaken() -> None:
    """A preemptor of a BestEffortFIFO queue stays first, above priority, or its victims would die for another."""
    world = World()
    world.queue("main", std=4, preemption={"withinClusterQueue": "LowerPriority"})
    world.submit("low", "main", 4, eviction="manual")
    world.submit("vip", "main", 4, priority=1, eviction="manual")
    world.submit("late", "main", 4, priority=2)
    world.engine.pods_gone("ns/low")
    world.settle()
    assert world.stage.reserved == ["low", "vip"]
    assert world.state("vip") == "evicting", "the next one then preempts in turn"


def test_what_victims_still_hold_is_not_given_away() -> None:
    """In one cycle a preemptor chooses a large victim; what it will leave over must wait until it is gone."""
    world = World()
    world.queue("east", "ring", std=6, preemption={"withinClusterQueue": "LowerPriority"})
    world.queue("west", "ring", std=2)
    world.queue("north", "ring", std=2)
    world.submit("low", "east", 6, eviction="manual")
    for name, queue, cpu, priority in (("vip", "east", 5, 5), ("borrower", "west", 3, 0), ("owner", "north", 2, 0)):
        fields = {"name": name, "queue": f"lq-{queue}", "requests": {"cpu": cpu}, "priority": priority}
        world.stage.apply(Named("workload", name, "ns", fields))
    world.settle()
    assert [world.state(name) for name in ("low", "vip", "borrower", "owner")] == [
        "evicting",
        "pending",
        "pending",
        "admitted",
    ]
    world.engine.pods_gone("ns/low")
    world.settle()
    assert [world.state(name) for name in ("vip", "borrower")] == ["admitted", "admitted"]


def _workload(name: str, uid: str = "") -> Workload:
    fields = {"name": name, "queue": "lq-main", "requests": {"cpu": 1}, "createdEpoch": 0}
    found = made("workload", fields)
    assert isinstance(found, Workload)
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, uid=uid or name))


def test_who_joins_those_put_aside_is_told_what_they_wait_for() -> None:
    world = World()
    world.queue("main", std=4)
    world.submit("holder", "main", 3)
    for name in ("first", "second"):
        world.submit(name, "main", 2)
    assert world.why("second") == world.why("first")
    assert world.why("second")[0] == "WaitingForQuota"
    report = world.engine.explain("ns/second")
    assert report is not None and [one.need for one in report.shortages] == [2000]


def borrowers(**config: Any) -> World:
    """An older head of low and a younger one of high priority; both would borrow, and there is room for one."""
    world = World(**config)
    world.queue("lender", "ring", std=2)
    for name in ("east", "west"):
        world.queue(name, "ring", std=0)
    world.submit("rock", "lender", 2)
    world.submit("older", "east", 2)
    world.stage.advance(1)
    world.submit("younger", "west", 2, priority=10)
    world.finish("rock")
    return world


def test_heads_are_sorted_by_priority_unless_the_gate_is_off() -> None:
    assert borrowers().state("younger") == "admitted"
    assert borrowers(featureGates={"PrioritySortingWithinCohort": False}).state("older") == "admitted"


def test_with_the_gate_off_a_borrower_that_made_way_is_behind_its_preemptor() -> None:
    """Else it would be older and take its place back, again and again."""
    world = World(featureGates={"PrioritySortingWithinCohort": False})
    world.queue("lender", "ring", std=2)
    world.queue("east", "ring", std=0)
    policy = {"reclaimWithinCohort": "LowerPriority", "borrowWithinCohort": {"policy": "LowerPriority"}}
    world.queue("west", "ring", std=0, preemption=policy)
    world.submit("older", "east", 2)
    world.stage.advance(1)
    world.submit("younger", "west", 2, priority=10)
    assert [world.state(name) for name in ("older", "younger")] == ["pending", "admitted"]


def test_explain_names_the_head_that_a_strict_queue_waits_for() -> None:
    world = World()
    world.queue("main", std=4, strategy="StrictFIFO")
    world.submit("holder", "main", 3)
    world.submit("first", "main", 2)
    world.submit("second", "main", 1)
    reports = [world.engine.explain(f"ns/{name}") for name in ("holder", "first", "second")]
    assert [one and one.behind for one in reports] == ["", "", "ns/first"]
    world.change("clusterQueue", "main", strategy="BestEffortFIFO")
    assert world.state("second") == "admitted"
