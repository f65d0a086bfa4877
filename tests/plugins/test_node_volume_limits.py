"""NodeVolumeLimits: as many volumes of a driver as a node can attach, and no more."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pilotage.api.budget import UNLIMITED
from pilotage.api.results import SKIP
from pilotage.plugins import NodeVolumeLimits
from pilotage.plugins.node_volume_limits.attachments import AttachedVolumes
from pilotage.plugins.node_volume_limits.volumes import CannotCount
from pilotage.testing import node, pod
from tests.plugins.volume_world import (
    Object,
    VolumeWorld,
    attachment,
    claim,
    csi_driver,
    csi_node,
    decoded,
    mounting,
    storage_class,
    using,
    volume,
)
from tests.soak.reachable import container_sizes

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
    assert world.rejected(using("c2")) == [], "attached and used is one volume"
    left_over = attachment("a1", "n", "v1", DRIVER)
    world.put(left_over)
    assert world.rejected(using("c2")) == ["n"]
    world.remove(left_over)
    assert world.rejected(using("c2")) == []


def test_an_attached_volume_is_known_by_attacher_and_handle() -> None:
    world = world_with(2, "c0")
    world.put(csi_volume("twin") | {"spec": csi_volume("v0")["spec"]})
    world.put(attachment("a0", "n", "twin", DRIVER))
    assert world.rejected(using("c2")) == [], "another PersistentVolume of the same disk"
    world.put(attachment("a0", "n", "v0", "other.example.com"))
    assert world.rejected(using("c2")) == [], "another driver's"
    world.put(attachment("a0", "n", "v1", ""))
    assert world.rejected(using("c2")) == [], "attached by nobody"
    in_tree = volume("old", awsElasticBlockStore={"volumeID": "vol-1"})
    world.put(in_tree, attachment("a0", "n", "old", DRIVER))
    assert world.rejected(using("c2")) == [], "an in-tree volume does not count by its attachment"
    world.put(volume("blank", csi={"driver": DRIVER, "volumeHandle": ""}), attachment("a0", "n", "blank", DRIVER))
    assert world.rejected(using("c2")) == ["n"], "what has no handle counts as well"


def test_a_claim_without_volume_counts_for_the_driver_of_its_class() -> None:
    world = world_with(1)
    world.put(storage_class("s"), claim("new", class_name="s"), claim("newer", class_name="s"))
    assert world.rejected(using("new")) == []
    assert world.rejected(using("new", "newer")) == ["n"]


def test_what_changes_later_is_counted() -> None:
    world = world_with(2, "c0", "c1")
    assert world.rejected(using("c2")) == ["n"]
    world.put(csi_node("n", {DRIVER: 3}))
    assert world.rejected(using("c2")) == [], "more room"
    world.put(csi_node("n", {DRIVER: 2}))
    assert world.rejected(using("c2")) == ["n"], "less room"
    world.put(csi_volume("v1", "other.example.com"))
    assert world.rejected(using("c2")) == [], "one of the volumes turned out to be another driver's"
    world.put(claim("c1", volume_name="v3"))
    assert world.rejected(using("c2")) == ["n"], "a claim has got another volume"
    world.cluster.remove_pod(using("c0", name="u-c0").build().uid)
    assert world.rejected(using("c2")) == [], "a pod is gone"


def test_a_class_that_appears_later_is_counted() -> None:
    world = world_with(1)
    world.put(claim("new", class_name="s"))
    world.cluster.put_pod(using("new", name="u").node("n").build())
    assert world.rejected(using("c0")) == []
    world.put(storage_class("s"))
    assert world.rejected(using("c0")) == ["n"]


def test_an_attached_volume_that_appears_later_is_counted() -> None:
    world = world_with(1)
    world.put(attachment("a", "n", "late", DRIVER))
    assert world.rejected(using("c0")) == []
    world.put(csi_volume("late"))
    assert world.rejected(using("c0")) == ["n"]


def test_a_full_node_takes_the_volumes_that_it_has() -> None:
    world = world_with(2, "c0", "c1")
    assert world.rejected(using("c0", "c1")) == []
    assert world.rejected(using("c0", "c2")) == ["n"]


def test_in_tree_volumes_count_for_their_csi_driver() -> None:
    world = VolumeWorld(NodeVolumeLimits, node("n"), node("old"))
    world.put(csi_node("n", {EBS: 1}))
    world.put(volume("v", awsElasticBlockStore={"volumeID": "aws://zone/vol-1"}), claim("c", volume_name="v"))
    inline = {"awsElasticBlockStore": {"volumeID": "vol-2"}}
    assert world.rejected(mounting("p", inline)) == []
    world.cluster.put_pod(using("c", name="u").node("n").build())
    assert world.rejected(mounting("p", inline)) == ["n"]
    assert world.rejected(mounting("p", {"awsElasticBlockStore": {"volumeID": "vol-1"}})) == [], "the same volume"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"awsElasticBlockStore": {"volumeID": "zone/vol-1"}}, {"awsElasticBlockStore": {"volumeID": "vol-1"}}, False),
        ({"portworxVolume": {"volumeID": "p"}}, {"portworxVolume": {"volumeID": "p"}}, True),
        ({"portworxVolume": {"volumeID": "p"}}, {"portworxVolume": {"volumeID": "q"}}, False),
        ({"vsphereVolume": {"volumePath": "p"}}, {"vsphereVolume": {"volumePath": "q"}}, True),
    ],
    ids=["not a url", "portworx, same", "portworx", "never migrated"],
)
def test_handles_of_inline_volumes(one: Object, other: Object, same: bool) -> None:
    world = VolumeWorld(NodeVolumeLimits, node("n"))
    world.put(csi_node("n", {EBS: 1, "pxd.portworx.com": 1, "csi.vsphere.vmware.com": 1}))
    world.cluster.put_pod(mounting("u", one).node("n").build())
    assert world.rejected(mounting("p", other)) == ([] if same else ["n"])


REGIONAL = {"topology.kubernetes.io/zone": "us-east1-c", "failure-domain.beta.kubernetes.io/zone": "us-east1-b"}


def test_the_old_zone_label_of_a_disk_has_the_first_word() -> None:
    world = VolumeWorld(NodeVolumeLimits, node("n"))
    world.put(csi_node("n", {"pd.csi.storage.gke.io": 1}))
    disk: Object = {"gcePersistentDisk": {"pdName": "d"}}
    world.put(volume("v", labels=REGIONAL, **disk), claim("c", volume_name="v"))
    world.put(volume("w", labels={"topology.kubernetes.io/zone": "us-east1-b"}, **disk), claim("d", volume_name="w"))
    world.cluster.put_pod(using("c", name="u").node("n").build())
    assert world.rejected(using("d")) == []


UNTRANSLATABLE: Object = {"azureDisk": {"diskURI": "d", "kind": "Dedicated"}}
CONVERTING = "converting volume(v0) from inline to csi: kind(Dedicated) is not supported in csi migration"


def test_a_volume_that_cannot_be_translated_does_not_count() -> None:
    world = VolumeWorld(NodeVolumeLimits, node("n"))
    world.put(csi_node("n", {"disk.csi.azure.com": 0}), volume("v", **UNTRANSLATABLE), claim("c", volume_name="v"))
    assert world.rejected(using("c")) == []


def test_an_inline_volume_that_cannot_be_translated_is_an_error_where_it_would_count() -> None:
    world = VolumeWorld(NodeVolumeLimits, node("bare"))
    assert world.rejected(mounting("p", UNTRANSLATABLE)) == []
    world.cluster.put_node(node("n").build())
    world.put(csi_node("n", {DRIVER: 1}))
    with pytest.raises(CannotCount, match=re.escape(CONVERTING)):
        world.rejected(mounting("p", UNTRANSLATABLE))


@pytest.mark.parametrize("limits", [{}, {DRIVER: 5}], ids=["no limits", "limits"])
def test_a_pod_whose_volumes_cannot_be_counted_matters_where_there_are_limits(limits: dict[str, int | None]) -> None:
    world = world_with(5)
    world.put(csi_node("n", limits))
    world.cluster.put_pod(mounting("u", UNTRANSLATABLE).node("n").build())
    if not limits:
        assert world.rejected(using("c0")) == []
        return
    with pytest.raises(CannotCount, match=re.escape(CONVERTING)):
        world.rejected(using("c0"))
    world.cluster.remove_pod(mounting("u", UNTRANSLATABLE).build().uid)
    assert world.rejected(using("c0")) == []


def test_a_claim_that_belongs_to_another_pod_is_an_error() -> None:
    world = world_with(5)
    world.put(claim("p-scratch", volume_name="v0"))
    borrowed = pod("p").spec(volumes=[{"name": "scratch", "ephemeral": {}}])
    with pytest.raises(CannotCount, match="PVC default/p-scratch was not created for pod default/p"):
        world.rejected(borrowed)


@pytest.mark.parametrize(("prevents", "rejected"), [(True, ["without", "bare"]), (False, [])])
def test_a_driver_may_insist_on_being_installed(prevents: bool, rejected: list[str]) -> None:
    world = VolumeWorld(NodeVolumeLimits, node("with"), node("without"), node("bare"))
    world.put(csi_node("with", {DRIVER: None}), csi_node("without", {"other.example.com": 5}))
    world.put(csi_driver(DRIVER, preventPodSchedulingIfMissing=prevents))
    world.put(csi_volume("v"), claim("c", volume_name="v"))
    text = f"{DRIVER} CSI driver is not installed on the node"
    assert world.messages(using("c")) == {
        name: [text] if name in rejected else [] for name in world.cluster.nodes.names
    }


def test_a_driver_that_is_installed_later_is_seen() -> None:
    world = VolumeWorld(NodeVolumeLimits, node("n"))
    world.put(csi_driver(DRIVER, preventPodSchedulingIfMissing=True), csi_volume("v"), claim("c", volume_name="v"))
    assert world.rejected(using("c")) == ["n"]
    world.put(csi_node("n", {DRIVER: None}))
    assert world.rejected(using("c")) == []
    world.put(csi_node("n", {}))
    assert world.rejected(using("c")) == ["n"]


def test_a_missing_claim_is_named() -> None:
    world = VolumeWorld(NodeVolumeLimits, node("n"))
    text = 'looking up PVC default/nope: persistentvolumeclaim "nope" not found'
    assert world.messages(using("nope")) == {"n": [text]}


@pytest.mark.parametrize(
    "waiting", [pod("p"), mounting("p", {"csi": {"driver": DRIVER}}), mounting("p", {"iscsi": {}})]
)
def test_pods_without_attachable_volumes_are_skipped(waiting: Any) -> None:
    assert VolumeWorld(NodeVolumeLimits, node("n")).pre_filter(waiting) is SKIP


def test_what_is_gone_is_not_kept() -> None:
    attached = AttachedVolumes()
    assert not attached.too_full_for({"v": DRIVER}, UNLIMITED)
    empty = container_sizes({"index": attached}, lambda _: False)
    for number in range(10):
        user = using(f"c{number}", name=f"u{number}").node("n").build()
        objects = [
            csi_volume(f"v{number}"),
            claim(f"c{number}", volume_name=f"v{number}"),
            attachment(f"a{number}", "n", f"v{number}", DRIVER),
        ]
        for one in objects:
            attached.object_put(one["kind"], None, decoded(one))
        attached.pod_added(user, "n")
        assert not attached.too_full_for({"v": DRIVER}, UNLIMITED)
        attached.pod_removed(user, "n")
        for one in objects:
            attached.object_removed(one["kind"], decoded(one))
        assert not attached.too_full_for({"v": DRIVER}, UNLIMITED)
    left = container_sizes({"index": attached}, lambda _: False) - empty
    assert left == {"AttachedVolumes._usage": 1}, "only that the node has nothing"
