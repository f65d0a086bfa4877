"""CronJobs: schedules, and the Jobs that are made at their times."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.clock import parse_rfc3339, rfc3339
from pilotage.sandbox.life.controllers.cron_job import latest_due
from pilotage.sandbox.rules.cron_schedule import ScheduleError, parse_schedule
from tests.sandbox.living_cluster import LivingCluster, job

FRIDAY = "2024-03-01T10:30:00Z"


def cron_job(name: str, schedule: str = "*/1 * * * *", run_for: str = "10s", **spec: Any) -> dict[str, Any]:
    work = job(name, annotations={"run-for": run_for})["spec"]
    spec = {"schedule": schedule, "jobTemplate": {"spec": work}, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*/15 * * * *", "2024-03-01T10:45:00Z"),
        ("*/1 * * * ?", "2024-03-01T10:31:00Z"),
        ("30 10 * * *", "2024-03-02T10:30:00Z"),
        ("0 9-17/4 * * *", "2024-03-01T13:00:00Z"),
        ("0 0 29 feb *", "2028-02-29T00:00:00Z"),
        ("0 0 13 * fri", "2024-03-08T00:00:00Z"),
        ("0 0 * * MON-WED", "2024-03-04T00:00:00Z"),
        ("5/20 * * * *", "2024-03-01T10:45:00Z"),
        ("1,2,59 * * * *", "2024-03-01T10:59:00Z"),
        ("@weekly", "2024-03-03T00:00:00Z"),
        ("@yearly", "2025-01-01T00:00:00Z"),
        ("@every 90s", "2024-03-01T10:31:30Z"),
        ("TZ=Asia/Kolkata 0 17 * * *", "2024-03-01T11:30:00Z"),
    ],
)
def test_next_time_of_a_schedule(text: str, expected: str) -> None:
    found = parse_schedule(text).next_after(parse_rfc3339(FRIDAY))
    assert found is not None and rfc3339(found) == expected


def test_schedule_that_names_no_day_never_comes() -> None:
    assert parse_schedule("0 0 30 2 *").next_after(parse_rfc3339(FRIDAY)) is None


def test_clock_change_neither_skips_nor_repeats_a_day() -> None:
    schedule = parse_schedule("30 3 * * *", "Europe/Berlin")
    times = [parse_rfc3339("2024-03-30T00:00:00Z")]
    for _ in range(3):
        found = schedule.next_after(times[-1])
        assert found is not None
        times.append(found)
    assert [rfc3339(time) for time in times[1:]] == [
        "2024-03-30T02:30:00Z",
        "2024-03-31T01:30:00Z",
        "2024-04-01T01:30:00Z",
    ]


@pytest.mark.parametrize(
    "text", ["", "* * * *", "60 * * * *", "* * 0 * *", "*/0 * * * *", "a * * * *", "5-1 * * * *", "@often", "@every x"]
)
def test_wrong_schedules_are_rejected(text: str) -> None:
    with pytest.raises(ScheduleError):
        parse_schedule(text)


def test_of_many_missed_times_only_the_last_counts() -> None:
    now = parse_rfc3339(FRIDAY) + 30
    schedule = parse_schedule("* * * * *")
    assert latest_due(schedule, now - 400 * 86_400, now) == parse_rfc3339(FRIDAY)


async def test_jobs_are_made_at_their_times_and_old_ones_forgotten() -> None:
    cluster = LivingCluster()
    cluster.create(cron_job("tick", successfulJobsHistoryLimit=2))
    await cluster.run(330)
    assert len(cluster.names("Job")) == 2
    status = cluster.status("CronJob", "tick")
    assert "active" not in status and status["lastScheduleTime"] < status["lastSuccessfulTime"]
    made = cluster.all("Job")[0]["metadata"]
    assert made["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert made["ownerReferences"][0]["controller"] is True


@pytest.mark.parametrize(
    ("policy", "jobs", "changes"), [("Allow", 3, True), ("Forbid", 1, False), ("Replace", 1, True)]
)
async def test_concurrency_policy(policy: str, jobs: int, changes: bool) -> None:
    cluster = LivingCluster()
    cluster.create(cron_job("slow", run_for="1h", concurrencyPolicy=policy))
    await cluster.run(70)
    first = cluster.names("Job")
    await cluster.run(120)
    assert len(cluster.names("Job")) == len(cluster.status("CronJob", "slow")["active"]) == jobs
    assert (cluster.names("Job") != first) == changes


async def test_suspended_cron_job_makes_none_until_it_goes_on() -> None:
    cluster = LivingCluster()
    cluster.create(cron_job("off", suspend=True))
    await cluster.run(200)
    assert cluster.names("Job") == []
    cluster.edit("CronJob", "off", suspend=False, startingDeadlineSeconds=10)
    await cluster.run(65)
    assert len(cluster.names("Job")) == 1
