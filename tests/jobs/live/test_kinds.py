"""Jobs of kinds with definitions of their own: queued, steered, started, stopped and restored as Jobs are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from pilotage.jobs.adapters import marks
from pilotage.jobs.adapters.kinds.pods_in_spec import at
from pilotage.model.custom_jobs import plural_of
from tests.jobs.kind_samples import EXTERNAL, JOB_SET, RAY_JOB, SAMPLES, SPARK, Sample
from tests.jobs.kinds import definitions
from tests.jobs.live.world import QueueingWorld, by_quota_alone, cluster_queue, flavor, job, living, local_queue

Json = dict[str, Any]
MERGE = "application/merge-patch+json"


class World:
    """A cluster with the kind of a sample, in which the test plays its operator."""

    def __init__(self, cluster: QueueingWorld, sample: Sample) -> None:
        self.cluster = cluster
        self.sample = sample
        self._api = cluster.cluster.api
        self._resource = f"{plural_of(sample.kind)}.{sample.api_version.partition('/')[0]}"

    def install(self) -> None:
        self._api.create("customresourcedefinitions.apiextensions.k8s.io", "", definitions()[self.sample.kind])

    def create(self, obj: Json) -> None:
        self._api.create(self._resource, "default", obj)

    def job(self, name: str = "sample") -> Json:
        return dict(self._api.get(self._resource, "default", name))

    def is_suspended(self, name: str = "sample") -> bool:
        return at(self.job(name)["spec"], self.sample.switch) is True

    def change(self, change: Json, name: str = "sample") -> None:
        self._api.patch(self._resource, "default", name, msgspec.json.encode(change), MERGE)

    def report(self, status: Json, name: str = "sample") -> None:
        self._api.patch(self._resource, "default", name, msgspec.json.encode({"status": status}), MERGE, "status")


@asynccontextmanager
async def world(sample: Sample, cpu: int = 20, *, admits: bool = True) -> AsyncIterator[World]:
    configuration: Json = {"resources": {"excludeResourcePrefixes": ["memory"]}}
    if sample.kind == "Widget":
        configuration["integrations"] = {"externalFrameworks": [EXTERNAL]}
    async with living(nodes=2, configuration=configuration, admits=admits) as cluster:
        cluster.create(*by_quota_alone(flavor("std", pool="x"), local_queue(), cluster_queue(flavors={"std": cpu})))
        made = World(cluster, sample)
        made.install()
        await cluster.run(120)
        yield made


@pytest.fixture(params=SAMPLES)
def sample(request: pytest.FixtureRequest) -> Sample:
    return SAMPLES[request.param]


async def test_it_waits_for_quota_for_all_of_its_pods(sample: Sample) -> None:
    total = sum(sample.pod_sets.values())
    async with world(sample, cpu=total - 1) as here:
        here.create(sample.job())
        if sample.kind != "Widget":
            assert here.is_suspended(), "held back by admission"
        await here.cluster.run(10)
        assert here.is_suspended()
        pod_sets = here.cluster.workload("sample")["spec"]["podSets"]
        assert {one["name"]: one["count"] for one in pod_sets} == sample.pod_sets
        assert here.cluster.condition("sample", "QuotaReserved").startswith("False/")
        here.cluster.change("ClusterQueue", "cq", cluster_queue(flavors={"std": total}))
        await here.cluster.run(10)
        assert not here.is_suspended()


async def test_it_runs_on_the_nodes_of_its_flavor_and_is_as_before_when_it_is_stopped(sample: Sample) -> None:
    async with world(sample) as here:
        here.create(sample.job())
        before = here.job()["spec"]
        await here.cluster.run(10)
        spec = here.job()["spec"]
        assert not here.is_suspended()
        for path in sample.selectors:
            assert at(spec, path)["pool"] == "x", path
        here.report(sample.running)
        await here.cluster.run(10)
        assert here.cluster.condition("sample", "PodsReady").startswith("True/")
        name = here.cluster.workload("sample")["metadata"]["name"]
        here.cluster.change("Workload", name, {"spec": {"active": False}})
        await here.cluster.run(10)
        assert here.is_suspended()
        assert here.cluster.condition("sample", "QuotaReserved").startswith("True/"), "its pods are still there"
        here.report(sample.stopped)
        await here.cluster.run(10)
        assert here.cluster.condition("sample", "QuotaReserved").startswith("False/")
        assert _without_switch(here.job()["spec"], sample) == _without_switch(before, sample)


async def test_its_end_is_the_end_of_its_workload(sample: Sample) -> None:
    if not sample.finished:
        pytest.skip("it serves")
    async with world(sample) as here:
        here.create(sample.job())
        await here.cluster.run(10)
        here.report(sample.running)
        await here.cluster.run(5)
        here.report(sample.finished)
        await here.cluster.run(5)
        assert here.cluster.condition("sample", "Finished") == "True/Succeeded"
        assert here.cluster.get("ClusterQueue", "cq")["status"]["reservingWorkloads"] == 0


async def test_one_that_was_submitted_before_its_admission_was_installed_is_suspended(sample: Sample) -> None:
    async with world(sample, cpu=0, admits=False) as here:
        here.create(sample.job())
        assert not here.is_suspended()
        await here.cluster.run(5)
        assert here.is_suspended() and "Suspended" in here.cluster.events("sample")


async def test_a_kind_is_waited_for_that_is_installed_later() -> None:
    async with living(nodes=1, admits=True) as cluster:
        cluster.create(*by_quota_alone(flavor("std"), local_queue(), cluster_queue(flavors={"std": 4})))
        cluster.create(job("plain"))
        await cluster.run(30)
        assert not cluster.is_suspended("plain"), "nothing waits for kinds that are not there"
        here = World(cluster, JOB_SET)
        here.install()
        here.create(JOB_SET.job(replicatedJobs=JOB_SET.spec["replicatedJobs"][:1]))
        await cluster.run(120)
        assert not here.is_suspended()


@pytest.mark.parametrize(
    ("sample", "changes", "reason"),
    [
        pytest.param(RAY_JOB, {"shutdownAfterJobFinishes": False}, "shutdownAfterJobFinishes", id="runs on"),
        pytest.param(RAY_JOB, {"clusterSelector": {"a": "b"}}, "clusterSelector", id="another's cluster"),
        pytest.param(
            RAY_JOB,
            {"rayClusterSpec": {**RAY_JOB.spec["rayClusterSpec"], "enableInTreeAutoscaling": True}},
            "enableInTreeAutoscaling",
            id="grows by itself",
        ),
        pytest.param(SPARK, {"dynamicAllocation": {"enabled": True}}, "dynamicAllocation", id="more executors"),
        pytest.param(SPARK, {"nodeSelector": {"a": "b"}}, "nodeSelector", id="one selector for both"),
        pytest.param(SPARK, {"driver": {"memory": "a lot"}}, "a lot", id="no memory"),
        pytest.param(JOB_SET, {"replicatedJobs": []}, "describes no pods", id="no pods"),
    ],
)
async def test_what_cannot_be_queued_says_so_and_stays_suspended(sample: Sample, changes: Json, reason: str) -> None:
    async with world(sample) as here:
        here.create(sample.job(**changes))
        await here.cluster.run(10)
        assert here.is_suspended()
        notes = [one["message"] for one in here.cluster.objects("Event") if one["reason"] == "ErrWorkloadCompose"]
        assert len(notes) == 1 and reason in notes[0]


async def test_a_job_of_a_jobset_runs_when_that_is_admitted() -> None:
    async with world(JOB_SET, cpu=0) as here:
        here.create(JOB_SET.job())
        uid = here.job()["metadata"]["uid"]
        owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "sample", "uid": uid}
        child = job("child", queue="")
        child["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        here.cluster.create(child)
        await here.cluster.run(10)
        assert here.cluster.is_suspended("child"), "its pods would be there without quota"
        assert here.cluster.job("child")["metadata"]["annotations"][marks.HELD] == "true"
        here.cluster.change("ClusterQueue", "cq", cluster_queue(flavors={"std": 9}))
        await here.cluster.run(10)
        assert not here.is_suspended() and not here.cluster.is_suspended("child")
        assert len(here.cluster.objects("Workload")) == 1


async def test_one_that_is_resized_while_it_runs_is_queued_anew() -> None:
    async with world(JOB_SET, cpu=6) as here:
        here.create(JOB_SET.job())
        await here.cluster.run(10)
        assert not here.is_suspended()
        spec = here.job()["spec"]
        spec["replicatedJobs"][1]["replicas"] = 3
        here.change({"spec": {"replicatedJobs": spec["replicatedJobs"]}})
        await here.cluster.run(10)
        assert here.is_suspended(), "7 pods are more than the quota"


def _without_switch(spec: Json, sample: Sample) -> Json:
    copied: Json = msgspec.json.decode(msgspec.json.encode(spec))
    holder = at(copied, sample.switch[:-1])
    holder.pop(sample.switch[-1], None)
    if sample.kind == "AppWrapper":
        for one in copied["components"]:
            one.pop("podSetInfos", None)
    return copied
