"""Jobs whose workload somebody else makes (kueue.x-k8s.io/prebuilt-workload-name)."""

from __future__ import annotations

from typing import Any

from pilotage.jobs.adapters import marks
from tests.jobs.live.world import KUEUE, QueueingWorld, job, living, queue

Json = dict[str, Any]


def prebuilt(count: int = 1) -> Json:
    made = job("j")
    template = made["spec"]["template"]
    pod_set = {"name": "main", "count": count, "template": {"metadata": template["metadata"], "spec": template["spec"]}}
    spec = {"queueName": "lq", "podSets": [pod_set]}
    return {"apiVersion": KUEUE, "kind": "Workload", "metadata": {"name": "mine"}, "spec": spec}


def waiting_job() -> Json:
    made = job("j")
    made["metadata"]["labels"][marks.PREBUILT_WORKLOAD] = "mine"
    return made


def owners(cluster: QueueingWorld) -> list[str]:
    found = cluster.get("Workload", "mine")["metadata"].get("ownerReferences") or []
    return [one["name"] for one in found]


async def test_a_job_waits_for_its_workload_and_runs_by_it() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=4), waiting_job())
        await cluster.run(10)
        assert cluster.is_suspended("j") and cluster.objects("Workload") == []
        assert "PrebuiltWorkloadNotFound" in cluster.events("j")
        cluster.create(prebuilt())
        await cluster.run(10)
        assert owners(cluster) == ["j"] and len(cluster.objects("Workload")) == 1
        assert not cluster.is_suspended("j")


async def test_a_workload_that_was_admitted_before_its_job_came_starts_it() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=4), prebuilt())
        await cluster.run(5)
        assert cluster.condition("mine", "Admitted") == "True/Admitted"
        cluster.create(waiting_job())
        await cluster.run(10)
        assert not cluster.is_suspended("j") and cluster.pods("j")


async def test_a_workload_about_other_pods_is_not_taken_over() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=4), prebuilt(count=3), waiting_job())
        await cluster.run(10)
        assert cluster.is_suspended("j") and owners(cluster) == []
        assert "ErrWorkloadCompose" in cluster.events("j")
