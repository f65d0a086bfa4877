"""What one object makes the engine raise stays with that object: the engine is made anew without it."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.jobs.admission import AdmissionCycle
from pilotage.jobs.evictions import Evictions
from pilotage.jobs.quota_tree import MOST_LEVELS
from pilotage.jobs.record import WorkloadRecord
from pilotage.jobs.workloads import Workloads
from tests.jobs.live.world import KUEUE, QueueingWorld, cluster_queue, flavor, job, living, local_queue, queue


def skipped(cluster: QueueingWorld) -> list[tuple[str, str, str]]:
    return [(one.kind, one.key, one.stage) for one in cluster.process.scheduler.metrics.skipped]


def raising(method: Any, name: str) -> Any:
    """The method, which ends in the middle for the workload of this job."""

    def wrapped(self: Any, record: Any, *rest: Any, **named: Any) -> Any:
        found = method(self, record, *rest, **named)
        seen = (record if isinstance(record, WorkloadRecord) else record.record).seen
        if any(owner.name == name for owner in seen.metadata.owner_references):
            raise RuntimeError("a bug of ours")
        return found

    return wrapped


@pytest.mark.parametrize(
    ("owner", "method"), [(AdmissionCycle, "_nominate"), (AdmissionCycle, "_serve"), (Workloads, "reserve")]
)
async def test_a_workload_for_which_the_cycle_fails_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, owner: type, method: str
) -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=4), job("early"))
        await cluster.run(5)
        with monkeypatch.context() as patched:
            patched.setattr(owner, method, raising(getattr(owner, method), "odd"))
            cluster.create(job("odd"), job("late"))
            await cluster.run(10)
            assert not cluster.is_suspended("early") and not cluster.is_suspended("late")
            assert cluster.is_suspended("odd")
            [(kind, key, stage)] = skipped(cluster)
            assert (kind, stage) == ("Workload", "queueing") and key.startswith("default/job-odd")
            assert "Skipped" in cluster.events(key.partition("/")[2])
        name = key.partition("/")[2]
        cluster.change("Workload", name, {"metadata": {"annotations": {"changed": "yes"}}})
        await cluster.run(10)
        assert not cluster.is_suspended("odd") and not skipped(cluster), "it is tried again when it changes"


async def test_a_timer_that_fails_for_one_workload_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"waitForPodsReady": {"timeout": "5s"}}
    async with living(configuration=settings) as cluster:
        monkeypatch.setattr(Evictions, "expire", raising(Evictions.expire, "odd"))
        cluster.create(*queue(cpu=2), job("odd", is_ready=False), job("slow", is_ready=False))
        await cluster.run(20)
        assert [kind for kind, _, _ in skipped(cluster)] == ["Workload"]
        cluster.create(job("late"))
        await cluster.run(60)
        assert cluster.condition("slow", "Evicted").startswith("True/") or not cluster.is_suspended("late")


async def test_an_engine_that_fails_without_a_cause_is_tried_again_later_and_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with living() as cluster:
        with monkeypatch.context() as patched:

            def fail(self: AdmissionCycle) -> bool:
                raise RuntimeError("always")

            patched.setattr(AdmissionCycle, "run", fail)
            cluster.create(*queue(), job("train"))
            await cluster.run(60)
            failed = cluster.process.scheduler.metrics.task_errors_total.value("workload queueing")
            assert 3 <= failed <= 12, "neither once nor in a circle"
        await cluster.run(90)
        assert not cluster.is_suspended("train")


async def test_a_chain_of_thousands_of_cohorts_admits_nothing_and_stops_no_one() -> None:
    async with living() as cluster:
        for number in range(3000):
            spec = {"parentName": f"c-{number + 1}"}
            cluster.create({"apiVersion": KUEUE, "kind": "Cohort", "metadata": {"name": f"c-{number}"}, "spec": spec})
        cluster.create(flavor("std"), cluster_queue("deep", cohortName="c-0"), local_queue("deep", "deep"))
        top = 3000 - MOST_LEVELS + 1
        cluster.create(cluster_queue("high", cohortName=f"c-{top + 1}"), local_queue("high", "high"))
        cluster.create(*queue()[1:], job("deep", queue="deep"), job("high", queue="high"), job("canary"))
        await cluster.run(10)
        [condition] = cluster.get("ClusterQueue", "deep")["status"]["conditions"]
        assert condition["reason"] == "CohortTooDeep" and str(MOST_LEVELS) in condition["message"]
        assert [cluster.is_suspended(name) for name in ("deep", "high", "canary")] == [True, False, False]
        assert not skipped(cluster)


@pytest.mark.parametrize("quantity", ["9" * 5000, "1e999", 10**30, "9" * 400])
async def test_a_workload_that_asks_for_more_than_there_can_be_is_told_so(quantity: Any) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": quantity}}}
    async with living() as cluster:
        cluster.create(*queue())
        pod_sets = [{"name": "main", "count": 2**31 - 1, "template": {"spec": {"containers": [container]}}}]
        spec = {"queueName": "lq", "podSets": pod_sets}
        metadata = {"name": "huge", "namespace": "default", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
        store_past_validation(cluster, {"kind": "Workload", "apiVersion": KUEUE, "metadata": metadata, "spec": spec})
        cluster.create(job("canary"))
        await cluster.run(5)
        assert cluster.condition("huge", "QuotaReserved") in ("False/ExceedsMaxQuota", "False/Misconfigured")
        assert not cluster.is_suspended("canary") and not skipped(cluster)


async def test_weights_and_quotas_beyond_all_bounds_are_the_largest_there_are() -> None:
    async with living(configuration={"fairSharing": {}}) as cluster:
        huge = cluster_queue("huge", flavors={"std": "8Ei"}, cohortName="all", fairSharing={"weight": "1e999"})
        small = cluster_queue("small", flavors={"std": 1}, cohortName="all", fairSharing={"weight": "2n"})
        cluster.create(flavor("std"), huge, small, local_queue("huge", "huge"), local_queue("small", "small"))
        cluster.create(job("borrower", cpu=3, queue="small"), job("owner", queue="huge"))
        await cluster.run(10)
        assert not cluster.is_suspended("borrower") and not cluster.is_suspended("owner")
        share = cluster.get("ClusterQueue", "small")["status"]["fairSharing"]["weightedShare"]
        assert 0 <= share <= 2**63 - 1
        assert not skipped(cluster)


def store_past_validation(cluster: QueueingWorld, obj: dict[str, Any]) -> None:
    from pilotage.sandbox.storage.store import Key

    key = Key("workloads.kueue.x-k8s.io", "default", obj["metadata"]["name"])
    cluster.cluster.api.store.create(key, obj)
