from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.api_world import MERGE, STRATEGIC, World, definition
from tests.sandbox.operations.test_deletion import copied

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


@pytest.fixture
def world() -> World:
    return World()


def with_schema(**spec: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", **spec}}}
    return definition(schema={"openAPIV3Schema": schema})


def test_a_definition_is_established_and_served_at_once(world: World) -> None:
    created = world.ok("POST", CRDS, definition())
    conditions = {c["type"]: c["status"] for c in created["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert created["status"]["acceptedNames"]["listKind"] == "WidgetList"
    world.ok("POST", WIDGETS, {"metadata": {"name": "w"}, "anything": {"goes": [1]}})
    listed = world.ok("GET", "/apis/example.com/v1/widgets")
    assert (listed["kind"], listed["apiVersion"]) == ("WidgetList", "example.com/v1")
    assert listed["items"][0]["anything"] == {"goes": [1]}


def test_unknown_kinds_are_404(world: World) -> None:
    assert world.refused("GET", WIDGETS)["message"] == "the server could not find the requested resource"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"group": ""}, "spec.group"),
        ({"scope": "Galactic"}, "spec.scope"),
        ({"versions": []}, "spec.versions"),
        ({"names": {"plural": "widgets"}}, "spec.names.kind"),
        ({"names": {"plural": "gadgets", "kind": "Gadget"}}, "metadata.name"),
        ({"group": "apps"}, "spec.group"),
    ],
)
def test_a_definition_that_cannot_be_served_is_422(world: World, change: dict[str, Any], path: str) -> None:
    proposed = definition()
    proposed["spec"] |= change
    status = world.refused("POST", CRDS, proposed)
    assert status["code"] == 422
    assert path in [cause["field"] for cause in status["details"]["causes"]]


@pytest.mark.parametrize(
    "versions",
    [
        [{"name": "v1", "served": True, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        [{"name": "v1", "served": True, "storage": True}],
    ],
    ids=["none is stored", "no schema"],
)
def test_versions_must_be_complete(world: World, versions: list[Any]) -> None:
    proposed = definition()
    proposed["spec"]["versions"] = versions
    assert world.refused("POST", CRDS, proposed)["code"] == 422


@pytest.mark.parametrize("spec", ["x", [], {"versions": ["v1"]}, {"names": "x"}])
def test_a_definition_of_the_wrong_shape_is_rejected(world: World, spec: Any) -> None:
    assert world.refused("POST", CRDS, {**definition(), "spec": spec})["code"] in (400, 422)


def test_the_schema_defaults_and_validates(world: World) -> None:
    size = {"type": "integer", "minimum": 1, "default": 3}
    world.ok("POST", CRDS, with_schema(properties={"size": size}, default={}))
    assert world.ok("POST", WIDGETS, {"metadata": {"name": "w"}})["spec"] == {"size": 3}
    status = world.refused("POST", WIDGETS, {"metadata": {"name": "x"}, "spec": {"size": 0}})
    assert status["code"] == 422
    assert 'Widget.example.com "x" is invalid: spec.size: Invalid value: 0' in status["message"]
    patch = {"spec": {"size": "big"}}
    assert world.refused("PATCH", f"{WIDGETS}/w", patch, content_type=MERGE)["code"] == 422


def test_status_is_its_own_only_where_the_definition_says_so(world: World) -> None:
    world.ok("POST", CRDS, definition(subresources={"status": {}}))
    world.ok("POST", CRDS, definition("Gadget"))
    body = {"metadata": {"name": "x"}, "status": {"seen": True}}
    assert "status" not in world.ok("POST", WIDGETS, body)
    gadgets = "/apis/example.com/v1/namespaces/default/gadgets"
    assert world.ok("POST", gadgets, body)["status"] == {"seen": True}
    patched = world.ok("PATCH", f"{gadgets}/x", {"status": {"seen": False}}, content_type=MERGE)
    assert patched["metadata"]["generation"] == 2
    assert world.refused("GET", f"{gadgets}/x/status")["code"] == 404


def test_custom_objects_take_no_strategic_merge(world: World) -> None:
    world.ok("POST", CRDS, definition())
    world.ok("POST", WIDGETS, {"metadata": {"name": "w"}})
    assert world.refused("PATCH", f"{WIDGETS}/w", {"a": 1}, content_type=STRATEGIC)["code"] == 415
    assert world.ok("PATCH", f"{WIDGETS}/w", {"a": 1}, content_type=MERGE)["a"] == 1


def two_versions(stored: str) -> dict[str, Any]:
    proposed = definition()
    first = proposed["spec"]["versions"][0]
    proposed["spec"]["versions"] = [{**first, "name": name, "storage": name == stored} for name in ("v1", "v1beta1")]
    return proposed


def test_every_served_version_shows_the_same_objects(world: World) -> None:
    world.ok("POST", CRDS, two_versions("v1"))
    older = "/apis/example.com/v1beta1/namespaces/default/widgets"
    world.ok("POST", older, {"apiVersion": "example.com/v1beta1", "metadata": {"name": "w"}, "spec": {"a": 1}})
    assert world.ok("GET", f"{WIDGETS}/w")["apiVersion"] == "example.com/v1"
    shown = world.ok("GET", f"{older}/w")
    assert (shown["apiVersion"], shown["spec"]) == ("example.com/v1beta1", {"a": 1})


def test_a_new_storage_version_rewrites_what_is_stored(world: World) -> None:
    world.ok("POST", CRDS, two_versions("v1beta1"))
    world.ok("POST", WIDGETS, {"metadata": {"name": "w"}})
    changed = world.ok("GET", f"{CRDS}/widgets.example.com")
    changed["spec"]["versions"] = two_versions("v1")["spec"]["versions"]
    updated = world.ok("PUT", f"{CRDS}/widgets.example.com", changed)
    assert updated["status"]["storedVersions"] == ["v1beta1", "v1"]
    assert world.ok("GET", f"{WIDGETS}/w")["apiVersion"] == "example.com/v1"


def test_a_version_that_is_not_served_is_404(world: World) -> None:
    proposed = two_versions("v1")
    proposed["spec"]["versions"][1]["served"] = False
    world.ok("POST", CRDS, proposed)
    assert world.refused("GET", "/apis/example.com/v1beta1/widgets")["code"] == 404


def test_definitions_are_served_again_after_a_restart(world: World) -> None:
    world.ok("POST", CRDS, definition())
    world.ok("POST", WIDGETS, {"metadata": {"name": "w"}})
    again = World(store=copied(world.store))
    assert again.ok("GET", f"{WIDGETS}/w")["metadata"]["name"] == "w"


def test_selectable_fields_of_a_definition_can_be_selected(world: World) -> None:
    world.ok("POST", CRDS, definition(selectableFields=[{"jsonPath": ".spec.color"}]))
    for name, color in (("a", "red"), ("b", "blue")):
        world.ok("POST", WIDGETS, {"metadata": {"name": name}, "spec": {"color": color}})
    found = world.ok("GET", WIDGETS, query={"fieldSelector": "spec.color=blue"})
    assert [item["metadata"]["name"] for item in found["items"]] == ["b"]


def test_a_namespaced_kind_needs_its_namespace(world: World) -> None:
    world.ok("POST", CRDS, definition())
    assert world.refused("POST", "/apis/example.com/v1/widgets", {"metadata": {"name": "w"}})["code"] == 404


def test_objects_that_are_older_than_a_default_have_it_when_they_are_read(world: World) -> None:
    world.ok("POST", CRDS, with_schema(properties={"size": {"type": "integer"}}))
    made = world.ok("POST", WIDGETS, {"metadata": {"name": "w"}, "spec": {}})
    assert made["spec"] == {}
    size = {"properties": {"size": {"type": "integer", "default": 3}}}
    changed = with_schema(**size)["spec"]
    world.ok("PATCH", f"{CRDS}/widgets.example.com", {"spec": changed}, content_type=MERGE)
    read = world.ok("GET", f"{WIDGETS}/w")
    assert read["spec"] == {"size": 3}
    assert read["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"], "nothing was written"
    assert world.ok("GET", WIDGETS)["items"][0]["spec"] == {"size": 3}
    assert world.ok("PATCH", f"{WIDGETS}/w", {"spec": {"size": 5}}, content_type=MERGE)["spec"] == {"size": 5}
