from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.http.protobuf import fields_in
from pilotage.sandbox.kinds.api_descriptions import FIELDS, KINDS
from pilotage.sandbox.kinds.api_schemas import api_schemas
from tests.sandbox.api_world import World, definition

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
def world() -> World:
    return World()


def schema_of(document: Any, kind: str) -> Any:
    found = [
        schema
        for schema in document["components"]["schemas"].values()
        if any(gvk["kind"] == kind for gvk in schema.get("x-kubernetes-group-version-kind", ()))
    ]
    assert len(found) == 1
    return found[0]


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*(references(below) for below in value.values()))
    return set().union(*(references(below) for below in value)) if isinstance(value, list) else set()


def test_the_index_leads_to_a_document_per_version(world: World) -> None:
    paths = world.ok("GET", "/openapi/v3")["paths"]
    for path in ("api/v1", "apis/apps/v1", "apis/kueue.x-k8s.io/v1beta1"):
        url = paths[path]["serverRelativeURL"].partition("?")[0]
        assert world.ok("GET", url)["openapi"] == "3.0.0"
    assert world.refused("GET", "/openapi/v3/apis/nope/v1")["code"] == 404


@pytest.mark.parametrize("path", ["api/v1", "apis/apps/v1", "apis/resource.k8s.io/v1", "apis/kueue.x-k8s.io/v1beta2"])
def test_every_reference_leads_to_a_schema(world: World, path: str) -> None:
    document = world.ok("GET", f"/openapi/v3/{path}")
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert references(document) <= known


def test_a_pod_is_described_to_its_leaves(world: World) -> None:
    document = world.ok("GET", "/openapi/v3/api/v1")
    pod = schema_of(document, "Pod")
    assert set(pod["properties"]) == {"apiVersion", "kind", "metadata", "spec", "status"}
    spec = document["components"]["schemas"][pod["properties"]["spec"]["allOf"][0]["$ref"].rpartition("/")[2]]
    assert spec["required"] == ["containers"]
    assert spec["properties"]["nodeName"]["type"] == "string"
    assert "bound to" in spec["properties"]["nodeName"]["description"]


def test_every_description_is_about_something_that_exists() -> None:
    assert set(KINDS) <= set(api_schemas())
    for name, fields in FIELDS.items():
        assert set(fields) <= set(api_schemas()[name]), name


def test_writes_say_that_they_validate_fields(world: World) -> None:
    """What kubectl looks for before it leaves strict validation to the server."""
    paths = world.ok("GET", "/openapi/v3/api/v1")["paths"]
    patch = paths["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Pod"}


def test_a_custom_kind_is_described_by_its_definition(world: World) -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    world.ok("POST", CRDS, definition(schema={"openAPIV3Schema": schema}))
    widget = schema_of(world.ok("GET", "/openapi/v3/apis/example.com/v1"), "Widget")
    assert widget["properties"]["spec"]["properties"] == {"size": {"type": "integer"}}
    assert "metadata" in widget["properties"]


def test_the_index_changes_with_the_definitions(world: World) -> None:
    before = world.ok("GET", "/openapi/v3")["paths"]
    world.ok("POST", CRDS, definition())
    added = world.ok("GET", "/openapi/v3")["paths"]
    assert set(added) - set(before) == {"apis/example.com/v1"}


def test_version_2_has_the_same_definitions_in_its_own_form(world: World) -> None:
    document = world.ok("GET", "/openapi/v2")
    assert document["swagger"] == "2.0"
    known = {f"#/definitions/{name}" for name in document["definitions"]}
    assert references(document) <= known


def test_version_2_in_protobuf_is_a_document_without_definitions(world: World) -> None:
    accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    answer = world.send("GET", "/openapi/v2", accept=accept)
    assert answer.content_type.endswith("protobuf")
    fields = dict(fields_in(answer.body))
    assert (fields[1], fields[9]) == (b"2.0", b"")
    assert dict(fields_in(fields[2])) == {1: b"Pilotage sandbox", 2: b"v1"}
