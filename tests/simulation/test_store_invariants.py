"""The judges of the simulation: what they must object to, and what not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from pilotage.sandbox.api import Api
from pilotage.sandbox.storage.records import Key
from pilotage.sandbox.storage.store import Store
from pilotage.testing import VirtualClock
from tests.simulation import objects
from tests.simulation.history import History
from tests.simulation.store_invariants import CLAIMS, StoreInvariants


class Judged:
    """An API server with one node of two cores and four pods, and what is objected to."""

    def __init__(self) -> None:
        clock = VirtualClock()
        self.api = Api(Store(history=1000), clock=clock, rng=random.Random(0))
        self.history = History(clock)
        StoreInvariants(self.api.store, self.history)
        self.api.create("nodes", "", objects.node("n", "east", cpu=2, pods=4))

    def bound(self, name: str, **fields: Any) -> list[str]:
        """What is said when such a pod is bound."""
        cpu, memory = fields.pop("cpu", 100), fields.pop("memory", 16)
        labels = {"app": fields.pop("app", "none")}
        self.api.create("pods", "default", objects.pod(name, objects.pod_spec(cpu, memory, **fields), **labels))
        self.api.bind("default", name, "n")
        return [violation.invariant for violation in self.history.violations]


@pytest.fixture
def judged() -> Iterator[Judged]:
    yield Judged()


def test_full_node_is_not_overcommitted(judged: Judged) -> None:
    assert judged.bound("a", cpu=1000) == []
    assert judged.bound("b", cpu=1000) == []
    assert judged.bound("c", cpu=1) == ["overcommit"]


@pytest.mark.parametrize("fields", [{"memory": 3000}, {"host_port": 80}], ids=["memory", "host port"])
def test_what_only_one_pod_can_have_is_overcommitted_by_two(judged: Judged, fields: dict[str, Any]) -> None:
    assert judged.bound("a", **fields) == []
    assert judged.bound("b", **fields) == ["overcommit"]


def test_more_pods_than_the_node_takes_are_overcommitted(judged: Judged) -> None:
    assert [judged.bound(f"p{number}") for number in range(5)][-2:] == [[], ["overcommit"]]


def test_finished_pod_takes_no_room(judged: Judged) -> None:
    judged.bound("a", cpu=2000)
    pod = judged.api.get("pods", "default", "a")
    judged.api.update("pods", "default", "a", {**pod, "status": {**pod["status"], "phase": "Succeeded"}}, "status")
    assert judged.bound("b", cpu=2000) == []


def test_pod_that_moves_is_found(judged: Judged) -> None:
    judged.bound("a")
    moved = judged.api.get("pods", "default", "a")
    moved["spec"]["nodeName"] = "m"
    judged.api.store.update(Key("pods", "default", "a"), moved)
    assert [violation.invariant for violation in judged.history.violations] == ["home"]


def test_anti_affinity_on_one_node_is_found(judged: Judged) -> None:
    assert judged.bound("a", app="shy", affinity=objects.anti_affinity("shy")) == []
    assert judged.bound("b", app="shy", affinity=objects.anti_affinity("shy")) == ["anti-affinity"]


def test_pod_whose_volume_or_device_is_not_there_is_found(judged: Judged) -> None:
    judged.api.create("persistentvolumeclaims", "default", objects.volume_claim("v", "local", "ReadWriteOnce"))
    assert judged.bound("a", volumes=[objects.volume("data", "v")]) == ["volumes"]
    judged.api.create(CLAIMS, "default", {"metadata": {"name": "d"}, "spec": objects.device_request()})
    assert judged.bound("b", resourceClaims=[{"name": "d", "resourceClaimName": "d"}]) == ["volumes", "devices"]


def test_device_with_two_claims_is_found(judged: Judged) -> None:
    allocation = {"devices": {"results": [{"request": "r", "driver": objects.DRIVER, "pool": "p", "device": "gpu-0"}]}}
    for name in ("one", "two"):
        claim = {"metadata": {"name": name}, "spec": objects.device_request()}
        created = judged.api.create(CLAIMS, "default", claim)
        judged.api.update(CLAIMS, "default", name, {**created, "status": {"allocation": allocation}}, "status")
    assert [violation.invariant for violation in judged.history.violations] == ["devices"]
