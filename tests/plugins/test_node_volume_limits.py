"""NodeVolumeLimits: as many volumes of a driver as a node can attach, and no more."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.api.results import SKIP
from pilotage.plugins import NodeVolumeLimits
from pilotage.testing import node, pod
from tests.plugins.volume_world import (
    Object,
    VolumeWorld,
    attachment,
    claim,
    csi_driver,
    csi_node,
    mounting,
    storage_class,
    using,
    volume,
)

DRIVER = "csi.example.com"
EBS = "ebs.csi.aws.com"
FULL = "node(s) exceed max volume count"


def csi_volume(name: str, driver: str = DRIVER) -> Object:
    return volume(name, csi={"driver": driver, "volumeHandle": f"h-{name}"})


def world_with(limit: int | None, *users: str) -> VolumeWorld:
    """Claims c0..c5 with a volume each, and pods on node n that use some of them."""
    world = VolumeWorld(NodeVolumeLimits, node("n"), pods=[using(c, name=f"u-{c}").node("n") for c in users])
    world.put(csi_node("n", {DRIVER: limit}))
    for number in range(6):
        world.put(csi_volume(f"v{number}"), claim(f"c{number}", volume_name=f"v{number}"))
    return world


@pytest.mark.parametrize(
    ("limit", "users", "wanted", "fits"),
    [
        (2, ["c0"], ["c1"], True),
        (2, ["c0", "c1"], ["c2"], False),
        (2, ["c0", "c1"], ["c1"], True),
        (2, ["c0"], ["c1", "c2"], False),
        (2, ["c0", "c0"], ["c1"], True),
        (None, ["c0", "c1"], ["c2"], True),
        (0, [], ["c0"], False),
    ],
    ids=["room", "full", "shared", "two at once", "one volume of two pods", "no limit", "nothing at all"],
)
def test_limits(limit: int | None, users: list[str], wanted: list[str], fits: bool) -> None:
    world = world_with(limit)
    for number, used in enumerate(users):
        world.cluster.put_pod(using(used, name=f"u{number}").node("n").build())
    assert world.messages(using(*wanted)) == {"n": [] if fits else [FULL]}


def test_a_node_without_csi_node_has_no_limits() -> None:
    world = VolumeWorld(NodeVolumeLimits, node("n"))
    world.put(csi_volume("v"), claim("c", volume_name="v"))
    assert world.messages(using("c")) == {"n": []}


def test_volumes_that_are_still_attached_count() -> None:
    world = world_with(2, "c0")
    world.put(attachment("a0", "n", "v0", DRIVER))
    assert world.refused(using("c2")) == [], "attached and used is one volume"
    left_over = attachment("a1", "n", "v1", DRIVER)
    world.put(left_over)
    assert world.refused(using("c2")) == ["n"]
    world.remove(left_over)
    assert world.refused(using("c2")) == []


def test_a_claim_without_volume_counts_for_the_driver_of_its_class() -> None:
    world = world_with(1)
    world.put(storage_class("s"), claim("new", class_name="s"), claim("newer", class_name="s"))
    assert world.refused(using("new")) == []
    assert world.refused(using("new", "newer")) == ["n"]


def test_what_changes_later_is_counted() -> None:
    world = world_with(2, "c0", "c1")
    assert world.refused(using("c2")) == ["n"]
    world.put(csi_node("n", {DRIVER: 3}))
    assert world.refused(using("c2")) == [], "more room"
    world.put(csi_node("n", {DRIVER: 2}))
    assert world.refused(using("c2")) == ["n"], "less room"
    world.put(csi_volume("v1", "other.example.com"))
    assert world.refused(using("c2")) == [], "one of the volumes turned out to be another driver's"
    world.put(claim("c1", volume_name="v3"))
    assert world.refused(using("c2")) == ["n"], "a claim has got another volume"
    world.cluster.remove_pod(using("c0", name="u-c0").build().uid)
    assert world.refused(using("c2")) == [], "a pod is gone"


def test_a_class_that_appears_later_is_counted() -> None:
    world = world_with(1)
    world.put(claim("new", class_name="s"))
    world.cluster.put_pod(using("new", name="u").node("n").build())
    assert world.refused(using("c0")) == []
    world.put(storage_class("s"))
    assert world.refused(using("c0")) == ["n"]


def test_an_attached_volume_that_appears_later_is_counted() -> None:
    world = world_with(1)
    world.put(attachment("a", "n", "late", DRIVER))
    assert world.refused(using("c0")) == []
    world.put(csi_volume("late"))
    assert world.refused(using("c0")) == ["n"]


def test_a_full_node_takes_the_volumes_that_it_has() -> None:
    world = world_with(2, "c0", "c1")
    assert world.refused(using("c0", "c1")) == []
    assert world.refused(using("c0", "c2")) == ["n"]


def test_in_tree_volumes_count_for_their_csi_driver() -> None:
    world = VolumeWorld(NodeVolumeLimits, node("n"), node("old"))
    world.put(csi_node("n", {EBS: 1}))
    world.put(volume("v", awsElasticBlockStore={"volumeID": "aws://zone/vol-1"}), claim("c", volume_name="v"))
    inline = {"awsElasticBlockStore": {"volumeID": "vol-2"}}
    assert world.refused(mounting("p", inline)) == []
    world.cluster.put_pod(using("c", name="u").node("n").build())
    assert world.refused(mounting("p", inline)) == ["n"]
    assert world.refused(mounting("p", {"awsElasticBlockStore": {"volumeID": "vol-1"}})) == [], "the same volume"


@pytest.mark.parametrize(("prevents", "refused"), [(True, ["without", "bare"]), (False, [])])
def test_a_driver_may_insist_on_being_installed(prevents: bool, refused: list[str]) -> None:
    world = VolumeWorld(NodeVolumeLimits, node("with"), node("without"), node("bare"))
    world.put(csi_node("with", {DRIVER: None}), csi_node("without", {"other.example.com": 5}))
    world.put(csi_driver(DRIVER, preventPodSchedulingIfMissing=prevents))
    world.put(csi_volume("v"), claim("c", volume_name="v"))
    text = f"{DRIVER} CSI driver is not installed on the node"
    assert world.messages(using("c")) == {name: [text] if name in refused else [] for name in world.cluster.nodes.names}


def test_a_driver_that_is_installed_later_is_seen() -> None:
    world = VolumeWorld(NodeVolumeLimits, node("n"))
    world.put(csi_driver(DRIVER, preventPodSchedulingIfMissing=True), csi_volume("v"), claim("c", volume_name="v"))
    assert world.refused(using("c")) == ["n"]
    world.put(csi_node("n", {DRIVER: None}))
    assert world.refused(using("c")) == []
    world.put(csi_node("n", {}))
    assert world.refused(using("c")) == ["n"]


def test_a_missing_claim_is_named() -> None:
    world = VolumeWorld(NodeVolumeLimits, node("n"))
    text = 'looking up PVC default/nope: persistentvolumeclaim "nope" not found'
    assert world.messages(using("nope")) == {"n": [text]}


@pytest.mark.parametrize(
    "waiting", [pod("p"), mounting("p", {"csi": {"driver": DRIVER}}), mounting("p", {"iscsi": {}})]
)
def test_pods_without_attachable_volumes_are_skipped(waiting: Any) -> None:
    assert VolumeWorld(NodeVolumeLimits, node("n")).pre_filter(waiting) is SKIP
