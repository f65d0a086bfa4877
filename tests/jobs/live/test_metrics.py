"""Kueue's metrics after a little life, as Prometheus would read them."""

from __future__ import annotations

from pilotage.observe.exposition import render
from tests.jobs.live.world import (
    KUEUE,
    QueueingWorld,
    cluster_queue,
    flavor,
    job,
    living,
    local_queue,
    priority_class,
    queue,
)

ROLE = "standalone"


async def lived() -> QueueingWorld:
    configuration = {
        "waitForPodsReady": {"timeout": "30s", "requeuingStrategy": {"backoffBaseSeconds": 1000}},
        "metrics": {"enableClusterQueueResources": True},
    }
    async with living(configuration=configuration) as cluster:
        cluster.create(*queue(cpu=2), job("done", seconds=5))
        await cluster.run(15)
        cluster.create(job("never", cpu=2, is_ready=False))
        await cluster.run(40)
        cluster.create(job("runs", cpu=2), job("waits", cpu=2))
        await cluster.run(10)
    return cluster


async def test_what_happened_is_counted_under_kueues_names() -> None:
    cluster = await lived()
    assert cluster.process.queueing is not None
    metrics = cluster.process.queueing.metrics
    assert metrics.admitted_workloads_total.total() == 3
    assert metrics.finished_workloads_total.total() == 1
    evicted = {labels[:3]: value for labels, value in metrics.evicted_workloads_total.values().items()}
    assert evicted == {("cq", "PodsReadyTimeout", "WaitForStart"): 1}
    assert metrics.pending_workloads.value("cq", "inadmissible", ROLE) == 2, "one waits for quota, one for its back-off"
    assert metrics.admitted_active_workloads.value("cq", ROLE) == 1
    assert metrics.cluster_queue_status.value("cq", "active", ROLE) == 1
    assert metrics.cluster_queue_resource_reservation.value("", "cq", "std", "cpu", ROLE) == 2.0
    assert metrics.cluster_queue_nominal_quota.value("", "cq", "std", "cpu", ROLE) == 2.0
    local = ("lq", "default")
    assert metrics.local_queue_pending_workloads.value(*local, "inadmissible", ROLE) == 2
    assert metrics.local_queue_admitted_active_workloads.value(*local, ROLE) == 1
    assert metrics.local_queue_status.value(*local, "True", ROLE) == 1
    assert metrics.local_queue_admitted_workloads_total.values() == {(*local, "", ROLE): 3}
    assert metrics.local_queue_evicted_workloads_total.values() == {
        (*local, "PodsReadyTimeout", "WaitForStart", "", ROLE): 1
    }
    page = render("", metrics)[0].decode()
    [line] = [one for one in page.splitlines() if one.startswith("kueue_evicted_workloads_total{")]
    assert 'reason="PodsReadyTimeout"' in line and line.endswith(" 1.0")
    assert "kueue_admission_wait_time_seconds_count" in page


async def full_life() -> QueueingWorld:
    """Something of everything: checks, preemption, timeouts, deactivation, fair sharing in a cohort."""
    configuration = {
        "waitForPodsReady": {"timeout": "20s", "requeuingStrategy": {"backoffLimitCount": 0}},
        "fairSharing": {},
        "metrics": {"enableClusterQueueResources": True},
    }
    async with living(nodes=4, configuration=configuration) as cluster:
        quota = {"nominalQuota": 2, "borrowingLimit": 1, "lendingLimit": 1}
        checked = {"admissionChecks": [{"name": "budget"}]}
        cluster.create(
            flavor("std"),
            cluster_queue("cq", {"std": quota}, cohortName="ring", preemption={"withinClusterQueue": "LowerPriority"}),
            cluster_queue(
                "other", {"std": quota | {"nominalQuota": 4}}, cohortName="ring", admissionChecksStrategy=checked
            ),
            local_queue("lq", "cq"),
            local_queue("checked", "other"),
            priority_class("high", 9),
            {"apiVersion": KUEUE, "kind": "AdmissionCheck", "metadata": {"name": "budget"}, "spec": CHECKED_BY},
        )
        cluster.change_status("AdmissionCheck", "budget", {"conditions": [condition("Active")]})
        cluster.create(job("done", seconds=5), job("slow", queue="checked"))
        await cluster.run(15)
        approve(cluster, "slow")
        cluster.create(job("borrows", cpu=3))
        await cluster.run(10)
        cluster.create(job("urgent", cpu=2, priority="high"))
        await cluster.run(10)
        cluster.create(job("never", queue="checked", is_ready=False), job("reserved", queue="checked"))
        await cluster.run(5)
        approve(cluster, "never")
        await cluster.run(30)
    return cluster


CHECKED_BY = {"controllerName": "example.com/budget"}
NOW = "1970-01-01T00:00:00Z"


def approve(cluster: QueueingWorld, name: str) -> None:
    state = {"name": "budget", "state": "Ready", "message": "", "lastTransitionTime": NOW}
    cluster.change_status("Workload", cluster.workload(name)["metadata"]["name"], {"admissionChecks": [state]})


def condition(kind: str) -> dict[str, str]:
    return {"type": kind, "status": "True", "reason": "R", "message": "", "lastTransitionTime": NOW}


async def test_there_is_no_metric_that_nothing_is_reported_by() -> None:
    cluster = await full_life()
    assert cluster.process.queueing is not None
    metrics = cluster.process.queueing.metrics
    page = render("", metrics)[0].decode()
    names = [line.split()[2] for line in page.splitlines() if line.startswith("# TYPE kueue_")]
    told = {line.split("{")[0] for line in page.splitlines() if line.startswith("kueue_")}
    silent = [name for name in names if not {name, f"{name}_total", f"{name}_count"} & told]
    assert silent == []
    assert all('replica_role="standalone"' in line for line in page.splitlines() if line.startswith("kueue_"))


async def test_what_is_told_of_a_cluster_queue_is_told_of_its_local_queues_too() -> None:
    cluster = await full_life()
    assert cluster.process.queueing is not None
    metrics = cluster.process.queueing.metrics
    for name in (
        "quota_reserved_wait_time_seconds",
        "admission_wait_time_seconds",
        "admission_checks_wait_time_seconds",
        "ready_wait_time_seconds",
        "admitted_until_ready_wait_time_seconds",
        "execution_time_seconds",
    ):
        of_queues = {labels[:2]: line.sum for labels, line in getattr(metrics, name).lines().items()}
        of_local = getattr(metrics, f"local_queue_{name}").lines()
        queues = {"lq": "cq", "checked": "other"}
        assert {(queues[labels[0]], labels[2]): line.sum for labels, line in of_local.items()} == of_queues, name


async def test_amounts_and_reasons_are_reported_as_they_are() -> None:
    cluster = await full_life()
    assert cluster.process.queueing is not None
    metrics = cluster.process.queueing.metrics
    quota = ("ring", "cq", "std", "cpu", ROLE)
    assert metrics.cluster_queue_resource_usage.value(*quota) == 2.0
    assert metrics.cluster_queue_resource_pending.value(*quota) == 3.0, "what was preempted waits again"
    assert metrics.cluster_queue_borrowing_limit.value(*quota) == 1.0
    assert metrics.local_queue_resource_usage.value("lq", "default", "std", "cpu", ROLE) == 2.0
    assert metrics.unadmitted_workloads.value("cq", "WaitingForQuota", "", ROLE) == 1
    assert metrics.local_queue_unadmitted_workloads.value("lq", "default", "WaitingForQuota", "", ROLE) == 1
    assert {labels[:2] for labels in metrics.workload_eviction_latency_seconds.lines()} == {
        ("cq", "Preempted"),
        ("other", "Deactivated"),
    }
    assert metrics.preempted_workloads_total.values() == {("cq", "InClusterQueue", ROLE): 1}
    assert metrics.cohort_weighted_share.values() == {("ring", ROLE): 0}
    attempts = metrics.admission_attempts_total.values()
    timed = metrics.admission_attempt_duration_seconds.lines()
    assert {labels: line.count for labels, line in timed.items()} == attempts


async def test_the_series_of_queues_that_are_deleted_disappear() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), cluster_queue("kept"), local_queue("kept", "kept"))
        cluster.create(job("done", seconds=5), job("other", seconds=5, queue="kept"), job("later", seconds=60))
        await cluster.run(20)
        assert cluster.process.queueing is not None
        page = render("", cluster.process.queueing.metrics)[0].decode()
        assert 'cluster_queue="cq"' in page and 'name="lq"' in page
        cluster.delete("LocalQueue", "lq")
        await cluster.run(60)
        page = render("", cluster.process.queueing.metrics)[0].decode()
        assert 'name="lq"' not in page and 'cluster_queue="cq"' in page, "what runs is counted for its ClusterQueue"
        cluster.delete("ClusterQueue", "cq")
        await cluster.run(10)
        page = render("", cluster.process.queueing.metrics)[0].decode()
        assert '"cq"' not in page and 'cluster_queue="kept"' in page and 'name="kept"' in page
