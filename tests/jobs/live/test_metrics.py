"""Kueue's metrics after a little life, as Prometheus would read them."""

from __future__ import annotations

from pilotage.observe.exposition import render
from tests.jobs.live.world import QueueingWorld, job, living, queue

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
