"""The picture of the queue with pod groups: a group is one row with its members."""

from __future__ import annotations

import pytest

from pilotage.cli.queue import render
from pilotage.cycle.report import SchedulerReport, scheduler_report
from pilotage.queue.report import QueuedPodReport, Selection
from tests.cycle.group_stage import GroupStage, group_stage, members

NODE = {"node": {"name": "n1", "cpu": "2"}}


def told(stage: GroupStage, **selected: bool) -> SchedulerReport:
    return scheduler_report(stage.scheduler, Selection(**selected))  # type: ignore[arg-type]


def names(row: QueuedPodReport) -> list[str]:
    return [member.name for member in row.members]


async def test_a_gated_gang_says_how_many_it_waits_for() -> None:
    async with group_stage() as stage:
        await stage.put(NODE, {"podGroup": {"name": "g", "min": 4, "priority": 7}}, *members("g", 3, priority=7))
        (row,) = told(stage).gated
        assert (row.kind, row.name, row.count, row.exist, row.min_count) == ("PodGroup", "g", 3, 3, 4)
        assert (row.message, row.gated_by, row.priority) == ("waiting for pods: 3 of 4", "GangScheduling", 7)
        assert names(row) == ["g-0", "g-1", "g-2"]


async def test_members_that_run_exist_and_do_not_wait() -> None:
    async with group_stage() as stage:
        running = {"pod": {"name": "r", "group": "g", "cpu": "1", "node": "n1"}}
        await stage.put(NODE, {"podGroup": {"name": "g", "min": 3}}, running, *members("g", 1))
        (row,) = told(stage).gated
        assert (row.count, row.exist, row.message) == (1, 2, "waiting for pods: 2 of 3")


async def test_a_group_in_backoff_has_its_attempts_and_why_its_members_had_no_place() -> None:
    async with group_stage() as stage:
        await stage.put(NODE, {"podGroup": {"name": "g", "min": 3}}, *members("g", 3))
        report = told(stage)
        (row,) = report.backoff
        assert (row.attempts, row.count, report.counts["backoff"]) == (1, 3, 3)
        assert row.backoff_seconds > 0 and row.rejectors == ("NodeResourcesFit",)
        assert "Insufficient cpu" in row.members[-1].message or "minCount" in row.members[-1].message


async def test_incomplete_members_are_shown_with_the_group_that_is_missing() -> None:
    async with group_stage() as stage:
        await stage.put(NODE, *members("gone", 2), *members("lost", 1))
        report = told(stage)
        assert [(row.name, row.count) for row in report.incomplete] == [("gone", 2), ("lost", 1)]
        assert report.incomplete[0].message == 'waiting for pod group "gone": there is none of that name'
        assert report.counts["incomplete"] == 3


async def test_a_row_for_people() -> None:
    async with group_stage() as stage:
        await stage.put(NODE, {"podGroup": {"name": "g", "min": 4}}, *members("g", 3), *members("lost", 1))
        lines = render(told(stage, is_grouped=True)).splitlines()
        assert lines[0] == "0 active, 0 backoff, 0 unschedulable, 3 gated, 0 in flight, 1 incomplete"
        gated = next(line for line in lines if line.startswith("gated")).split("  ")
        assert [cell.strip() for cell in gated if cell.strip()][1:3] == ["podgroup/default/g", "3 (min 4)"]
        assert "waiting for pods: 3 of 4" in gated[-1]
        incomplete = next(line for line in lines if line.startswith("incomplete"))
        assert "its PodGroup" in incomplete and "there is none of that name" in incomplete


@pytest.mark.parametrize(("namespace", "shown"), [("default", 1), ("other", 0)])
async def test_only_groups_of_a_namespace(namespace: str, shown: int) -> None:
    async with group_stage() as stage:
        await stage.put(NODE, {"podGroup": {"name": "g", "min": 2}}, *members("g", 1))
        report = scheduler_report(stage.scheduler, Selection(namespace=namespace))
        assert len(report.gated) == shown
