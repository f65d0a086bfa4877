"""Writes to metadata or status alone: they leave the rest of the object as it is written, and mean what others mean."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.storage.records import Key
from tests.sandbox.api_world import MERGE, STRATEGIC, World, deployment, pod

JSON_PATCH = "application/json-patch+json"


@pytest.fixture
def world() -> World:
    made = World()
    manifest = pod()
    manifest["madeUp"] = {"kept": [1, None]}
    manifest["spec"]["madeUp"] = "kept"
    made.api.create("pods", "default", manifest)
    return made


def _patch(world: World, change: Any, subresource: str = "", kind: str = MERGE) -> dict[str, Any]:
    return world.api.patch("pods", "default", "p", json.dumps(change).encode(), kind, subresource)


@pytest.mark.parametrize("kind", [MERGE, STRATEGIC])
@pytest.mark.parametrize(
    ("change", "subresource"),
    [
        ({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}, ""),
        ({"metadata": {"finalizers": ["example.com/hold"]}, "kind": "Pod"}, ""),
        ({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}, "status"),
        ({"metadata": {"labels": {"a": "b"}}, "status": {"message": "hello"}}, "status"),
    ],
)
def test_a_patch_changes_what_it_names_and_nothing_else(
    world: World, kind: str, change: dict[str, Any], subresource: str
) -> None:
    before = world.api.get("pods", "default", "p")
    after = _patch(world, change, subresource, kind)
    expected = copy.deepcopy(before)
    expected["metadata"]["resourceVersion"] = str(world.store.revision)
    for part in ("metadata", "status"):
        expected[part] |= change.get(part, {})
    assert after == expected == world.api.get("pods", "default", "p")
    world.store.check()


def test_a_patch_that_changes_nothing_is_no_write(world: World) -> None:
    before = world.store.revision
    _patch(world, {"metadata": {"labels": None}})
    _patch(world, {"status": {"phase": "Pending"}}, "status")
    assert world.store.revision == before


def test_null_in_a_patch_of_metadata_removes(world: World) -> None:
    _patch(world, {"metadata": {"labels": {"a": "b"}}})
    assert "a" not in _patch(world, {"metadata": {"labels": {"a": None}}})["metadata"].get("labels", {})


@pytest.mark.parametrize(
    ("change", "subresource", "code"),
    [
        ({"metadata": {"labels": {"a b": "c"}}}, "", 422),
        ({"metadata": {"annotations": {"a b": "c"}}}, "", 422),
        ({"metadata": {"finalizers": ["a b"]}}, "", 422),
        ({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": ""}]}}, "", 422),
        ({"metadata": {"labels": "a"}}, "", 400),
        ({"metadata": {"name": "q"}}, "", 400),
        ({"metadata": {"uid": "another"}}, "", 409),
        ({"metadata": {"resourceVersion": "1"}}, "", 409),
        ({"kind": "Node"}, "", 400),
        ({"status": {"phase": 1}}, "status", 400),
        ({"status": {"conditions": "none"}}, "status", 400),
        ({"metadata": {"resourceVersion": "1"}, "status": {}}, "status", 409),
        ({"spec": {"containers": 1}, "status": {}}, "status", 400),
    ],
)
def test_a_wrong_patch_is_rejected_and_changes_nothing(
    world: World, change: dict[str, Any], subresource: str, code: int
) -> None:
    before = world.store.revision
    with pytest.raises(ApiError) as rejection:
        _patch(world, change, subresource)
    assert (rejection.value.code, world.store.revision) == (code, before)


def test_metadata_that_a_patch_leaves_alone_is_not_judged_anew(world: World) -> None:
    key = Key("pods", "default", "p")
    record = world.store.get(key)
    assert record is not None
    obj = record.object()
    obj["metadata"]["annotations"] = {"a b": "from a time when this was allowed"}
    world.store.update(key, obj)
    assert _patch(world, {"metadata": {"labels": {"a": "b"}}})["metadata"]["labels"] == {"a": "b"}
    with pytest.raises(ApiError):
        _patch(world, {"metadata": {"annotations": {"c": "d"}}})


def test_a_json_patch_of_the_status_may_test_the_spec(world: World) -> None:
    operations = [
        {"op": "test", "path": "/spec/madeUp", "value": "kept"},
        {"op": "add", "path": "/status/message", "value": "hello"},
    ]
    assert _patch(world, operations, "status", JSON_PATCH)["status"]["message"] == "hello"
    operations[0]["value"] = "lost"
    with pytest.raises(ApiError):
        _patch(world, operations, "status", JSON_PATCH)


def test_the_last_finalizer_of_a_marked_object_may_be_patched_away(world: World) -> None:
    _patch(world, {"metadata": {"finalizers": ["example.com/hold"]}})
    world.api.delete("pods", "default", "p")
    with pytest.raises(ApiError, match="no new finalizers"):
        _patch(world, {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}})
    _patch(world, {"metadata": {"finalizers": None}})
    assert world.api.find("pods", "default", "p") is None


def test_metadata_of_a_namespace_is_still_completed(world: World) -> None:
    patched = world.api.patch("namespaces", "", "default", b'{"metadata":{"labels":null}}', MERGE)
    assert patched["metadata"]["labels"] == {"kubernetes.io/metadata.name": "default"}


def test_a_patch_of_labels_is_no_new_generation(world: World) -> None:
    world.api.create("deployments.apps", "default", deployment())
    name = deployment()["metadata"]["name"]
    patched = world.api.patch("deployments.apps", "default", name, b'{"metadata":{"labels":{"a":"b"}}}', MERGE)
    assert patched["metadata"]["generation"] == 1


def test_an_update_of_metadata_leaves_the_rest_alone(world: World) -> None:
    record = world.store.get(Key("pods", "default", "p"))
    assert record is not None
    obj = record.outline()
    obj["metadata"]["labels"] = {"a": "b"}
    obj["status"] = {"phase": "Lost"}
    world.api.verbs.update_metadata(world.api.registry.of("pods"), record, obj)
    expected = record.object()
    expected["metadata"] |= {"labels": {"a": "b"}, "resourceVersion": str(world.store.revision)}
    assert world.api.get("pods", "default", "p") == expected


def test_an_outline_is_the_object_with_its_spec_as_json(world: World) -> None:
    record = world.store.get(Key("pods", "default", "p"))
    assert record is not None
    whole, outline = record.object(), record.outline()
    assert json.loads(bytes(outline.pop("spec"))) == whole.pop("spec")
    assert outline == whole
