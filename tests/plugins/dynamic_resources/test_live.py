"""Pods with claims get devices: the whole scheduler with a sandbox and its controllers, in virtual time."""

from __future__ import annotations

import pytest

from pilotage.api import Action, Affected, Resource, narrows
from pilotage.assembly import SchedulerOptions
from pilotage.config.feature_gates import FeatureGates
from pilotage.plugins import DynamicResources, VolumeBinding
from tests.plugins.dynamic_resources.live_cluster import CLAIMS, live

_TEMPLATE = {"name": "d", "resourceClaimTemplateName": "t"}


async def test_each_pod_of_a_template_gets_a_device_of_its_own() -> None:
    async with live() as cluster:
        cluster.publish("node-00001", "a", "b")
        for number in range(3):
            cluster.pod(f"p{number}", [{"name": "d", "resourceClaimTemplateName": "t"}])
        await cluster.after(5)
        placed = sorted(cluster.node_of(f"p{number}") for number in range(3))
        assert placed == ["", "node-00001", "node-00001"]
        assert sorted(cluster.allocated().values()) == [["a"], ["b"]]


async def test_pods_that_share_a_generated_claim_all_start_when_the_driver_publishes_its_devices() -> None:
    async with live() as cluster:
        cluster.pod("first", [{"name": "d", "resourceClaimTemplateName": "t"}])
        await cluster.after(5)
        generated = cluster.api.get("pods", "default", "first")["status"]["resourceClaimStatuses"][0]
        for name in ("second", "third"):
            cluster.pod(name, [{"name": "d", "resourceClaimName": generated["resourceClaimName"]}])
        await cluster.after(5)
        assert [cluster.node_of(name) for name in ("first", "second", "third")] == ["", "", ""]
        cluster.publish("node-00002", "only")
        await cluster.after(20)
        assert [cluster.node_of(name) for name in ("first", "second", "third")] == ["node-00002"] * 3
        claim = cluster.api.get(CLAIMS, "default", generated["resourceClaimName"])
        assert sorted(user["name"] for user in claim["status"]["reservedFor"]) == ["first", "second", "third"]
        assert cluster.allocated() == {generated["resourceClaimName"]: ["only"]}


async def test_nobody_is_asked_before_pre_bind_if_places_are_not_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    for plugin in (DynamicResources, VolumeBinding):
        monkeypatch.setattr(plugin, "pre_bind_pre_flight", lambda *_: asked.append("pre-flight"))
    gates = FeatureGates({"NominatedNodeNameForExpectation": False})
    async with live(SchedulerOptions(feature_gates=gates)) as cluster:
        cluster.publish("node-00001", "a")
        cluster.pod("with", [_TEMPLATE])
        cluster.pod("without", [])
        await cluster.after(5)
        assert cluster.node_of("with") == "node-00001" and cluster.node_of("without")
        assert sorted(cluster.allocated().values()) == [["a"]]
        assert asked == []


async def test_a_device_that_comes_free_goes_to_the_pod_that_waits() -> None:
    async with live() as cluster:
        cluster.publish("node-00001", "only")
        cluster.pod("first", [{"name": "d", "resourceClaimTemplateName": "t"}])
        await cluster.after(5)
        cluster.pod("second", [{"name": "d", "resourceClaimTemplateName": "t"}])
        await cluster.after(5)
        assert (cluster.node_of("first"), cluster.node_of("second")) == ("node-00001", "")
        cluster.api.delete("pods", "default", "first", {"gracePeriodSeconds": 0})
        await cluster.after(30)
        assert cluster.node_of("second") == "node-00001"


async def test_an_idle_claim_that_is_in_the_way_is_freed() -> None:
    async with live() as cluster:
        cluster.publish("node-00001", "here")
        cluster.publish("node-00002", "there")
        cluster.claim("mine")
        cluster.pod("first", [{"name": "d", "resourceClaimName": "mine"}])
        await cluster.after(5)
        home = cluster.node_of("first")
        cluster.api.delete("pods", "default", "first", {"gracePeriodSeconds": 0})
        node = cluster.api.get("nodes", "", home)
        cluster.api.update("nodes", "", home, {**node, "spec": {**node.get("spec", {}), "unschedulable": True}})
        await cluster.after(5)
        cluster.pod("second", [{"name": "d", "resourceClaimName": "mine"}])
        await cluster.after(30)
        other = {"node-00001": "node-00002", "node-00002": "node-00001"}[home]
        assert cluster.node_of("second") == other


async def test_an_extended_resource_is_served_by_devices() -> None:
    async with live() as cluster:
        cluster.publish("node-00002", "a", "b")
        cluster.pod("p", [], **{"deviceclass.resource.kubernetes.io/gpu": "2"})
        await cluster.after(10)
        assert cluster.node_of("p") == "node-00002"
        status = cluster.api.get("pods", "default", "p")["status"]["extendedResourceClaimStatus"]
        assert cluster.allocated() == {status["resourceClaimName"]: ["a", "b"]}
        mapping = {"containerName": "c", "resourceName": "deviceclass.resource.kubernetes.io/gpu"}
        assert status["requestMappings"] == [{**mapping, "requestName": "container-0-request-0"}]


async def test_pods_that_a_lying_narrowing_forgets_are_rescued_by_the_flush_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """KEP-6132: the metric is the alarm, and no pod stays pending for ever."""

    @narrows(Resource.RESOURCE_CLAIM, Action.ADD | Action.UPDATE | Action.DELETE)
    def nobody(plugin: DynamicResources, old: object, new: object) -> Affected:
        return Affected.pods(())

    monkeypatch.setattr(DynamicResources, "pods_with_the_claim", nobody)
    async with live() as cluster:
        cluster.publish("node-00001", "only")
        cluster.pod("first", [_TEMPLATE])
        await cluster.after(5)
        cluster.pod("second", [_TEMPLATE])
        await cluster.after(5)
        cluster.api.delete("pods", "default", "first", {"gracePeriodSeconds": 0})
        await cluster.after(240)
        assert cluster.node_of("second") == "", "nobody says that the device is free"
        after_flush = cluster.scheduler.metrics.pod_scheduled_after_flush_total
        assert after_flush.value() == 0
        await cluster.after(120)
        assert cluster.node_of("second") == "node-00001"
        assert after_flush.value() == 1


async def test_an_honest_narrowing_needs_no_flush() -> None:
    async with live() as cluster:
        cluster.publish("node-00001", "a", "b", "c")
        for number in range(3):
            cluster.pod(f"p{number}", [_TEMPLATE])
        await cluster.after(10)
        metrics = cluster.scheduler.metrics
        assert metrics.pod_scheduled_after_flush_total.value() == 0
        assert metrics.pre_queueing_hint_evaluations_total.value("DynamicResources", "narrowed") > 0
