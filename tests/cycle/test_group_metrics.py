"""What is counted and measured of pod groups, under kube-scheduler's names."""

from __future__ import annotations

from typing import Any

from pilotage.observe.instruments import Histogram
from pilotage.observe.metrics import Metrics
from pilotage.simulate.shorthands import NAMESPACE
from tests.cycle.group_stage import GroupStage, group_stage, members

PROFILE = "default-scheduler"


def node(name: str, cpu: int, rack: str = "") -> dict[str, Any]:
    return {"node": {"name": name, "cpu": str(cpu), "labels": {"rack": rack} if rack else {}}}


def group(name: str, minimum: int, **fields: Any) -> dict[str, Any]:
    return {"podGroup": {"name": name, "min": minimum, **fields}}


def metrics_of(stage: GroupStage) -> Metrics:
    return stage.scheduler.metrics


async def test_a_cycle_of_a_group_is_one_attempt_and_its_members_are_pods() -> None:
    async with group_stage() as stage:
        await stage.put(node("n1", 3), group("g", 3), *members("g", 3), group("h", 2), *members("h", 2))
        found = metrics_of(stage)
        attempts = found.podgroup_schedule_attempts_total.values()
        assert attempts == {("scheduled", PROFILE): 1, ("unschedulable", PROFILE): 1}
        assert found.podgroup_scheduling_attempt_duration_seconds.count("scheduled", PROFILE) == 1
        assert found.podgroup_scheduling_algorithm_duration_seconds.count() == 2
        assert found.schedule_attempts_total.value("scheduled", PROFILE) == 3
        assert found.schedule_attempts_total.value("unschedulable", PROFILE) == 2


async def test_members_that_disagree_are_an_error() -> None:
    async with group_stage() as stage:
        await stage.put(node("n1", 3), group("g", 2), *members("g", 2, priority=7))
        assert metrics_of(stage).podgroup_schedule_attempts_total.values() == {("error", PROFILE): 1}


async def test_a_group_is_one_entity_and_as_many_pods_as_it_has_members() -> None:
    async with group_stage() as stage:
        await stage.put(node("n1", 1), group("g", 4), *members("g", 3), *members("nobody", 2))
        found = metrics_of(stage)
        assert found.pending_pods.value("gated") == 3
        assert found.queued_entities.value("gated", "podgroup") == 1
        assert found.queued_entities.value("gated", "pod") == 0
        assert found.pending_pods.value("incomplete") == 2
        await stage.put(*members("g", 1, first=3))
        pods, entities = found.queue_incoming_pods_total, found.queue_incoming_entities_total
        assert pods.value("active", "UnscheduledPodAdd") == 4
        assert entities.value("active", "UnscheduledPodAdd", "podgroup") == 1
        assert entities.value("active", "UnscheduledPodAdd", "pod") == 0
        assert pods.value("backoff", "ScheduleAttemptFailure") == 4
        assert entities.value("backoff", "ScheduleAttemptFailure", "podgroup") == 1


async def test_placements_are_counted_by_whether_the_group_fits() -> None:
    async with group_stage() as stage:
        racks = [node("n1", 1, "r1"), node("n2", 3, "r2"), node("n3", 3, "r3")]
        await stage.put(*racks, group("g", 2, topology="rack"), *members("g", 2))
        found = metrics_of(stage)
        assert found.generated_placements_total.values() == {(PROFILE,): 3}
        assert found.placement_evaluations_total.values() == {("feasible", PROFILE): 2, ("infeasible", PROFILE): 1}
        assert found.placement_evaluation_duration_seconds.count("feasible", PROFILE) == 2
        points = found.framework_extension_point_duration_seconds
        assert points.count("PlacementGenerate", "Success", PROFILE) == 1
        assert points.count("PlacementScore", "Success", PROFILE) == 1


async def test_preemption_for_a_group() -> None:
    async with group_stage() as stage:
        lower = [{"pod": {"name": f"low-{number}", "cpu": "1", "priority": 1}} for number in range(2)]
        budget = {"pdb": {"name": "b", "match": {"app": "low"}, "allowed": 0}}
        for pod in lower:
            pod["pod"]["labels"] = {"app": "low"}
        await stage.put(node("n1", 2), budget, *lower)
        await stage.put(group("g", 2, priority=9), *members("g", 2, priority=9))
        found = metrics_of(stage)
        assert found.podgroup_schedule_attempts_total.value("waiting_on_preemption", PROFILE) == 1
        assert found.workload_preemption_attempts_total.values() == {("Success",): 1}
        assert found.workload_preemption_victims.child().sum == 2
        assert found.preemption_pdb_violations_total.values() == {("podgroup",): 2}
        assert found.preemption_evaluation_duration_seconds.count("podgroup", "Success") == 1
        await stage.clock.advance(5)
        assert found.preemption_execution_duration_seconds.count("podgroup", "success") == 1
        assert found.preemption_workload_disruptions.lines() == {}


async def test_a_pod_that_disrupts_a_group() -> None:
    async with group_stage() as stage:
        await stage.put(node("n1", 2), group("g", 2, mode="all"), *members("g", 2))
        await stage.put({"pod": {"name": "high", "cpu": "1", "priority": 9}})
        found = metrics_of(stage)
        assert found.preemption_workload_disruptions.child("pod").sum == 1, "the group goes as a whole"
        assert found.preemption_evaluation_duration_seconds.count("pod", "Success") == 1


async def test_none_of_them_stays_silent() -> None:
    """All that happens to groups, in one run; what is declared for them has a value then."""
    async with group_stage() as stage:
        await stage.put(node("n1", 2, "r1"), node("n2", 3, "r2"))
        await stage.put(group("low", 2, mode="all", topology="rack"), *members("low", 2))
        await stage.put({"pdb": {"name": "b", "match": {"app": "x"}, "allowed": 0}})
        await stage.put(group("x", 3, priority=1), *members("x", 3, priority=1, labels={"app": "x"}))
        await stage.put(group("high", 4, priority=9), *members("high", 4, priority=9))
        await stage.clock.advance(30)
        assert stage.api.last_known(("Pod", NAMESPACE, "high-0"))["spec"].get("nodeName")
        silent = []
        for metric, instrument in metrics_of(stage).exposed():
            if metric.gate in ("GenericWorkload", "TopologyAwareWorkloadScheduling"):
                lines = instrument.lines() if isinstance(instrument, Histogram) else instrument.values()
                silent += [] if lines else [metric.name]
        assert silent == []


async def test_without_the_gate_no_one_sees_them() -> None:
    async with group_stage(gates={"GenericWorkload": False, "TopologyAwareWorkloadScheduling": False}) as stage:
        names = {metric.name for metric, _ in metrics_of(stage).exposed()}
        assert not any("podgroup" in name or "placement" in name for name in names)
