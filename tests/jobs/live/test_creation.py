"""What names a queue is held back when it is created: nothing of it starts before there is quota."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.jobs.adapters import marks
from pilotage.sandbox.errors import ApiError
from tests.jobs.live.world import QueueingWorld, cluster_queue, job, living, queue

Json = dict[str, Any]

TRAIN_JOBS: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "trainjobs.trainer.kubeflow.org"},
    "spec": {
        "group": "trainer.kubeflow.org",
        "names": {"kind": "TrainJob", "plural": "trainjobs", "singular": "trainjob", "listKind": "TrainJobList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def pod(name: str, cpu: int = 1, **labels: str) -> Json:
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": str(cpu)}}}
    labels = {marks.QUEUE_NAME: "lq", **labels}
    return {"kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}}


def serving(kind: str, name: str, replicas: int, labels: Json | None = None) -> Json:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod("x")["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": {marks.QUEUE_NAME: "lq"} if labels is None else labels},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def bound(cluster: QueueingWorld) -> int:
    return sum(1 for one in cluster.objects("Pod") if one["spec"].get("nodeName"))


async def test_of_24_pods_of_which_none_is_gated_none_is_bound_without_quota() -> None:
    async with living(nodes=4, admits=True) as cluster:
        cluster.create(*queue(cpu=0), *(pod(f"p{at}") for at in range(24)))
        await cluster.run(30)
        assert len(cluster.objects("Pod")) == 24
        assert bound(cluster) == 0


async def test_of_24_running_jobs_no_pod_is_ever_made_without_quota() -> None:
    async with living(nodes=4, admits=True) as cluster:
        made: list[str] = []
        cluster.cluster.api.store.subscribe("pods", lambda change: made.append(change.record.key.name))
        cluster.create(*queue(cpu=0), *(job(f"j{at}") for at in range(24)))
        await cluster.run(30)
        assert made == []
        assert "Suspended" not in cluster.events("j0"), "there was nothing to suspend"


async def test_pods_run_as_far_as_the_quota_goes() -> None:
    async with living(nodes=4, admits=True) as cluster:
        cluster.create(*queue(cpu=5), *(pod(f"p{at}") for at in range(12)))
        await cluster.run(30)
        assert bound(cluster) == 5


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
async def test_what_makes_pods_by_a_template_is_queued_pod_by_pod(kind: str) -> None:
    async with living(nodes=4, admits=True) as cluster:
        cluster.create(*queue(cpu=3), serving(kind, "web", 8))
        await cluster.run(30)
        assert bound(cluster) == 3
        assert len(cluster.objects("Pod")) == 8


def set_as_group(replicas: int) -> Json:
    made = serving("StatefulSet", "db", replicas)
    made["spec"]["serviceName"] = "db"
    metadata = made["spec"]["template"]["metadata"]
    metadata["labels"][marks.GROUP_NAME] = "db"
    metadata["annotations"] = {
        marks.GROUP_TOTAL_COUNT: str(replicas),
        marks.GROUP_FAST_ADMISSION: "true",
        marks.GROUP_SERVING: "true",
    }
    return made


async def test_a_stateful_set_that_is_a_group_gets_quota_for_all_its_pods_or_none() -> None:
    async with living(nodes=4, admits=True) as cluster:
        cluster.create(*queue(cpu=2), set_as_group(3))
        await cluster.run(30)
        assert bound(cluster) == 0 and cluster.condition("db", "QuotaReserved") == "False/ExceedsMaxQuota"
        cluster.change("ClusterQueue", "cq", {"spec": cluster_queue(flavors={"std": 4})["spec"]})
        await cluster.run(30)
        assert bound(cluster) == 3 and len(cluster.objects("Workload")) == 1


async def test_a_stateful_set_that_is_a_group_can_be_scaled_and_gets_new_images() -> None:
    ready = {"waitForPodsReady": {"timeout": "60s", "recoveryTimeout": "60s"}}
    async with living(nodes=4, admits=True, configuration=ready) as cluster:
        cluster.create(*queue(cpu=4), set_as_group(3))
        await cluster.run(30)
        cluster.change("StatefulSet", "db", {"spec": {"replicas": 5}})
        await cluster.run(30)
        assert bound(cluster) == 4, "those that came later are queued by themselves, and there is quota for one"
        cluster.change("StatefulSet", "db", {"spec": {"replicas": 2}})
        await cluster.run(180)
        assert bound(cluster) == 2
        assert cluster.condition("db", "PodsReady").startswith("True/"), "nobody misses what is not wanted"
        container = {"name": "main", "image": "new", "resources": {"requests": {"cpu": "1"}}}
        cluster.change("StatefulSet", "db", {"spec": {"template": {"spec": {"containers": [container]}}}})
        await cluster.run(60)
        images = [one["spec"]["containers"][0]["image"] for one in cluster.objects("Pod")]
        assert images == ["new", "new"] and bound(cluster) == 2
        cluster.change("StatefulSet", "db", {"spec": {"replicas": 0}})
        await cluster.run(60)
        assert cluster.objects("Workload") == [], "its quota is free"


async def test_the_queue_of_a_deployment_is_followed_when_its_label_is_written_later() -> None:
    async with living(nodes=4, admits=True) as cluster:
        cluster.create(*queue(cpu=2), serving("Deployment", "web", 3, labels={}))
        await cluster.run(10)
        assert bound(cluster) == 3
        cluster.change("Deployment", "web", {"metadata": {"labels": {marks.QUEUE_NAME: "lq"}}})
        await cluster.run(60)
        template = cluster.get("Deployment", "web")["spec"]["template"]
        assert template["metadata"]["labels"] == {"app": "web", marks.QUEUE_NAME: "lq"}


async def test_the_jobs_of_a_cron_job_wait_in_its_queue() -> None:
    async with living(nodes=4, admits=True) as cluster:
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": job("x", cpu=2, queue="")["spec"]}}
        metadata = {"name": "nightly", "labels": {marks.QUEUE_NAME: "lq"}}
        made = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}
        cluster.create(*queue(cpu=3))
        cluster.cluster.api.create("cronjobs.batch", "default", made)
        await cluster.run(190)
        jobs = cluster.objects("Job")
        assert len(jobs) >= 3 and len(cluster.objects("Workload")) == len(jobs)
        assert bound(cluster) == 1, "there is quota for one of them"


async def test_a_train_job_that_names_a_queue_is_refused_aloud() -> None:
    async with living(nodes=1, admits=True) as cluster:
        api = cluster.cluster.api
        api.create("customresourcedefinitions.apiextensions.k8s.io", "", TRAIN_JOBS)
        metadata = {"name": "train", "labels": {marks.QUEUE_NAME: "lq"}}
        made = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": metadata, "spec": {}}
        with pytest.raises(ApiError, match=r"TrainJobs are not queued.*without the label"):
            api.create("trainjobs.trainer.kubeflow.org", "default", made)
        api.create("trainjobs.trainer.kubeflow.org", "default", {**made, "metadata": {"name": "train"}})


async def test_a_child_of_a_queued_job_starts_with_it() -> None:
    async with living(nodes=4, admits=True) as cluster:
        cluster.create(*queue(cpu=2), job("parent", cpu=2))
        await cluster.run(5)
        uid = cluster.job("parent")["metadata"]["uid"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "parent", "uid": uid, "controller": True}
        child = job("child")
        child["metadata"]["ownerReferences"] = [owner]
        cluster.create(child)
        await cluster.run(10)
        assert not cluster.is_suspended("child")
        assert len(cluster.objects("Workload")) == 1


async def test_frameworks_that_are_not_configured_are_left_alone() -> None:
    async with living(nodes=2) as cluster:
        cluster.create(*queue(cpu=0), pod("free"))
        await cluster.run(10)
        assert bound(cluster) == 1


def member(group: int, worker: int, size: int = 3) -> Json:
    """A pod as a LeaderWorkerSet makes it, with the queue that admission gave to its template."""
    made = pod(f"lws-{group}-{worker}")
    of_set = "leaderworkerset.sigs.k8s.io"
    made["metadata"]["labels"] |= {f"{of_set}/name": "lws", f"{of_set}/group-index": str(group)}
    made["metadata"]["annotations"] = {f"{of_set}/size": str(size)}
    return made


async def test_leaders_and_their_workers_start_together_or_not_at_all() -> None:
    async with living(nodes=4, admits=True) as cluster:
        cluster.create(*queue(cpu=5), *(member(group, worker) for group in (0, 1) for worker in range(3)))
        await cluster.run(20)
        names = {one["metadata"]["name"] for one in cluster.objects("Pod") if one["spec"].get("nodeName")}
        assert names == {f"lws-0-{worker}" for worker in range(3)}
        assert cluster.workload("leaderworkerset-lws-0")["spec"]["podSets"][0]["count"] == 3


async def test_a_group_that_is_not_complete_says_how_many_are_missing() -> None:
    async with living(nodes=4, admits=True) as cluster:
        cluster.create(*queue(cpu=5), member(0, 0))
        await cluster.run(20)
        assert bound(cluster) == 0 and "WaitsForGroup" in cluster.events("lws-0-0")
