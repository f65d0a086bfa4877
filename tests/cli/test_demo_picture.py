from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.cli.demo_picture import Camera, NodeLine, NodeUse, PendingLine, take_picture
from pilotage.model import KINDS
from pilotage.rng import seeded
from pilotage.sandbox.api import Api
from pilotage.sandbox.storage.store import Store
from pilotage.testing.virtual_clock import VirtualClock

GIB = 1 << 30


def node(name: str = "n", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}},
    }


def pod(name: str, node_name: str = "", phase: str = "Pending", reason: str = "", **spec: Any) -> dict[str, Any]:
    requests = {"cpu": "500m", "memory": "1Gi"}
    conditions = [{"type": "PodScheduled", "status": "False", "message": reason}] if reason else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name.rpartition("-")[0]}},
        "spec": {
            "nodeName": node_name,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
            **spec,
        },
        "status": {"phase": phase, "conditions": conditions},
    }


def decode(resource: str, *objects: dict[str, Any]) -> list[Any]:
    return [KINDS[resource].decode(msgspec.json.encode(obj)) for obj in objects]


def test_a_node_shows_the_requests_of_its_unfinished_pods() -> None:
    pods = [pod("a-1", "n", "Running"), pod("a-2", "n"), pod("b-1", "n", "Succeeded"), pod("c-1", "other")]
    picture = take_picture(decode("nodes", node()), decode("pods", *pods))
    assert picture.nodes == (NodeLine("n", NodeUse(1000, 4000), NodeUse(2 * GIB, 16 * GIB), NodeUse(2, 110), ()),)


def test_taints_and_cordons_are_noted() -> None:
    tainted = node(taints=[{"key": "gpu", "effect": "NoSchedule"}], unschedulable=True)
    assert take_picture(decode("nodes", tainted), []).nodes[0].notes == ("gpu:NoSchedule", "cordoned")


def test_a_node_without_capacity_is_not_a_division_by_zero() -> None:
    bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    assert take_picture(decode("nodes", bare), []).nodes[0].cpu.share == 0


def test_workloads_are_counted_by_their_label() -> None:
    pods = [pod("a-1", "n", "Running"), pod("a-2", "n"), pod("a-3"), pod("b-1", "m", "Succeeded", priority=7)]
    first, second = take_picture([], decode("pods", *pods)).workloads
    assert (first.name, first.pods, first.placed, first.running, first.finished) == ("a", 3, 2, 1, 0)
    assert (second.name, second.priority, second.placed, second.finished) == ("b", 7, 1, 1)
    assert first.nodes == {"n": 2}


def test_pending_pods_are_shown_with_their_reasons_and_the_most_important_first() -> None:
    pods = [pod("a-1", reason="0/1 nodes are available: 1 Insufficient cpu."), pod("b-1", priority=5)]
    assert take_picture([], decode("pods", *pods)).pending == (
        PendingLine("default/b-1", 5, ""),
        PendingLine("default/a-1", 0, "0/1 nodes are available: 1 Insufficient cpu."),
    )


@pytest.fixture
def api() -> Api:
    api = Api(Store(history=100), clock=VirtualClock(), rng=seeded(1))
    api.create("nodes", "", node())
    return api


def test_the_camera_remembers_placements_in_their_order(api: Api) -> None:
    camera = Camera(api.store)
    for name in ("a-1", "a-2"):
        api.create("pods", "default", pod(name))
    api.bind("default", "a-2", "n")
    api.bind("default", "a-1", "n")
    assert [(item.pod, item.node) for item in camera.placements] == [("a-2", "n"), ("a-1", "n")]
    assert camera.picture().placed == 2
    camera.close()
    api.create("pods", "default", pod("a-3", "n"))
    assert len(camera.placements) == 2


def test_the_camera_sees_deletions(api: Api) -> None:
    camera = Camera(api.store)
    api.create("pods", "default", pod("a-1"))
    assert camera.picture().pods == 1
    api.delete("pods", "default", "a-1", {"gracePeriodSeconds": 0})
    assert camera.picture().pods == 0
