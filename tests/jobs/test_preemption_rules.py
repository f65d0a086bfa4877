"""Who may be preempted, in which order, and which attempts are made."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.jobs.preemption import (
    CandidateKind,
    PreemptionCandidate,
    PreemptionRequest,
    _attempts,
    _kind,
    candidate_order,
)
from tests.jobs.world import World

CPU = ("std", "cpu")
LOWER = {"policy": "LowerPriority"}


def world_with(borrow: dict[str, Any] | None, *, used: int = 0) -> World:
    """`main` (4 of its own) wants; `other` borrows."""
    world = World()
    policy = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
    world.queue("main", "ring", std=4, preemption=policy | ({"borrowWithinCohort": borrow} if borrow else {}))
    world.queue("other", "ring", std=4)
    if used:
        world.submit("used", "main", used, priority=7)
    for number, priority in enumerate((0, 3, 5)):
        world.submit(f"w{number}", "other", 1, priority=priority)
        world.stage.advance(1)
    world.submit("me", "main", 20, priority=4)
    return world


def want(world: World, *, pairs: frozenset[tuple[str, str]] = frozenset([CPU])) -> PreemptionRequest:
    engine = world.engine
    return PreemptionRequest(
        engine._workloads.records["ns/me"], engine._workloads.tree.queues["main"], pairs, {CPU: 20_000}
    )


def candidate(world: World, name: str, kind: CandidateKind) -> PreemptionCandidate:
    return PreemptionCandidate(
        world.engine._workloads.records[f"ns/{name}"], world.engine._workloads.tree.queues["other"], kind
    )


@pytest.mark.parametrize(
    ("borrow", "used", "kinds", "attempts"),
    [
        (LOWER, 0, [CandidateKind.OWN], (True,)),
        (None, 0, [CandidateKind.OWN], (True,)),
        (None, 4, [CandidateKind.ENTITLED, CandidateKind.OWN], (True,)),
        (None, 4, [CandidateKind.NOT_BORROWING], (True,)),
        (None, 0, [CandidateKind.NOT_BORROWING, CandidateKind.OWN], (False, True)),
        (None, 0, [CandidateKind.ENTITLED, CandidateKind.NOT_BORROWING], (True, False)),
        (LOWER, 0, [CandidateKind.BORROWING], (True, False)),
        (LOWER, 4, [CandidateKind.NOT_BORROWING], (True, False)),
        ({"policy": "Never"}, 0, [CandidateKind.NOT_BORROWING], (False, True)),
    ],
)
def test_attempts(borrow: Any, used: int, kinds: list[CandidateKind], attempts: tuple[bool, ...]) -> None:
    """True: the preemptor may borrow; False: it must end inside its nominal quota."""
    world = world_with(borrow, used=used)
    assert _attempts(want(world), [candidate(world, "w0", kind) for kind in kinds]) == attempts


@pytest.mark.parametrize(
    ("borrow", "name", "entitled", "kind"),
    [
        (LOWER, "w2", True, CandidateKind.ENTITLED),
        (None, "w0", False, CandidateKind.NOT_BORROWING),
        ({"policy": "Never"}, "w0", False, CandidateKind.NOT_BORROWING),
        (LOWER, "w1", False, CandidateKind.BORROWING),
        (LOWER, "w2", False, CandidateKind.NOT_BORROWING),
        ({**LOWER, "maxPriorityThreshold": 3}, "w1", False, CandidateKind.BORROWING),
        ({**LOWER, "maxPriorityThreshold": 2}, "w1", False, CandidateKind.NOT_BORROWING),
    ],
)
def test_class_of_a_foreign_candidate(borrow: Any, name: str, entitled: bool, kind: CandidateKind) -> None:
    world = world_with(borrow)
    assert _kind(want(world), world.engine._workloads.records[f"ns/{name}"], entitled) is kind


def test_order_of_candidates() -> None:
    """Leaving already; entitled, other foreign, own; lower priority; later reservation; UID."""
    world = World()
    world.queue("main", std=40)
    for name, priority in (("a", 0), ("b", 0), ("c", 1), ("d", 0), ("e", 9)):
        world.submit(name, "main", 1, priority=priority, eviction="manual")
        world.stage.advance(1 if name != "a" else 0)
    world.engine._workloads.evict(world.engine._workloads.records["ns/e"], "Preempted", "")
    records, queue = world.engine._workloads.records, world.engine._workloads.tree.queues["main"]
    kinds = {
        "a": CandidateKind.OWN,
        "b": CandidateKind.OWN,
        "c": CandidateKind.ENTITLED,
        "d": CandidateKind.NOT_BORROWING,
        "e": CandidateKind.OWN,
    }
    found = [PreemptionCandidate(records[f"ns/{name}"], queue, kind) for name, kind in kinds.items()]
    found += [PreemptionCandidate(records["ns/c"], queue, CandidateKind.BORROWING)]
    ordered = [(one.record.key.removeprefix("ns/"), one.kind) for one in sorted(found, key=candidate_order)]
    assert ordered == [
        ("e", CandidateKind.OWN),
        ("c", CandidateKind.ENTITLED),
        ("d", CandidateKind.NOT_BORROWING),
        ("c", CandidateKind.BORROWING),
        ("a", CandidateKind.OWN),
        ("b", CandidateKind.OWN),
    ]


def test_a_later_reservation_goes_first() -> None:
    world = World()
    world.queue("main", std=4, preemption={"withinClusterQueue": "LowerPriority"})
    for name in ("first", "second"):
        world.submit(name, "main", 2)
        world.stage.advance(5)
    world.submit("vip", "main", 2, priority=1)
    assert [world.state(name) for name in ("first", "second", "vip")] == ["admitted", "pending", "admitted"]


def reclaimed(reclaim: str, borrow: dict[str, Any] | None, cpu: int, priority: int) -> str:
    """The reason of the victim's preemption, "" if it was spared. `lender` has 4, `mid` 2, the victim borrows 6."""
    world = World()
    policy: dict[str, Any] = {"reclaimWithinCohort": reclaim}
    if borrow is not None:
        policy["borrowWithinCohort"] = borrow
    world.queue("lender", "ring", std=4, preemption=policy)
    world.queue("mid", "ring", std=2)
    world.queue("guest", "ring", std=0)
    world.submit("victim", "guest", 6, priority=2)
    world.submit("me", "lender", cpu, priority=priority)
    found = [one for one in world.workload("victim").status.conditions if one.type == "Preempted"]
    return found[0].reason if found else ""


@pytest.mark.parametrize(
    ("reclaim", "borrow", "cpu", "priority", "reason"),
    [
        ("Never", None, 4, 9, ""),
        ("LowerPriority", None, 4, 2, ""),
        ("LowerPriority", None, 4, 3, "InCohortReclamation"),
        ("Any", None, 4, 0, "InCohortReclamation"),
        ("Any", None, 5, 9, ""),
        ("LowerPriority", LOWER, 5, 3, "InCohortReclaimWhileBorrowing"),
        ("LowerPriority", {**LOWER, "maxPriorityThreshold": 1}, 5, 3, ""),
        ("Any", LOWER, 5, 2, ""),
    ],
)
def test_reasons(reclaim: str, borrow: Any, cpu: int, priority: int, reason: str) -> None:
    assert reclaimed(reclaim, borrow, cpu, priority) == reason


def test_one_that_lacks_two_resources_is_tried_again_when_borrowers_of_either_may_be_preempted() -> None:
    """One queue is above its cpu only, the other above its memory only: together their workloads make room."""
    world = World()
    world.add("flavor", "std")
    lower = {"reclaimWithinCohort": "LowerPriority", "borrowWithinCohort": {"policy": "LowerPriority"}}
    for name, cpu, memory in (("pool", 3, 3), ("cpus", 0, 1), ("rams", 1, 0), ("main", 0, 0)):
        flavor = {"name": "std", "quotas": {"cpu": cpu, "memory": memory}}
        group = {"resources": ["cpu", "memory"], "flavors": [flavor]}
        policy = lower if name == "main" else {}
        world.add("clusterQueue", name, cohort="ring", groups=[group], preemption=policy)
        world.add("localQueue", f"lq-{name}", clusterQueue=name)
    world.add("workload", "c", queue="lq-cpus", requests={"cpu": 3, "memory": 1})
    world.add("workload", "r", queue="lq-rams", requests={"cpu": 1, "memory": 3}, priority=9)
    world.add("workload", "me", queue="lq-main", requests={"cpu": 4, "memory": 4}, priority=5)
    assert world.state("me") == "pending"
    world.change("workload", "r", priority=1)
    assert [world.state(name) for name in ("c", "r", "me")] == ["pending", "pending", "admitted"]
