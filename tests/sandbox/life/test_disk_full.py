"""Kubelets and controllers on a disk that fails: they forget what was lost, rest, and go on by themselves."""

from __future__ import annotations

import asyncio
import random

import pytest

from pilotage.sandbox.storage.store import JournalError, Store
from tests.sandbox.failing_disk import MemoryJournal
from tests.sandbox.living_cluster import LivingCluster, deployment, job, pod


class Unlucky(LivingCluster):
    """A cluster whose disk fails when it is told to, with all that was not committed."""

    def __init__(self) -> None:
        self.journal = MemoryJournal()
        super().__init__(nodes=2, store=Store(history=10_000, journal=self.journal))
        self.journal.commit()

    def lose(self) -> None:
        self.journal.fail()
        self.store.take_back_lost()
        self.store.check()
        self.life.check()

    def repair(self) -> None:
        self.journal.is_writable = True


@pytest.fixture
def cluster() -> Unlucky:
    return Unlucky()


async def test_a_deployment_that_was_lost_leaves_no_pods_and_no_work(cluster: Unlucky) -> None:
    cluster.create(deployment("web", replicas=3))
    await cluster.run(5)
    assert len(cluster.pods(phase="Running")) == 3
    cluster.lose()
    assert not cluster.names("Deployment") + cluster.names("ReplicaSet") + cluster.names("Pod")
    cluster.repair()
    await cluster.settle()
    assert cluster.pods() == []
    assert cluster.life.kubelet.pods_in_care == 0
    assert not cluster.journal.refused


@pytest.mark.parametrize("annotations", [{}, {"never-ready": "true"}, {"ready-after": "30s"}])
@pytest.mark.parametrize("committed_after", [0, 0.5, 3])
async def test_pods_are_started_again_whatever_of_their_start_was_lost(
    cluster: Unlucky, annotations: dict[str, str], committed_after: float
) -> None:
    cluster.create(pod("p", annotations=annotations))
    if committed_after:
        await cluster.run(committed_after)
    cluster.journal.commit()
    await cluster.run(5)
    assert cluster.get("Pod", "p")["status"]["phase"] == "Running"
    cluster.lose()
    cluster.repair()
    await cluster.run(60)
    found = cluster.get("Pod", "p")
    assert found["status"]["phase"] == "Running" and found["spec"]["nodeName"]


async def test_a_deletion_that_was_lost_leaves_the_pod_running(cluster: Unlucky) -> None:
    cluster.create(pod("p"))
    await cluster.run(5)
    cluster.journal.commit()
    cluster.delete("Pod", "p")
    await cluster.run(60)
    assert cluster.find("Pod", "p") is None
    cluster.lose()
    cluster.repair()
    await cluster.settle()
    found = cluster.get("Pod", "p")
    assert found["status"]["phase"] == "Running" and "deletionTimestamp" not in found["metadata"]


async def test_an_owner_that_was_deleted_in_vain_keeps_its_pods(cluster: Unlucky) -> None:
    cluster.create(deployment("web", replicas=3))
    await cluster.run(5)
    cluster.journal.commit()
    before = {found["metadata"]["uid"] for found in cluster.pods()}
    cluster.delete("Deployment", "web")
    await cluster.run(60)
    assert cluster.pods() == []
    cluster.lose()
    cluster.repair()
    await cluster.settle()
    assert {found["metadata"]["uid"] for found in cluster.pods(phase="Running")} == before


async def test_a_job_comes_to_its_end_however_often_the_disk_fails(cluster: Unlucky) -> None:
    rng = random.Random(5)
    cluster.create(job("batch", completions=6, parallelism=2))
    cluster.create(deployment("web", replicas=4))
    cluster.journal.commit()
    for _ in range(30):
        await cluster.run(rng.uniform(0.1, 6))
        if rng.random() < 0.7:
            cluster.journal.commit()
        cluster.lose()
        await cluster.run(rng.uniform(0.1, 3))
        cluster.repair()
    await cluster.settle()
    assert cluster.status("Job", "batch")["succeeded"] == 6
    assert len(cluster.pods(phase="Running", app="web")) == 4
    cluster.store.check()


async def test_no_one_works_while_nothing_can_be_written_and_all_go_on_when_it_can(cluster: Unlucky) -> None:
    cluster.create(deployment("web", replicas=20))
    cluster.journal.commit()
    cluster.lose()
    living = asyncio.ensure_future(cluster.life.run())
    await cluster.clock.advance(1)
    refused = cluster.journal.refused
    for _ in range(600):
        await cluster.clock.advance(1)
    assert cluster.journal.refused == refused, "no write is tried"
    with pytest.raises(JournalError):
        cluster.create(pod("p"))
    cluster.repair()
    for _ in range(10):
        await cluster.clock.advance(1)
    assert len(cluster.pods(phase="Running")) == 20
    living.cancel()
