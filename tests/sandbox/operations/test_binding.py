from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.sandbox.storage.records import Key
from tests.sandbox.api_world import MERGE, PODS, World, pod


@pytest.fixture
def world() -> World:
    world = World()
    world.ok("POST", PODS, pod())
    return world


def binding(name: str = "p", node: str = "node-1", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **metadata},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


@pytest.mark.parametrize("path", [f"{PODS}/p/binding", "/api/v1/namespaces/default/bindings"])
def test_a_binding_gives_the_pod_its_node(world: World, path: str) -> None:
    unbound = world.ok("GET", f"{PODS}/p")
    answer = world.send("POST", path, binding())
    assert answer.status == 201
    bound = world.ok("GET", f"{PODS}/p")
    assert bound["spec"] == {**unbound["spec"], "nodeName": "node-1"}
    [condition] = [c for c in bound["status"]["conditions"] if c["type"] == "PodScheduled"]
    assert condition == {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    assert bound["metadata"]["generation"] == 1


def test_a_binding_clears_what_was_said_about_the_wait(world: World) -> None:
    waiting = {
        "nominatedNodeName": "node-2",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1"}],
    }
    world.ok("PATCH", f"{PODS}/p/status", {"status": waiting}, content_type=MERGE)
    world.ok("POST", f"{PODS}/p/binding", binding())
    status = world.ok("GET", f"{PODS}/p")["status"]
    assert "nominatedNodeName" not in status
    [condition] = [c for c in status["conditions"] if c["type"] == "PodScheduled"]
    assert condition["status"] == "True" and "reason" not in condition and "message" not in condition


def test_the_uid_of_the_pod_that_was_seen_is_accepted(world: World) -> None:
    uid = world.ok("GET", f"{PODS}/p")["metadata"]["uid"]
    world.ok("POST", f"{PODS}/p/binding", binding(uid=uid))


def test_a_second_binding_is_a_conflict(world: World) -> None:
    world.ok("POST", f"{PODS}/p/binding", binding())
    status = world.refused("POST", f"{PODS}/p/binding", binding(node="node-2"))
    assert status["code"] == 409 and status["reason"] == "Conflict"
    assert status["message"].endswith('pod p is already assigned to node "node-1"')
    assert world.ok("GET", f"{PODS}/p")["spec"]["nodeName"] == "node-1"


@pytest.mark.parametrize(
    ("name", "body", "code", "problem"),
    [
        ("p", binding(uid="of-another-pod"), 409, "UID in precondition: of-another-pod"),
        ("missing", binding("missing"), 404, 'pods "missing" not found'),
        ("p", binding("q"), 400, "does not match the name on the URL"),
        ("p", binding(node=""), 422, "target.name: Required value"),
        ("p", {**binding(), "target": {"kind": "Pod", "name": "x"}}, 422, "target.kind: Unsupported value"),
        ("p", {**binding(), "metadata": []}, 400, "metadata: expected object, got array"),
    ],
)
def test_a_binding_that_cannot_be(world: World, name: str, body: Any, code: int, problem: str) -> None:
    status = world.refused("POST", f"{PODS}/{name}/binding", body)
    assert status["code"] == code and problem in status["message"]
    assert "nodeName" not in world.ok("GET", f"{PODS}/p")["spec"]


def test_a_pod_on_its_way_out_is_not_bound(world: World) -> None:
    held = pod("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    world.ok("POST", PODS, held)
    world.ok("DELETE", f"{PODS}/held")
    status = world.refused("POST", f"{PODS}/held/binding", binding("held"))
    assert status["code"] == 409 and "is being deleted" in status["message"]


def test_a_gated_pod_is_not_bound(world: World) -> None:
    world.ok("POST", PODS, pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    status = world.refused("POST", f"{PODS}/gated/binding", binding("gated"))
    assert status["code"] == 409 and "schedulingGates" in status["message"]


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeName": "", "hostname": "h"},
        {"schedulingGates": []},
        {"nodeSelector": {"nodeName": "any", "schedulingGates": "open"}},
    ],
)
def test_a_pod_that_only_mentions_nodes_and_gates_is_bound(world: World, spec: dict[str, Any]) -> None:
    world.ok("POST", PODS, pod("q", **spec))
    before = world.ok("GET", f"{PODS}/q")["spec"]
    world.ok("POST", f"{PODS}/q/binding", binding("q", node='a "node"'))
    assert world.ok("GET", f"{PODS}/q")["spec"] == {**before, "nodeName": 'a "node"'}
    record = world.store.get(Key("pods", "default", "q"))
    assert record is not None and msgspec.json.encode(record.object()) == record.body, "no field is there twice"


def test_a_dry_run_binds_nothing(world: World) -> None:
    world.ok("POST", f"{PODS}/p/binding", binding(), query={"dryRun": "All"})
    assert "nodeName" not in world.ok("GET", f"{PODS}/p")["spec"]
