"""What is said of groups that wait: in their condition, in the conditions of their pods, and in Events."""

from __future__ import annotations

from pilotage.simulate.shorthands import NAMESPACE
from tests.cycle.group_stage import group_stage, members

GROUP = {"podGroup": {"name": "g", "min": 4}}
NODE = {"node": {"name": "n1", "cpu": "8"}}
LONG_ENOUGH = 7.0
"""Seconds after which what waits is told."""


async def test_a_gang_with_too_few_pods_says_how_many_are_missing() -> None:
    async with group_stage() as stage:
        await stage.put(NODE, GROUP, *members("g", 3))
        assert stage.condition("g") is None
        await stage.clock.advance(LONG_ENOUGH)
        assert stage.condition("g") == {
            "status": "False",
            "reason": "Unschedulable",
            "message": "waiting for pods: 3 of 4",
        }
        assert stage.events_about("PodGroup") == [("g", "FailedScheduling", "waiting for pods: 3 of 4")]
        assert {stage.pod_condition(f"g-{number}")["reason"] for number in range(3)} == {"SchedulingGated"}


async def test_it_is_written_again_only_when_it_changes() -> None:
    async with group_stage() as stage:
        await stage.put(NODE, GROUP, *members("g", 2))
        await stage.clock.advance(LONG_ENOUGH)
        written = stage.api.last_known(("PodGroup", NAMESPACE, "g"))["metadata"]["resourceVersion"]
        await stage.clock.advance(60)
        assert stage.api.last_known(("PodGroup", NAMESPACE, "g"))["metadata"]["resourceVersion"] == written
        await stage.put(*members("g", 1, first=2))
        await stage.clock.advance(LONG_ENOUGH)
        condition = stage.condition("g")
        assert condition is not None and condition["message"] == "waiting for pods: 3 of 4"
        stage.api.remove(("Pod", NAMESPACE, "g-0"))
        await stage.clock.advance(LONG_ENOUGH)
        condition = stage.condition("g")
        assert condition is not None and condition["message"] == "waiting for pods: 2 of 4"
        assert [note for _, _, note in stage.events_about("PodGroup")] == [
            f"waiting for pods: {count} of 4" for count in (2, 3, 2)
        ]


async def test_a_pod_that_joins_a_group_with_a_condition_has_one_too() -> None:
    async with group_stage() as stage:
        await stage.put(NODE, GROUP, *members("g", 2))
        await stage.clock.advance(2 * LONG_ENOUGH)
        stage.api.remove(("Pod", NAMESPACE, "g-1"))
        await stage.put(*members("g", 2, first=1))
        await stage.clock.advance(2 * LONG_ENOUGH)
        assert [stage.pod_condition(f"g-{number}")["reason"] for number in range(3)] == ["SchedulingGated"] * 3


async def test_a_raised_minimum_is_reported() -> None:
    async with group_stage() as stage:
        await stage.put(NODE, GROUP, *members("g", 3))
        await stage.clock.advance(LONG_ENOUGH)
        stage.api.merge(("PodGroup", NAMESPACE, "g"), {"spec": {"schedulingPolicy": {"gang": {"minCount": 6}}}})
        await stage.clock.advance(LONG_ENOUGH)
        condition = stage.condition("g")
        assert condition is not None and condition["message"] == "waiting for pods: 3 of 6"


async def test_the_gate_of_one_member_holds_back_all_and_is_named() -> None:
    async with group_stage() as stage:
        closed = {"pod": {"name": "closed", "group": "g", "gates": ["example.com/later"]}}
        await stage.put(NODE, {"podGroup": {"name": "g", "min": 2}}, *members("g", 1), closed)
        await stage.clock.advance(LONG_ENOUGH)
        condition = stage.condition("g")
        assert condition is not None
        assert condition["message"] == "closed: waiting for scheduling gates: [example.com/later]"
        assert stage.pod_condition("g-0")["message"] == (
            "waiting with its pod group: waiting for scheduling gates: [example.com/later]"
        )


async def test_an_instant_behind_the_gate_is_not_told() -> None:
    async with group_stage() as stage:
        await stage.put(NODE, GROUP, *members("g", 3))
        await stage.clock.advance(1.0)
        await stage.put(*members("g", 1, first=3))
        await stage.clock.advance(LONG_ENOUGH)
        assert stage.condition("g") == {"status": "True", "reason": "Scheduled", "message": ""}
        assert [reason for _, reason, _ in stage.events_about("PodGroup")] == ["Scheduled"]


async def test_a_group_that_has_started_keeps_its_condition_and_has_an_event() -> None:
    async with group_stage() as stage:
        await stage.put(NODE, {"podGroup": {"name": "g", "min": 2}}, *members("g", 2))
        assert stage.condition("g") == {"status": "True", "reason": "Scheduled", "message": ""}
        for number in range(2):
            stage.api.remove(("Pod", NAMESPACE, f"g-{number}"))
        await stage.put(*members("g", 1, first=2))
        await stage.clock.advance(LONG_ENOUGH)
        assert stage.condition("g") == {"status": "True", "reason": "Scheduled", "message": ""}
        assert stage.events_about("PodGroup")[-1] == ("g", "WaitingForPods", "waiting for pods: 1 of 2")


async def test_pods_whose_group_does_not_exist_are_reported() -> None:
    async with group_stage() as stage:
        await stage.put(NODE, *members("g", 1))
        await stage.clock.advance(LONG_ENOUGH)
        text = 'waiting for pod group "g": there is none of that name'
        assert stage.pod_condition("g-0") == {"reason": "SchedulingGated", "message": text}
        assert stage.events_about("Pod") == [("g-0", "FailedScheduling", text)]


async def test_it_can_be_switched_off() -> None:
    async with group_stage(reports_gated_pods=False) as stage:
        await stage.put(NODE, GROUP, *members("g", 3))
        await stage.clock.advance(60)
        assert stage.condition("g") is None and stage.pod_condition("g-0")["reason"] == ""
        assert stage.events_about("PodGroup") == []
