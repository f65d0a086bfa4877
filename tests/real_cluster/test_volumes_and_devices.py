"""What the scheduler writes into claims, as the API server stored it."""

from __future__ import annotations

from .claims import (
    DRIVER,
    device_claim,
    device_class,
    devices,
    late_binding_class,
    local_volume,
    play_volume_controller,
    pod_with_device,
    pod_with_volume,
    volume_claim,
)
from .objects import node
from .world import World


def test_a_pod_goes_where_its_volume_can_be(world: World) -> None:
    world.create(node("a"), node("b"), late_binding_class(), local_volume("disk", "b"), volume_claim("data"))
    world.create(pod_with_volume("p", "data"))
    world.start_scheduler()
    assert play_volume_controller(world, "data") == "disk"
    assert world.wait_bound("p") == ["b"]
    volume = world.api.get("persistentvolumes", "disk", "")
    assert volume is not None and volume["spec"]["claimRef"]["namespace"] == "default"
    assert volume["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"


def test_a_volume_that_was_chosen_by_a_scheduler_that_died_is_used(world: World) -> None:
    world.create(node("a"), node("b"), late_binding_class(), local_volume("disk", "b"), volume_claim("data"))
    claim = world.api.get("persistentvolumeclaims", "data")
    assert claim is not None
    chosen = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": claim["metadata"]["uid"]}
    world.api.patch("persistentvolumes", "disk", {"spec": {"claimRef": chosen}}, namespace="")
    world.create(pod_with_volume("p", "data"))
    world.start_scheduler()
    assert play_volume_controller(world, "data") == "disk"
    assert world.wait_bound("p") == ["b"]


def test_a_device_is_allocated_and_reserved(world: World) -> None:
    world.create(node("a"), node("b"), device_class(), devices("b", "gpu-0"), device_claim("mine"))
    world.create(pod_with_device("p", "mine"))
    world.start_scheduler()
    assert world.wait_bound("p") == ["b"]
    claim = world.api.get("resourceclaims", "mine")
    assert claim is not None
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert (result["driver"], result["pool"], result["device"]) == (DRIVER, "b", "gpu-0")
    (user,) = claim["status"]["reservedFor"]
    assert (user["resource"], user["name"], user["uid"]) == ("pods", "p", world.pod("p")["metadata"]["uid"])
    assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]


def test_a_device_that_is_taken_is_waited_for(world: World) -> None:
    world.create(node("n"), device_class(), devices("n", "gpu-0"), device_claim("mine"), device_claim("yours"))
    world.create(pod_with_device("first", "mine"))
    world.start_scheduler()
    world.wait_bound("first")
    world.create(pod_with_device("second", "yours"))
    (rejection,) = world.wait_refused("second")
    assert "1 cannot allocate all claims" in rejection["message"]
    world.api.delete("pods", "first", grace=0)
    freed = {"status": {"allocation": None, "reservedFor": None}}
    world.api.patch("resourceclaims", "mine", freed, subresource="status")
    world.wait_bound("second")
