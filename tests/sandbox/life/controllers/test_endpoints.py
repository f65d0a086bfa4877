"""Services and the pods behind them, in Endpoints and EndpointSlices."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilotage.sandbox.life.controllers.endpoint_slices import MOST_PER_SLICE, PortGroup, plan_slices
from tests.sandbox.living_cluster import LivingCluster, deployment, template

Object = dict[str, Any]
HTTP = {"name": "http", "port": 80, "targetPort": 8080}


def service(name: str, ports: list[Object] | None = None, **spec: Any) -> Object:
    spec = {"selector": {"app": name}, "ports": ports or [HTTP], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def endpoint(number: int) -> Object:
    return {"addresses": [f"10.0.{number >> 8}.{number & 255}"], "targetRef": {"uid": f"u{number}"}}


def numbers(slices: list[Object]) -> list[int]:
    return sorted(int(one["targetRef"]["uid"][1:]) for obj in slices for one in obj["endpoints"])


@given(st.sets(st.integers(0, 400)), st.sets(st.integers(0, 400)))
def test_slices_hold_what_is_wanted_and_as_few_as_needed_are_written(first: set[int], then: set[int]) -> None:
    ports = [{"name": "http", "port": 80}]
    made = plan_slices([], [PortGroup(ports, [endpoint(n) for n in sorted(first)])]).create
    existing = [{"number": i, "ports": list(group.ports), "endpoints": list(group.endpoints)}
                for i, group in enumerate(made)]  # fmt: skip
    changes = plan_slices(existing, [PortGroup(ports, [endpoint(n) for n in sorted(then)])])
    touched = {obj["number"] for obj in (*changes.update, *changes.delete)}
    created = [{"endpoints": list(group.endpoints)} for group in changes.create]
    after = [obj for obj in existing if obj["number"] not in touched] + changes.update + created
    assert numbers(after) == sorted(then)
    assert after and all(len(obj["endpoints"]) <= MOST_PER_SLICE for obj in after)
    if first == then:
        assert not (changes.update or changes.delete or changes.create)


async def test_ready_pods_are_endpoints_of_their_service() -> None:
    cluster = LivingCluster()
    cluster.create(service("web"))
    await cluster.settle()
    (empty,) = cluster.all("EndpointSlice")
    assert not empty.get("endpoints") and "subsets" not in cluster.get("Endpoints", "web")
    cluster.create(deployment("web", 2, annotations={"ready-after": "10s"}))
    await cluster.run(5)
    (subset,) = cluster.get("Endpoints", "web")["subsets"]
    assert len(subset["notReadyAddresses"]) == 2 and "addresses" not in subset
    await cluster.settle()
    (found,) = cluster.all("EndpointSlice")
    assert [one["conditions"]["ready"] for one in found["endpoints"]] == [True, True]
    assert {one["targetRef"]["name"] for one in found["endpoints"]} == set(cluster.names("Pod"))
    assert found["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    (subset,) = cluster.get("Endpoints", "web")["subsets"]
    assert {one["ip"] for one in subset["addresses"]} == {p["status"]["podIP"] for p in cluster.pods()}


async def test_pod_that_is_being_deleted_terminates_and_then_is_none() -> None:
    cluster = LivingCluster(binds=True)
    cluster.create(service("web"))
    cluster.create(deployment("web", 1))
    await cluster.settle()
    cluster.edit("Deployment", "web", replicas=0)
    await cluster.run(0.3)
    (one,) = cluster.all("EndpointSlice")[0]["endpoints"]
    assert one["conditions"] == {"ready": False, "serving": True, "terminating": True}
    await cluster.settle()
    assert not cluster.all("EndpointSlice")[0].get("endpoints")


async def test_named_ports_are_those_of_each_pod() -> None:
    cluster = LivingCluster()
    cluster.create(service("web", [{"port": 80, "targetPort": "http"}]))
    for name, number in (("a", 8001), ("b", 8002)):
        pods = template("web")
        pods["spec"]["containers"][0]["ports"] = [{"name": "http", "containerPort": number}]
        pods["metadata"]["labels"]["version"] = name
        selector = {"matchLabels": {"app": "web", "version": name}}
        cluster.create(deployment(f"web-{name}", 1, selector=selector, template=pods))
    await cluster.settle()
    assert sorted(obj["ports"][0]["port"] for obj in cluster.all("EndpointSlice")) == [8001, 8002]
    assert len(cluster.get("Endpoints", "web")["subsets"]) == 2


async def test_everything_goes_with_the_service() -> None:
    cluster = LivingCluster()
    cluster.create(service("web"))
    await cluster.settle()
    cluster.delete("EndpointSlice", cluster.names("EndpointSlice")[0])
    await cluster.settle()
    assert len(cluster.names("EndpointSlice")) == 1, "a slice that someone removed comes back"
    cluster.delete("Service", "web")
    await cluster.settle()
    assert cluster.names("EndpointSlice") == cluster.names("Endpoints") == []


async def test_endpoints_of_ones_own_are_mirrored() -> None:
    cluster = LivingCluster()
    own = service("outside")
    del own["spec"]["selector"]
    cluster.create(own)
    subsets = [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]
    cluster.create({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "outside"}, "subsets": subsets})
    await cluster.settle()
    (found,) = cluster.all("EndpointSlice")
    assert [one["addresses"] for one in found["endpoints"]] == [["10.1.2.3"]]
    cluster.delete("Endpoints", "outside")
    await cluster.settle()
    assert cluster.names("EndpointSlice") == []
