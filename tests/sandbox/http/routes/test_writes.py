"""create, update, patch and delete over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sandbox.api_world import MERGE, PODS, STRATEGIC, World, config_map, deployment, labelled, pod

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def world() -> World:
    return World()


def test_create_answers_201_with_the_object(world: World) -> None:
    answer = world.send("POST", PODS, pod())
    assert answer.status == 201
    assert json.loads(answer.body) == world.ok("GET", f"{PODS}/p")


def test_put_replaces(world: World) -> None:
    world.ok("POST", MAPS, config_map("c", a="1"))
    assert world.ok("PUT", f"{MAPS}/c", config_map("c", b="2"))["data"] == {"b": "2"}


def test_three_kinds_of_patches(world: World) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    world.ok("POST", path, deployment())

    def replicas(patch: Any, content_type: str) -> Any:
        return world.ok("PATCH", f"{path}/web", patch, content_type=content_type)["spec"]["replicas"]

    assert replicas({"spec": {"replicas": 3}}, MERGE) == 3
    assert replicas({"spec": {"replicas": 4}}, STRATEGIC) == 4
    patch = [{"op": "replace", "path": "/spec/replicas", "value": 5}]
    assert replicas(patch, "application/json-patch+json") == 5


def test_status_is_written_below_status(world: World) -> None:
    world.ok("POST", PODS, pod())
    changed = world.ok("PATCH", f"{PODS}/p/status", {"status": {"phase": "Running"}}, content_type=MERGE)
    assert changed["status"]["phase"] == "Running"
    changed["status"]["phase"] = "Failed"
    assert world.ok("PUT", f"{PODS}/p/status", changed)["status"]["phase"] == "Failed"
    assert world.ok("GET", f"{PODS}/p/status")["status"]["phase"] == "Failed"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_dry_run_answers_and_stores_nothing(world: World, method: str) -> None:
    if method != "POST":
        world.ok("POST", MAPS, config_map("c", a="1"))
    revision = world.store.revision
    path = MAPS if method == "POST" else f"{MAPS}/c"
    content_type = MERGE if method == "PATCH" else "application/json"
    body = None if method == "DELETE" else config_map("c", a="2")
    world.ok(method, path, body, query={"dryRun": "All"}, content_type=content_type)
    assert world.store.revision == revision


def test_a_strange_dry_run_is_rejected(world: World) -> None:
    assert world.refused("POST", MAPS, config_map("c"), query={"dryRun": "Some"})["code"] == 422


def test_strict_validation_rejects_unknown_fields(world: World) -> None:
    typo = deployment()
    typo["spec"]["replcas"] = 3
    path = "/apis/apps/v1/namespaces/default/deployments"
    status = world.refused("POST", path, typo, query={"fieldValidation": "Strict"})
    assert status["code"] == 400
    assert status["message"] == (
        'Deployment in version "v1" cannot be handled as a Deployment: '
        'strict decoding error: unknown field "spec.replcas"'
    )
    answer = world.send("POST", path, typo, query={"fieldValidation": "Warn"})
    assert dict(answer.headers)["warning"] == '299 - "unknown field \\"spec.replcas\\""'
    assert world.refused("POST", path, typo, query={"fieldValidation": "Perhaps"})["code"] == 422


def test_a_warning_cannot_break_out_of_its_header(world: World) -> None:
    odd = {**config_map("c"), 'a"\r\nSet-Cookie: x': 1}
    answer = world.send("POST", MAPS, odd, query={"fieldValidation": "Warn"})
    [(name, value)] = answer.headers
    assert name == "warning" and "\r" not in value and "\n" not in value


def test_strict_validation_of_a_patch_judges_what_the_patch_adds(world: World) -> None:
    world.ok("POST", MAPS, {**config_map("c"), "old": 1})
    patch = {"data": {"a": "1"}, "new": 1}
    strict = {"fieldValidation": "Strict"}
    status = world.refused("PATCH", f"{MAPS}/c", patch, query=strict, content_type=MERGE)
    assert status["message"].endswith('strict decoding error: unknown field "new"')
    world.ok("PATCH", f"{MAPS}/c", {"data": {"a": "1"}}, query=strict, content_type=MERGE)


def test_delete_answers_with_a_status_or_the_object(world: World) -> None:
    uid = world.ok("POST", MAPS, config_map("c"))["metadata"]["uid"]
    status = world.ok("DELETE", f"{MAPS}/c")
    assert (status["kind"], status["status"]) == ("Status", "Success")
    assert status["details"] == {"name": "c", "kind": "configmaps", "uid": uid}
    world.ok("POST", PODS, pod())
    assert world.ok("DELETE", f"{PODS}/p")["kind"] == "Pod"
    assert world.refused("DELETE", f"{PODS}/p")["code"] == 404


def test_delete_options_come_in_body_or_query(world: World) -> None:
    for name in ("a", "b"):
        world.ok("POST", PODS, pod(name))
        world.api.bind("default", name, "n1")
    answer = world.ok("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 5})
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 5
    answer = world.ok("DELETE", f"{PODS}/b", query={"gracePeriodSeconds": "6"})
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 6
    assert world.refused("DELETE", f"{PODS}/b", query={"gracePeriodSeconds": "x"})["code"] == 400
    assert world.refused("DELETE", f"{PODS}/b", [])["code"] == 400


def test_a_collection_is_deleted_by_selector(world: World) -> None:
    for name, color in (("a", "red"), ("b", "blue"), ("c", "red")):
        world.ok("POST", MAPS, labelled(config_map(name), color=color))
    deleted = world.ok("DELETE", MAPS, query={"labelSelector": "color=red"})
    assert [item["metadata"]["name"] for item in deleted["items"]] == ["a", "c"]
    assert [item["metadata"]["name"] for item in world.ok("GET", MAPS)["items"]] == ["b"]


@pytest.mark.parametrize("subresource", ["attach", "portforward", "proxy"])
def test_containers_are_simulated_and_that_is_said(world: World, subresource: str) -> None:
    world.ok("POST", PODS, pod())
    status = world.refused("GET", f"{PODS}/p/{subresource}")
    assert status["code"] == 501 and "run no containers" in status["message"]
    assert world.refused("GET", f"{PODS}/q/{subresource}")["code"] == 404


EVENT = {
    "metadata": {"name": "p.1"},
    "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
    "reason": "Scheduled",
    "note": "assigned",
    "type": "Normal",
    "action": "Binding",
    "reportingController": "scheduler",
    "reportingInstance": "one",
    "eventTime": "2026-01-01T00:00:00.000000Z",
}


def test_written_in_one_version_and_read_in_the_other(world: World) -> None:
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    created = world.ok("POST", path, EVENT)
    assert (created["apiVersion"], created["note"]) == ("events.k8s.io/v1", "assigned")
    core = world.ok("GET", "/api/v1/namespaces/default/events/p.1")
    assert (core["apiVersion"], core["message"]) == ("v1", "assigned")
    assert core["involvedObject"] == EVENT["regarding"]
    patched = world.ok("PATCH", f"{path}/p.1", {"series": {"count": 2}}, content_type=MERGE)
    assert (patched["note"], patched["series"]) == ("assigned", {"count": 2})


def test_found_by_what_they_are_about(world: World) -> None:
    world.ok("POST", "/apis/events.k8s.io/v1/namespaces/default/events", EVENT)
    query = {"fieldSelector": "involvedObject.name=p,involvedObject.kind=Pod,involvedObject.namespace=default"}
    assert len(world.ok("GET", "/api/v1/namespaces/default/events", query=query)["items"]) == 1
    query = {"fieldSelector": "involvedObject.name=q"}
    assert world.ok("GET", "/api/v1/namespaces/default/events", query=query)["items"] == []


def test_a_field_that_is_there_twice_is_rejected_under_strict(world: World) -> None:
    body = b'{"metadata":{"name":"a","name":"b"},"data":{"k":"1","k":"2"}}'
    status = world.refused("POST", MAPS, body, query={"fieldValidation": "Strict"})
    assert 'strict decoding error: duplicate field "metadata.name", duplicate field "data.k"' in status["message"]
    answer = world.send("POST", MAPS, body, query={"fieldValidation": "Warn"})
    assert ("warning", '299 - "duplicate field \\"data.k\\""') in answer.headers
    assert world.ok("GET", f"{MAPS}/b")["data"] == {"k": "2"}


def test_a_body_may_be_yaml(world: World) -> None:
    body = b"metadata: {name: a}\ndata:\n  k: '1'\n  k: '2'\n"
    strict = {"fieldValidation": "Strict"}
    status = world.refused("POST", MAPS, body, content_type="application/yaml", query=strict)
    assert 'line 4: key "k" already set in map' in status["message"]
    assert world.ok("POST", MAPS, body, content_type="application/yaml")["metadata"]["name"] == "a"
    status = world.refused("POST", MAPS, b"a: [", content_type="application/yaml")
    assert status["code"] == 400 and "error decoding YAML" in status["message"]
