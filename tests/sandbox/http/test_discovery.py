from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.api_world import World, definition

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
def world() -> World:
    return World()


def group(document: Any, name: str) -> Any:
    return next(item for item in document["items"] if item["metadata"].get("name", "") == name)


def test_groups_name_their_versions_and_the_preferred_one(world: World) -> None:
    groups = {found["name"]: found for found in world.ok("GET", "/apis")["groups"]}
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    versions = [version["version"] for version in groups["kueue.x-k8s.io"]["versions"]]
    assert versions == ["v1beta2", "v1beta1"]
    assert world.ok("GET", "/apis/apps")["name"] == "apps"
    assert world.ok("GET", "/api")["versions"] == ["v1"]
    assert world.refused("GET", "/apis/nope")["code"] == 404


def test_resources_name_their_verbs_and_subresources(world: World) -> None:
    found = {entry["name"]: entry for entry in world.ok("GET", "/api/v1")["resources"]}
    assert found["pods"]["shortNames"] == ["po"] and found["pods"]["namespaced"]
    assert set(found["pods"]["verbs"]) >= {"get", "list", "watch", "create", "delete", "patch", "update"}
    assert found["pods/eviction"]["group"] == "policy" and found["pods/eviction"]["kind"] == "Eviction"
    assert found["nodes/status"]["kind"] == "Node" and not found["nodes"]["namespaced"]
    assert world.refused("GET", "/api/v2")["code"] == 404


def test_aggregated_discovery_says_the_same_in_one_document(world: World) -> None:
    answer = world.send("GET", "/apis", accept=AGGREGATED)
    assert answer.content_type == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    apps = group(world.ok("GET", "/apis", accept=AGGREGATED), "apps")["versions"][0]
    classic = world.ok("GET", "/apis/apps/v1")["resources"]
    flat = {entry["resource"] for entry in apps["resources"]}
    flat |= {f"{e['resource']}/{s['subresource']}" for e in apps["resources"] for s in e.get("subresources", ())}
    assert flat == {entry["name"] for entry in classic}


def test_the_legacy_group_has_a_document_of_its_own(world: World) -> None:
    [core] = world.ok("GET", "/api", accept=AGGREGATED)["items"]
    pods = next(entry for entry in core["versions"][0]["resources"] if entry["resource"] == "pods")
    assert pods["responseKind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert pods["scope"] == "Namespaced"


def test_a_definition_is_discovered_and_forgotten(world: World) -> None:
    world.ok("POST", CRDS, definition())
    widget = group(world.ok("GET", "/apis", accept=AGGREGATED), "example.com")["versions"][0]["resources"][0]
    assert (widget["resource"], widget["shortNames"]) == ("widgets", ["wi"])
    world.ok("DELETE", f"{CRDS}/widgets.example.com")
    assert world.refused("GET", "/apis/example.com/v1")["code"] == 404


def test_the_version_is_one_that_clients_can_read(world: World) -> None:
    version = world.ok("GET", "/version")
    assert (version["major"], version["minor"]) == ("1", "37")
    assert "/apis/apps/v1" in world.ok("GET", "/")["paths"]
