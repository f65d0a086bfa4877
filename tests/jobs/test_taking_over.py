"""A new engine goes on where the last one was, with what happened while nobody looked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from pilotage.jobs.effects import Deactivate, Event
from pilotage.jobs.engine import JobQueueing
from pilotage.model.kueue import AdmissionCheckState, ClusterQueue, LocalQueue, RequeueState, Workload
from pilotage.rng import seeded
from tests.jobs.world import World


def admitted(**queue: Any) -> World:
    """One running workload."""
    world = World()
    world.add("admissionCheck", "gate")
    world.queue("main", **queue)
    world.submit("a", "main", 1, eviction="manual")
    if queue.get("checks"):
        world.stage.write_check({"workload": "a", "name": "gate", "state": "Ready"})
        world.settle()
    assert world.state("a") == "admitted"
    return world


def successor(world: World, objects: Iterable[Any], workload: Workload) -> JobQueueing:
    stage = world.stage
    engine = JobQueueing(stage.clock, seeded(0), stage.configuration)
    engine.set_namespace("ns", {})
    for obj in objects:
        engine.upsert(obj)
    engine.upsert(workload)
    engine.check()
    return engine


def condition(engine: JobQueueing, kind: str) -> str:
    workload = engine.workload("ns/a")
    assert workload is not None
    return next((f"{one.status}/{one.reason}" for one in workload.status.conditions if one.type == kind), "")


def stopped(world: World, kind: type[ClusterQueue] | type[LocalQueue], policy: str) -> list[Any]:
    replace = msgspec.structs.replace
    return [
        replace(obj, spec=replace(obj.spec, stop_policy=policy)) if isinstance(obj, kind) else obj
        for obj in world.stage.objects()
    ]


def test_a_queue_that_was_drained_meanwhile_evicts() -> None:
    world = admitted()
    for kind, reason in ((ClusterQueue, "ClusterQueueStopped"), (LocalQueue, "LocalQueueStopped")):
        engine = successor(world, stopped(world, kind, "HoldAndDrain"), world.workload("a"))
        assert condition(engine, "Evicted") == f"True/{reason}"
        held = successor(world, stopped(world, kind, "Hold"), world.workload("a"))
        assert condition(held, "Evicted") == "" and condition(held, "Admitted") == "True/Admitted"


def test_a_check_that_wants_a_retry_since_evicts() -> None:
    world = admitted(checks=[{"name": "gate"}])
    workload = world.workload("a")
    retry = (AdmissionCheckState(name="gate", state="Retry"),)
    changed = msgspec.structs.replace(workload, status=msgspec.structs.replace(workload.status, admission_checks=retry))
    engine = successor(world, world.stage.objects(), changed)
    assert condition(engine, "Evicted") == "True/AdmissionCheck"


def test_a_queue_that_comes_late_finds_its_workloads_as_one_that_was_there() -> None:
    """The ClusterQueue is read after the workload that holds its quota."""
    world = admitted()
    objects = stopped(world, ClusterQueue, "HoldAndDrain")
    engine = successor(world, (), world.workload("a"))
    for obj in objects:
        engine.upsert(obj)
    engine.check()
    assert condition(engine, "Evicted") == "True/ClusterQueueStopped"


def test_a_requested_deactivation_is_asked_for_again() -> None:
    world = admitted()
    workload = world.workload("a")
    target = msgspec.structs.replace(
        workload.status.conditions[0], type="DeactivationTarget", status="True", reason="RequeuingLimitExceeded"
    )
    status = msgspec.structs.replace(workload.status, conditions=(*workload.status.conditions, target))
    engine = successor(world, world.stage.objects(), msgspec.structs.replace(workload, status=status))
    assert [one for one in engine.take_effects() if isinstance(one, Deactivate)] == [Deactivate("ns/a", "a")]


def test_a_holder_that_was_deactivated_meanwhile_is_reported_as_evicted() -> None:
    world = admitted()
    workload = world.workload("a")
    idle = msgspec.structs.replace(workload, spec=msgspec.structs.replace(workload.spec, active=False))
    engine = successor(world, world.stage.objects(), idle)
    assert condition(engine, "Evicted") == "True/Deactivated"
    reasons = [one.reason for one in engine.take_effects() if isinstance(one, Event)]
    assert "EvictedDueToDeactivated" in reasons


@pytest.mark.parametrize(
    ("written", "taken"), [("2026-01-01T01:01:05Z", "2026-01-01T00:01:07Z"), ("2026-01-01T00:01:05Z",) * 2]
)
def test_a_backoff_that_a_clock_ahead_of_ours_wrote_lasts_no_longer_than_a_backoff(written: str, taken: str) -> None:
    world = World(waitForPodsReady={"timeout": "5s"})
    world.queue("main")
    world.submit("a", "main")
    world.stage.advance(6)
    world.settle()
    workload, replace = world.workload("a"), msgspec.structs.replace
    status = replace(workload.status, requeue_state=RequeueState(1, written))
    engine = successor(world, world.stage.objects(), replace(workload, status=status))
    found = engine.workload("ns/a")
    assert found is not None and found.status.requeue_state == RequeueState(1, taken)
    world.stage.advance(61)
    engine.fire_timers()
    engine.cycle()
    assert condition(engine, "Admitted") == "True/Admitted"


def test_an_admission_of_a_clock_ahead_of_ours_has_not_lasted_for_less_than_no_time() -> None:
    """The API server would reject the status, and with it the release of the quota."""
    world = admitted()
    workload, replace = world.workload("a"), msgspec.structs.replace
    conditions = tuple(replace(one, last_transition_time="2026-01-01T01:00:00Z") for one in workload.status.conditions)
    ahead = replace(workload, status=replace(workload.status, conditions=conditions))
    engine = successor(world, stopped(world, ClusterQueue, "HoldAndDrain"), ahead)
    engine.pods_gone("ns/a")
    found = engine.workload("ns/a")
    assert found is not None and condition(engine, "QuotaReserved").startswith("False/")
    assert not found.status.accumulated_past_execution_time_seconds


def test_a_preemptor_keeps_its_place_when_its_queue_is_changed() -> None:
    world = World()
    world.queue("main", preemption={"withinClusterQueue": "LowerPriority"})
    world.submit("low", "main", 4, eviction="manual")
    world.submit("vip", "main", 4, priority=1)
    world.submit("top", "main", 4, priority=9)
    world.change("clusterQueue", "main", fairWeight=2)
    assert [one.key for one in world.engine.pending("main")] == ["ns/vip", "ns/top"]
