"""Disruption budgets say how many of their pods may go now."""

from __future__ import annotations

import pytest

from pilotage.sandbox.errors import ApiError
from tests.sandbox.living_cluster import LivingCluster, budget, condition, deployment, job, pod

COUNTS = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")


def counts(cluster: LivingCluster, name: str = "b") -> list[int]:
    status = cluster.status("PodDisruptionBudget", name)
    return [status[field] for field in COUNTS]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ({"minAvailable": 2}, [5, 5, 2, 3]),
        ({"minAvailable": 5}, [5, 5, 5, 0]),
        ({"minAvailable": "50%"}, [5, 5, 3, 2]),
        ({"maxUnavailable": 1}, [5, 5, 4, 1]),
        ({"maxUnavailable": "30%"}, [5, 5, 3, 2]),
        ({"maxUnavailable": "100%"}, [5, 5, 0, 5]),
    ],
)
async def test_budget_over_a_healthy_deployment(limit: dict[str, int | str], expected: list[int]) -> None:
    cluster = LivingCluster()
    cluster.create(deployment("web", 5))
    cluster.create(budget("b", "web", **limit))
    await cluster.settle()
    assert counts(cluster) == expected
    found = cluster.get("PodDisruptionBudget", "b")
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
    assert condition(found, "DisruptionAllowed")["status"] == ("True" if expected[-1] else "False")


async def test_pods_that_are_not_ready_or_do_not_exist_yet_are_missing() -> None:
    cluster = LivingCluster()
    cluster.create(deployment("web", 4, annotations={"never-ready": "true"}))
    cluster.create(budget("b", "web", maxUnavailable=1))
    await cluster.settle()
    assert counts(cluster) == [4, 0, 3, 0]


async def test_budget_follows_its_pods_and_its_own_changes() -> None:
    cluster = LivingCluster()
    cluster.create(budget("b", "web", minAvailable=1))
    await cluster.settle()
    assert counts(cluster) == [0, 0, 1, 0]
    cluster.create(deployment("web", 3))
    await cluster.settle()
    assert counts(cluster) == [3, 3, 1, 2]
    relabelled = cluster.get("Pod", cluster.names("Pod")[0])
    relabelled["metadata"]["labels"]["app"] = "other"
    cluster.api.update("pods", "default", relabelled["metadata"]["name"], relabelled)
    await cluster.settle()
    assert counts(cluster) == [3, 3, 1, 2], "the pod was released, and another one made"
    cluster.edit("PodDisruptionBudget", "b", selector={"matchLabels": {"app": "other"}})
    await cluster.settle()
    assert counts(cluster) == [1, 1, 1, 0]


async def test_pods_of_other_namespaces_do_not_count() -> None:
    cluster = LivingCluster()
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    cluster.create(pod("web"), "other")
    cluster.create(pod("web"))
    cluster.create(budget("b", "web", minAvailable=0))
    await cluster.settle()
    assert counts(cluster) == [1, 1, 0, 1]


async def test_share_of_pods_whose_controller_has_no_scale_cannot_be_told() -> None:
    cluster = LivingCluster()
    cluster.create(job("work", annotations={"run-for": "1h"}))
    cluster.create(budget("b", "work", maxUnavailable=1))
    await cluster.run(5)
    found = condition(cluster.get("PodDisruptionBudget", "b"), "DisruptionAllowed")
    assert found["reason"] == "SyncFailed" and "found no controllers for pod" in found["message"]


async def test_evictions_are_allowed_one_after_the_other_as_replacements_get_ready() -> None:
    cluster = LivingCluster()
    cluster.create(deployment("web", 3))
    cluster.create(budget("b", "web", minAvailable=2))
    await cluster.settle()
    first, second, _ = cluster.names("Pod")
    cluster.api.evict("default", first)
    with pytest.raises(ApiError, match="disruption budget"):
        cluster.api.evict("default", second)
    await cluster.run(0.2)
    with pytest.raises(ApiError, match="disruption budget"):
        cluster.api.evict("default", second)
    await cluster.settle()
    assert counts(cluster) == [3, 3, 2, 1]
    assert "disruptedPods" not in cluster.status("PodDisruptionBudget", "b")
    cluster.api.evict("default", second)


async def test_eviction_that_never_happens_is_given_up() -> None:
    cluster = LivingCluster()
    cluster.create(deployment("web", 2))
    cluster.create(budget("b", "web", minAvailable=1))
    await cluster.settle()
    found = cluster.get("PodDisruptionBudget", "b")
    found["status"]["disruptedPods"] = {cluster.names("Pod")[0]: "2026-01-01T00:00:01Z"}
    cluster.api.update("poddisruptionbudgets.policy", "default", "b", found, "status")
    await cluster.run(60)
    assert counts(cluster) == [2, 1, 1, 0]
    await cluster.settle()
    assert counts(cluster) == [2, 2, 1, 1]
