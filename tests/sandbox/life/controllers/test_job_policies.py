"""Jobs with policies: which failures count, which indexes are given up, which are enough."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.life.controllers.job_policies import judge_failure, success_rule
from tests.sandbox.living_cluster import LivingCluster, condition, job

Object = dict[str, Any]
DISRUPTED = {"type": "DisruptionTarget"}


def failing(**spec: Any) -> Object:
    return job("work", annotations={"run-for": "1s", "exit-code": "42"}, **spec)


def on_codes(action: str, *codes: int, operator: str = "In", **more: Any) -> Object:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(codes), **more}}


def ended(code: int, *conditions: str) -> Object:
    status = {"name": "c", "state": {"terminated": {"exitCode": code}}}
    listed = [{"type": kind, "status": "True"} for kind in conditions]
    return {
        "metadata": {"namespace": "default", "name": "p"},
        "status": {"containerStatuses": [status], "conditions": listed},
    }


@pytest.mark.parametrize(
    ("rule", "pod", "action"),
    [
        (on_codes("FailJob", 42), ended(42), "FailJob"),
        (on_codes("FailJob", 42), ended(1), "Count"),
        (on_codes("Ignore", 42, operator="NotIn"), ended(1), "Ignore"),
        (on_codes("FailJob", 42, containerName="other"), ended(42), "Count"),
        ({"action": "Ignore", "onPodConditions": [DISRUPTED]}, ended(1, "DisruptionTarget"), "Ignore"),
        ({"action": "Ignore", "onPodConditions": [DISRUPTED]}, ended(1), "Count"),
    ],
)  # fmt: skip
def test_first_rule_that_matches_decides(rule: Object, pod: Object, action: str) -> None:
    rules = [rule, on_codes("Count", 0, operator="NotIn")]
    assert judge_failure({"spec": {"podFailurePolicy": {"rules": rules}}}, pod).action == action


@pytest.mark.parametrize(
    ("rule", "completed", "is_met"),
    [
        ({"succeededIndexes": "0,2"}, {0}, False),
        ({"succeededIndexes": "0,2"}, {0, 2}, True),
        ({"succeededIndexes": "0-9", "succeededCount": 2}, {3, 4, 40}, True),
        ({"succeededIndexes": "0-9", "succeededCount": 3}, {3, 4, 40}, False),
        ({"succeededCount": 2}, {1, 2}, True),
        ({"succeededCount": 2}, {1}, False),
    ],
)
def test_success_rules(rule: Object, completed: set[int], is_met: bool) -> None:
    assert (success_rule({"spec": {"successPolicy": {"rules": [rule]}}}, completed) == 0) == is_met


async def test_exit_code_ends_the_job_early() -> None:
    cluster = LivingCluster()
    cluster.create(failing(podFailurePolicy={"rules": [on_codes("FailJob", 42)]}, parallelism=3, completions=3))
    await cluster.settle()
    found = cluster.get("Job", "work")
    failed, target = condition(found, "Failed"), condition(found, "FailureTarget")
    assert failed["reason"] == target["reason"] == "PodFailurePolicy"
    assert "failed with exit code 42 matching FailJob rule at index 0" in failed["message"]
    assert "active" not in found["status"]


async def test_ignored_failures_do_not_count_to_the_limit() -> None:
    cluster = LivingCluster()
    cluster.create(failing(podFailurePolicy={"rules": [on_codes("Ignore", 42)]}, backoffLimit=0))
    await cluster.run(30)
    assert "failed" not in cluster.status("Job", "work")
    assert len(cluster.pods(phase="Failed")) > 2


async def test_failed_indexes_do_not_keep_the_others_from_running() -> None:
    cluster = LivingCluster()
    cluster.create(failing(completionMode="Indexed", completions=4, parallelism=2, backoffLimitPerIndex=1))
    await cluster.settle()
    found = cluster.get("Job", "work")
    assert found["status"]["failedIndexes"] == "0-3"
    assert found["status"]["failed"] == 8
    assert condition(found, "Failed")["reason"] == "FailedIndexes"
    counts = sorted(p["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] for p in cluster.pods())
    assert counts == ["0"] * 4 + ["1"] * 4


async def test_too_many_failed_indexes_end_the_job() -> None:
    cluster = LivingCluster()
    spec = {"backoffLimitPerIndex": 0, "maxFailedIndexes": 1}
    cluster.create(failing(completionMode="Indexed", completions=10, parallelism=1, **spec))
    await cluster.settle()
    found = cluster.get("Job", "work")
    assert condition(found, "Failed")["reason"] == "MaxFailedIndexesExceeded"
    assert found["status"]["failedIndexes"] == "0,1"


async def test_fail_index_gives_an_index_up_at_once() -> None:
    cluster = LivingCluster()
    policy = {"rules": [on_codes("FailIndex", 42)]}
    cluster.create(failing(completionMode="Indexed", completions=1, backoffLimitPerIndex=5, podFailurePolicy=policy))
    await cluster.settle()
    assert cluster.status("Job", "work")["failed"] == 1
    assert cluster.status("Job", "work")["failedIndexes"] == "0"


async def test_success_policy_ends_the_job_while_other_indexes_run() -> None:
    cluster = LivingCluster()
    policy = {"rules": [{"succeededIndexes": "0"}]}
    cluster.create(
        job("work", annotations={"run-for": "1h"}, completionMode="Indexed", completions=2, parallelism=2,
            successPolicy=policy)
    )  # fmt: skip
    await cluster.run(5)
    first = next(p for p in cluster.pods() if p["metadata"]["name"].startswith("work-0-"))
    first["metadata"]["annotations"]["sandbox.pilotage.dev/run-for"] = "1s"
    cluster.api.update("pods", "default", first["metadata"]["name"], first)
    await cluster.settle()
    found = cluster.get("Job", "work")
    assert condition(found, "SuccessCriteriaMet")["reason"] == condition(found, "Complete")["reason"] == "SuccessPolicy"
    assert found["status"]["completedIndexes"] == "0"
    assert len(cluster.pods()) == 1


async def test_end_is_announced_while_pods_are_ending_and_comes_when_they_are_gone() -> None:
    cluster = LivingCluster()
    cluster.create(job("slow", activeDeadlineSeconds=5, annotations={"run-for": "1h"}))
    await cluster.run(5.2)
    found = cluster.get("Job", "slow")
    assert condition(found, "FailureTarget")["reason"] == "DeadlineExceeded" and condition(found, "Failed") == {}
    await cluster.settle()
    assert condition(cluster.get("Job", "slow"), "Failed")["reason"] == "DeadlineExceeded"
