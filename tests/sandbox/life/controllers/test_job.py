"""Jobs run their pods to completion, or fail, or wait, and count every pod once."""

from __future__ import annotations

import pytest

from pilotage.sandbox.life.controllers.completion_indexes import format_indexes, parse_indexes
from pilotage.sandbox.life.kubelet import KubeletSettings
from tests.sandbox.living_cluster import LivingCluster, condition, job

TRACKING = "batch.kubernetes.io/job-tracking"


@pytest.mark.parametrize(
    ("indexes", "text"), [((), ""), ((3,), "3"), ((1, 2), "1,2"), ((1, 3, 4, 5, 7), "1,3-5,7"), ((0, 1, 2), "0-2")]
)
def test_completed_indexes_are_written_and_read(indexes: tuple[int, ...], text: str) -> None:
    assert format_indexes(reversed(indexes)) == text
    assert parse_indexes(text) == set(indexes)


async def test_job_runs_as_many_pods_as_asked_never_more_than_parallelism_at_once() -> None:
    cluster = LivingCluster()
    cluster.create(job("work", completions=5, parallelism=2))
    most = 0
    for _ in range(100):
        await cluster.run(0.5)
        most = max(most, len(cluster.pods(phase="Running")))
    found = cluster.get("Job", "work")
    assert most == 2 and len(cluster.pods(phase="Succeeded")) == 5
    assert found["status"]["succeeded"] == 5 and "active" not in found["status"]
    assert condition(found, "Complete")["reason"] == "CompletionsReached"
    assert found["status"]["completionTime"] > found["status"]["startTime"]


async def test_pods_of_a_job_carry_its_labels_and_are_let_go_once_counted() -> None:
    cluster = LivingCluster()
    uid = cluster.create(job("work"))["metadata"]["uid"]
    await cluster.run(3)
    (running,) = cluster.pods()
    assert running["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "work"
    assert running["metadata"]["labels"]["batch.kubernetes.io/controller-uid"] == uid
    assert running["metadata"]["finalizers"] == [TRACKING]
    assert cluster.status("Job", "work")["active"] == cluster.status("Job", "work")["ready"] == 1
    await cluster.settle()
    assert "finalizers" not in cluster.pods()[0]["metadata"]


async def test_succeeded_pods_that_are_deleted_stay_counted() -> None:
    cluster = LivingCluster()
    cluster.create(job("work", completions=4, parallelism=1))
    await cluster.run(25)
    for found in cluster.pods(phase="Succeeded"):
        cluster.delete("Pod", found["metadata"]["name"])
    made = set(cluster.names("Pod"))
    await cluster.settle()
    assert cluster.status("Job", "work")["succeeded"] == 4
    assert len(made) == 1 and len(cluster.names("Pod")) == 2  # the two that ran and were deleted are not run again


async def test_more_pods_than_one_batch_end_at_once_and_are_counted_once() -> None:
    cluster = LivingCluster(nodes=3)
    cluster.create(job("work", completions=170, parallelism=170))
    await cluster.settle()
    assert cluster.status("Job", "work")["succeeded"] == 170
    assert len(cluster.pods()) == 170


async def test_work_queue_job_ends_when_all_pods_end_after_one_success() -> None:
    cluster = LivingCluster()
    cluster.create(job("work", parallelism=3, completions=None))
    await cluster.settle()
    assert cluster.status("Job", "work")["succeeded"] == 3
    assert condition(cluster.get("Job", "work"), "Complete")["status"] == "True"


async def test_failing_pods_are_retried_later_and_later_until_the_limit() -> None:
    cluster = LivingCluster()
    cluster.create(job("bad", backoffLimit=2, annotations={"fail": "true"}))
    seen = []
    for _ in range(60):
        await cluster.run(1)
        seen.append(len(cluster.pods(phase="Failed")))
    assert [seen.index(count) for count in (1, 2, 3)] == [0, 12, 33]  # back-offs of 10 s and 20 s, 1 s to start
    found = cluster.get("Job", "bad")
    assert condition(found, "Failed")["reason"] == "BackoffLimitExceeded"
    assert found["status"]["failed"] == 3 and "completionTime" not in found["status"]


async def test_active_pods_end_when_the_job_fails() -> None:
    cluster = LivingCluster(kubelet=KubeletSettings(start_jitter_seconds=0, job_run_seconds=None))
    cluster.create(job("bad", backoffLimit=0, parallelism=3, completions=3))
    await cluster.run(3)
    victim = cluster.get("Pod", cluster.names("Pod")[0])
    victim["status"]["phase"] = "Failed"
    cluster.api.update("pods", "default", victim["metadata"]["name"], victim, "status")
    await cluster.settle()
    assert len(cluster.pods()) == 1
    assert cluster.status("Job", "bad")["failed"] == 3


async def test_restarts_inside_a_pod_count_towards_the_limit() -> None:
    cluster = LivingCluster()
    cluster.create(job("bad", backoffLimit=2, restart="OnFailure", annotations={"fail": "true"}))
    await cluster.run(40)
    assert condition(cluster.get("Job", "bad"), "Failed")["reason"] == "BackoffLimitExceeded"


async def test_deleted_pod_counts_as_failed_and_is_replaced() -> None:
    cluster = LivingCluster()
    cluster.create(job("work"))
    await cluster.run(5)
    (victim,) = cluster.names("Pod")
    cluster.delete("Pod", victim)
    await cluster.settle()
    assert victim not in cluster.names("Pod")
    assert (cluster.status("Job", "work")["failed"], cluster.status("Job", "work")["succeeded"]) == (1, 1)


async def test_replacement_waits_for_the_end_of_the_old_pod_if_asked_to() -> None:
    cluster = LivingCluster(kubelet=KubeletSettings(stop_seconds=20.0))
    cluster.create(job("work", podReplacementPolicy="Failed"))
    await cluster.run(5)
    (victim,) = cluster.names("Pod")
    cluster.delete("Pod", victim)
    await cluster.run(18)
    assert cluster.names("Pod") == [victim] and cluster.status("Job", "work")["terminating"] == 1
    await cluster.settle()
    assert (cluster.status("Job", "work")["failed"], cluster.status("Job", "work")["succeeded"]) == (1, 1)


async def test_suspended_job_has_no_pods_and_no_start_time_until_resumed() -> None:
    cluster = LivingCluster()
    cluster.create(job("work", suspend=True, completions=3, parallelism=3))
    await cluster.run(30)
    found = cluster.get("Job", "work")
    assert cluster.pods() == [] and "startTime" not in found["status"]
    assert condition(found, "Suspended")["reason"] == "JobSuspended"
    cluster.edit("Job", "work", suspend=False)
    await cluster.run(5)
    assert len(cluster.pods(phase="Running")) == 3 and cluster.status("Job", "work")["startTime"]
    cluster.edit("Job", "work", suspend=True)
    await cluster.run(5)
    found = cluster.get("Job", "work")
    assert cluster.pods() == [] and "startTime" not in found["status"] and "failed" not in found["status"]
    cluster.edit("Job", "work", suspend=False)
    await cluster.settle()
    found = cluster.get("Job", "work")
    assert condition(found, "Suspended")["reason"] == "JobResumed"
    assert found["status"]["succeeded"] == 3 and "failed" not in found["status"]


async def test_lower_parallelism_ends_pods_without_counting_them() -> None:
    cluster = LivingCluster()
    cluster.create(job("work", completions=4, parallelism=4))
    await cluster.run(5)
    cluster.edit("Job", "work", parallelism=1)
    await cluster.run(1)
    assert cluster.status("Job", "work")["active"] == 1
    await cluster.settle()
    status = cluster.status("Job", "work")
    assert status["succeeded"] == 4 and "failed" not in status


async def test_job_beyond_its_deadline_fails() -> None:
    cluster = LivingCluster()
    cluster.create(job("slow", activeDeadlineSeconds=20, annotations={"run-for": "1h"}))
    await cluster.run(19)
    assert condition(cluster.get("Job", "slow"), "Failed") == {}
    await cluster.settle()
    assert condition(cluster.get("Job", "slow"), "Failed")["reason"] == "DeadlineExceeded"
    assert cluster.pods() == []


async def test_finished_job_is_deleted_with_its_pods_after_its_time_to_live() -> None:
    cluster = LivingCluster()
    cluster.create(job("work", ttlSecondsAfterFinished=30))
    await cluster.run(30)
    assert cluster.status("Job", "work")["succeeded"] == 1
    await cluster.settle()
    assert cluster.find("Job", "work") is None and cluster.pods() == []


async def test_indexed_job_runs_every_index_once() -> None:
    cluster = LivingCluster()
    cluster.create(job("work", completions=5, parallelism=2, completionMode="Indexed"))
    await cluster.settle()
    pods = cluster.pods(phase="Succeeded")
    label = "batch.kubernetes.io/job-completion-index"
    assert sorted(found["metadata"]["labels"][label] for found in pods) == list("01234")
    third = next(found for found in pods if found["metadata"]["labels"][label] == "3")
    assert third["metadata"]["name"].startswith("work-3-") and third["spec"]["hostname"] == "work-3"
    assert third["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"
    status = cluster.status("Job", "work")
    assert (status["completedIndexes"], status["succeeded"]) == ("0-4", 5)


async def test_failed_index_is_run_again() -> None:
    cluster = LivingCluster()
    cluster.create(job("work", completions=3, parallelism=3, completionMode="Indexed"))
    await cluster.run(3)
    victim = next(name for name in cluster.names("Pod") if name.startswith("work-1-"))
    cluster.delete("Pod", victim)
    await cluster.settle()
    status = cluster.status("Job", "work")
    assert (status["completedIndexes"], status["succeeded"], status["failed"]) == ("0-2", 3, 1)


async def test_pods_of_a_deleted_job_go_with_it_or_are_set_free() -> None:
    cluster = LivingCluster()
    for name in ("background", "orphaned"):
        cluster.create(job(name, annotations={"run-for": "1h"}))
    await cluster.run(5)
    cluster.delete("Job", "background", propagationPolicy="Background")
    cluster.delete("Job", "orphaned", propagationPolicy="Orphan")
    await cluster.run(5)
    (left,) = cluster.pods()
    assert left["metadata"]["labels"]["app"] == "orphaned"
    assert "ownerReferences" not in left["metadata"]


async def test_job_managed_by_someone_else_is_left_alone() -> None:
    cluster = LivingCluster()
    cluster.create(job("work", managedBy="example.com/other"))
    await cluster.settle()
    assert cluster.pods() == [] and cluster.status("Job", "work") == {}


async def test_counted_pods_are_not_lost_when_a_creation_is_rejected() -> None:
    cluster = LivingCluster()
    cluster.api.create(
        "priorityclasses.scheduling.k8s.io",
        "",
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}, "value": 1},
    )
    work = job("work", completions=2, parallelism=1)
    work["spec"]["template"]["spec"]["priorityClassName"] = "p"
    cluster.create(work)
    await cluster.run(5)
    cluster.api.delete("priorityclasses.scheduling.k8s.io", "", "p")
    await cluster.run(30)
    assert cluster.status("Job", "work")["succeeded"] == 1


async def test_success_ends_the_back_off() -> None:
    cluster = LivingCluster()
    cluster.create(job("work", completions=2, parallelism=1))

    async def fail_one() -> float:
        """Let the running pod fail; returns how long it takes until the next one is there."""
        await cluster.run(3)
        (running,) = cluster.pods(phase="Running")
        running["status"]["phase"] = "Failed"
        cluster.api.update("pods", "default", running["metadata"]["name"], running, "status")
        begin = cluster.clock.monotonic()
        while not cluster.pods(phase="Pending"):
            await cluster.run(0.5)
        return cluster.clock.monotonic() - begin

    assert await fail_one() == pytest.approx(10, abs=1)
    assert await fail_one() == pytest.approx(20, abs=1)
    while not cluster.pods(phase="Succeeded"):
        await cluster.run(0.5)
    assert await fail_one() == pytest.approx(10, abs=1)


async def test_ended_and_deleted_pod_is_let_go_when_its_job_is_gone_before_counting_it() -> None:
    cluster = LivingCluster()
    cluster.create(job("work"))
    await cluster.run(5)
    ended = cluster.pods()[0]
    ended["status"]["phase"] = "Succeeded"
    cluster.api.update("pods", "default", ended["metadata"]["name"], ended, "status")
    cluster.delete("Pod", ended["metadata"]["name"])
    cluster.delete("Job", "work", propagationPolicy="Background")
    await cluster.settle()
    assert cluster.pods() == []


async def test_status_follows_pods_that_change_in_every_way_that_counts() -> None:
    cluster = LivingCluster(binds=False)
    cluster.create(job("work", completions=1))
    await cluster.run(1)
    assert cluster.status("Job", "work")["active"] == 1
    [made] = cluster.pods()
    name = made["metadata"]["name"]
    cluster.api.bind("default", name, "node-00000")
    revision = cluster.store.revision
    cluster.life.step()
    assert cluster.store.revision == revision, "that a pod has a node does not change its Job"
    obj = cluster.get("Pod", name)
    obj["status"] |= {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    cluster.api.update("pods", "default", name, obj, "status")
    await cluster.run(1)
    assert cluster.status("Job", "work")["ready"] == 1
    obj = cluster.get("Pod", name)
    obj["status"] |= {"phase": "Succeeded", "conditions": []}
    cluster.api.update("pods", "default", name, obj, "status")
    await cluster.run(1)
    status = cluster.status("Job", "work")
    assert (status["succeeded"], status.get("active")) == (1, None)
    assert status["conditions"][-1]["type"] == "Complete"
