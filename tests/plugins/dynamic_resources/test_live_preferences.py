"""Alternatives, extended resources and shared claims, with the whole scheduler and a sandbox."""

from __future__ import annotations

from typing import Any

from tests.plugins.dynamic_resources.live_cluster import CLAIMS, Json, live

_EXTENDED = "example.com/gpu"


def _of(model: str) -> Json:
    expression = f'device.attributes["d.example.com"].model == "{model}"'
    return {"name": model, "deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}]}


def _device(name: str, model: str) -> Json:
    return {"name": name, "attributes": {"model": {"string": model}}}


_FAST_OR_SLOW: Json = {"name": "r0", "firstAvailable": [_of("fast"), _of("slow")]}


async def test_the_node_with_the_preferred_alternative_is_chosen() -> None:
    async with live() as cluster:
        cluster.publish("node-00001", _device("s", "slow"))
        cluster.publish("node-00002", _device("f", "fast"))
        cluster.claim("mine", _FAST_OR_SLOW)
        cluster.pod("p", [{"name": "d", "resourceClaimName": "mine"}])
        await cluster.after(5)
        assert (cluster.node_of("p"), cluster.allocated()) == ("node-00002", {"mine": ["f"]})
        (result,) = cluster.api.get(CLAIMS, "default", "mine")["status"]["allocation"]["devices"]["results"]
        assert result["request"] == "r0/fast"


async def test_the_next_alternative_serves_when_the_first_is_gone() -> None:
    async with live() as cluster:
        cluster.publish("node-00001", _device("s", "slow"))
        cluster.publish("node-00002", _device("f", "fast"))
        for name in ("one", "two", "three"):
            cluster.claim(name, _FAST_OR_SLOW)
            cluster.pod(f"p-{name}", [{"name": "d", "resourceClaimName": name}])
            await cluster.after(5)
        placed = [cluster.node_of(f"p-{name}") for name in ("one", "two", "three")]
        assert placed == ["node-00002", "node-00001", ""]
        assert cluster.allocated() == {"one": ["f"], "two": ["s"]}


async def test_an_extended_resource_that_a_class_names_is_served_and_given_back() -> None:
    async with live() as cluster:
        spec: dict[str, Any] = {"extendedResourceName": _EXTENDED}
        cluster.api.create("deviceclasses.resource.k8s.io", "", {"metadata": {"name": "named"}, "spec": spec})
        cluster.publish("node-00001", "a")
        cluster.pod("first", [], **{_EXTENDED: "1"})
        await cluster.after(5)
        cluster.pod("second", [], **{_EXTENDED: "1"})
        await cluster.after(5)
        assert (cluster.node_of("first"), cluster.node_of("second")) == ("node-00001", "")
        cluster.api.delete("pods", "default", "first", {"gracePeriodSeconds": 0})
        await cluster.after(40)
        assert cluster.node_of("second") == "node-00001"
        status = cluster.api.get("pods", "default", "second")["status"]["extendedResourceClaimStatus"]
        assert cluster.allocated() == {status["resourceClaimName"]: ["a"]}
        created = cluster.scheduler.metrics.dynamic_resource_allocation_resourceclaim_creates_total
        assert created.value("success", "false", "", "Pod") == 2


async def test_pods_that_share_a_claim_go_to_the_node_of_its_devices() -> None:
    async with live() as cluster:
        cluster.publish("node-00002", "only")
        cluster.claim("ours")
        for number in range(5):
            cluster.pod(f"p{number}", [{"name": "d", "resourceClaimName": "ours"}])
        await cluster.after(20)
        assert {cluster.node_of(f"p{number}") for number in range(5)} == {"node-00002"}
        claim = cluster.api.get(CLAIMS, "default", "ours")
        assert len(claim["status"]["reservedFor"]) == 5
        assert cluster.allocated() == {"ours": ["only"]}
