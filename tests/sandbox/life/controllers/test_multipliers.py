"""Small objects that ask for a lot: what they make is bounded, comes at a pace, and is told of."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.life.controllers.completion_indexes import MOST_INDEXES, parse_indexes
from pilotage.sandbox.life.controllers.controller import BATCH, MANY, PACE_SECONDS
from tests.sandbox.living_cluster import LivingCluster, condition, deployment, job

MOST = 2**31 - 1


def events(cluster: LivingCluster) -> list[dict[str, Any]]:
    return [record.object() for record in cluster.store.list("events")]


@pytest.mark.parametrize("completions", [None, MOST])
async def test_a_job_that_asks_for_two_billion_pods_gets_as_many_as_the_cluster_may_have(
    completions: int | None,
) -> None:
    cluster = LivingCluster(binds=False, most_pods=120)
    wanted = {} if completions is None else {"completions": completions}
    cluster.create(job("greedy", parallelism=MOST, **wanted))
    await cluster.run(30)
    assert len(cluster.names("Pod")) == 120
    (told,) = [event for event in events(cluster) if event["reason"] == "FailedCreate"]
    assert told["involvedObject"]["name"] == "greedy" and "--max-pods" in told["message"]
    assert cluster.status("Job", "greedy")["active"] == 120


async def test_pods_for_who_wants_very_many_come_at_a_pace() -> None:
    cluster = LivingCluster(binds=False, most_pods=10 * MANY)
    cluster.create(job("greedy", parallelism=MOST))
    await cluster.run(10 * PACE_SECONDS)
    assert BATCH <= len(cluster.names("Pod")) <= 12 * BATCH


async def test_a_deployment_at_the_bound_says_so_and_goes_on_when_there_is_room() -> None:
    cluster = LivingCluster(binds=False, most_pods=60)
    cluster.create(deployment("web", replicas=100))
    cluster.create(deployment("small", replicas=1))
    await cluster.run(5)
    assert len(cluster.names("Pod")) == 60
    refused = [one for name in cluster.names("ReplicaSet") if (one := cluster.get("ReplicaSet", name))]
    assert any(
        "60 pods" in condition(one, "ReplicaFailure")["message"] for one in refused if one["status"].get("conditions")
    )
    assert {event["reason"] for event in events(cluster)} == {"FailedCreate"}
    cluster.delete("Deployment", "web")
    await cluster.run(120)
    assert len(cluster.names("Pod")) == 1


def test_completed_indexes_that_someone_wrote_into_a_status_are_bounded() -> None:
    assert len(parse_indexes("0-2147483646")) == MOST_INDEXES
    assert parse_indexes(f"3,{'9' * 5000},7-{'9' * 5000},²") == {3}
