"""Where a pod can go for its volumes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pilotage.api.results import SKIP
from pilotage.plugins.volume_binding.claims import VolumeError
from pilotage.testing import node, pod
from tests.plugins.volume_binding.binding_world import (
    BIND_CONFLICT,
    NO_SPACE,
    NO_VOLUME,
    NODE_CONFLICT,
    BindingWorld,
    with_objects,
)
from tests.plugins.volume_world import (
    HOSTNAME,
    ZONE,
    Object,
    capacity,
    claim,
    csi_driver,
    csi_node,
    mounting,
    storage_class,
    using,
    volume,
)

DRIVER = "csi.example.com"
LOCAL = storage_class("local", provisioner="kubernetes.io/no-provisioner")


def two_zones(*objects: Object) -> BindingWorld:
    return with_objects(BindingWorld(node("a").zone("z1"), node("b").zone("z2")), *objects)


@pytest.mark.parametrize("waiting", [pod("p"), mounting("p", {"csi": {"driver": DRIVER}})])
def test_pods_without_claims_cost_nothing(waiting: Any) -> None:
    world = BindingWorld(node("n"))
    assert world.pre_filter(waiting) is SKIP
    assert world.plugin.sign(waiting.build()) is not None
    assert not len(world.cluster._indexes), "no index is kept for them"


# --- claims that nothing can be done for -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        (
            [{**claim("c", volume_name="gone"), "status": {"phase": "Lost"}}],
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "gone"',
        ),
        ([claim("c", deletionTimestamp="2026-01-01T00:00:00Z")], 'persistentvolumeclaim "c" is being deleted'),
        ([claim("c")], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim("c", class_name="nope")], "pod has unbound immediate PersistentVolumeClaims"),
        (
            [claim("c", class_name="s"), storage_class("s", waits=False)],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            [claim("c", class_name="s", spec={"volumeName": "v"}), storage_class("s")],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
    ],
    ids=["missing", "lost", "deleting", "no class", "unknown class", "immediate", "named but not bound"],
)
def test_unusable_claims_reject_the_pod_everywhere(objects: list[Object], message: str) -> None:
    world = two_zones(*objects)
    assert world.messages(using("c")) == {"a": [message], "b": [message]}
    assert world.pre_filter(using("c")).unresolvable


def test_claims_of_ephemeral_volumes() -> None:
    waiting = mounting("p", {"ephemeral": {}})
    world = two_zones(storage_class("s"))
    text = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v0"'
    assert world.messages(waiting)["a"] == [text]
    world.put(claim("p-v0", class_name="s"))
    assert world.messages(waiting)["a"] == ["PVC default/p-v0 was not created for pod default/p (pod is not owner)"]
    owner = {"kind": "Pod", "name": "p", "uid": waiting.build().uid, "controller": True}
    world.put(claim("p-v0", class_name="s", ownerReferences=[owner]))
    assert world.rejected(waiting) == []


# --- bound claims ------------------------------------------------------------------------------------------------


def test_a_bound_volume_decides_where_the_pod_can_go() -> None:
    world = two_zones(volume("v", at={ZONE: ["z2"]}), claim("c", volume_name="v"))
    assert world.messages(using("c")) == {"a": [NODE_CONFLICT], "b": []}


def test_a_bound_volume_without_affinity_is_reached_from_everywhere() -> None:
    world = two_zones(volume("v"), claim("c", volume_name="v"))
    assert world.rejected(using("c")) == []


def test_the_first_bound_claim_with_a_problem_has_the_word() -> None:
    world = two_zones(volume("v", at={ZONE: ["z2"]}), claim("c", volume_name="v"), claim("d", volume_name="gone"))
    assert world.messages(using("c", "d")) == {"a": [NODE_CONFLICT], "b": [NO_VOLUME]}
    assert world.messages(using("d", "c")) == {"a": [NO_VOLUME], "b": [NO_VOLUME]}


def test_a_name_in_the_affinity_of_a_volume_matches_no_node() -> None:
    named = volume("v")
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    named["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    assert two_zones(named, claim("c", volume_name="v")).rejected(using("c")) == ["a", "b"]


@pytest.mark.parametrize(("migrated", "rejected"), [("kubernetes.io/gce-pd", ["b"]), ("", ["a"])])
def test_zones_of_in_tree_volumes_are_those_of_the_driver_where_it_took_over(
    migrated: str, rejected: list[str]
) -> None:
    world = BindingWorld(node("a").label("topology.gke.io/zone", "z1"), node("b").zone("z1"))
    disk: Object = {"gcePersistentDisk": {"pdName": "d"}}
    world.put(volume("v", at={ZONE: ["z1"]}, **disk), claim("c", volume_name="v"))
    world.put(csi_node("a", {}, migrated), csi_node("b", {}, migrated))
    assert world.rejected(using("c")) == rejected


GCE, EBS = "kubernetes.io/gce-pd", "kubernetes.io/aws-ebs"
DISK: Object = {"gcePersistentDisk": {"pdName": "d"}}
FORMAT = "zone in unexpected format, expected: {locale}-{region}-{zone}, got: z1"


@pytest.mark.parametrize(
    ("source", "labels", "problem"),
    [
        (DISK, {ZONE: "z1__z2"}, f"failed to get region from zones: {FORMAT}"),
        (
            DISK,
            {ZONE: "us-east1-b__us-west1-b"},
            "failed to get region from zones: multiple or no regions gotten from zones, "
            "got: map[us-east1:{} us-west1:{}]",
        ),
        (
            {"awsElasticBlockStore": {"volumeID": "aws://zone/disk-1"}},
            {},
            "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://zone/disk-1)",
        ),
        ({"azureDisk": {"diskURI": "d", "kind": "Shared"}}, {}, "kind(Shared) is not supported in csi migration"),
    ],
    ids=["zones", "regions", "ebs", "azure"],
)
def test_a_volume_that_cannot_be_translated_is_an_error_of_the_pod(
    source: Object, labels: Object, problem: str
) -> None:
    migrated = f"{GCE},{EBS},kubernetes.io/azure-disk"
    world = two_zones(volume("v", labels=labels, **source), claim("c", volume_name="v"))
    assert world.rejected(using("c")) == [], "nothing is translated where the plugin has not been replaced"
    world.put(csi_node("b", {}, migrated))
    with pytest.raises(VolumeError, match=re.escape(f"could not translate pv: {problem}")):
        world.rejected(using("c"))
    world.put(volume("far", at={ZONE: ["z1"]}), claim("d", volume_name="far"))
    assert world.rejected(using("d", "c")) == ["b"], "of a node that another volume rules out nothing is asked"


@pytest.mark.parametrize(
    ("at", "labels", "reached_from"),
    [
        (None, {ZONE: "z1"}, ["a"]),
        (None, {"failure-domain.beta.kubernetes.io/zone": "z2"}, ["b"]),
        (None, {ZONE: "z1__z2"}, ["a", "b"]),
        (None, {ZONE: " z1 __"}, ["a"]),
        (None, {ZONE: ""}, ["a", "b"]),
        (None, {"topology.kubernetes.io/region": "r", "failure-domain.beta.kubernetes.io/zone": "z1"}, ["a"]),
        ({ZONE: ["z2"]}, {ZONE: "z1"}, ["b"]),
        ({ZONE: []}, {ZONE: "z1"}, []),
        ({"failure-domain.beta.kubernetes.io/region": ["r"]}, {}, []),
    ],
    ids=[
        "label",
        "old label",
        "two zones",
        "odd label",
        "empty label",
        "mixed labels",
        "affinity",
        "no values",
        "region",
    ],
)
def test_the_zone_of_a_migrated_volume(at: Object | None, labels: Object, reached_from: list[str]) -> None:
    nodes = [node(name).label("topology.ebs.csi.aws.com/zone", zone) for name, zone in (("a", "z1"), ("b", "z2"))]
    world = BindingWorld(*nodes)
    world.put(volume("v", at=at, labels=labels, awsElasticBlockStore={"volumeID": "vol-1"}))
    world.put(claim("c", volume_name="v"), csi_node("a", {}, EBS), csi_node("b", {}, EBS))
    assert sorted({"a", "b"} - set(world.rejected(using("c")))) == reached_from


def test_azure_disks_keep_their_own_labels() -> None:
    world = two_zones(volume("v", labels={ZONE: "z1"}, azureDisk={"diskURI": "d"}), claim("c", volume_name="v"))
    world.put(csi_node("a", {}, "kubernetes.io/azure-disk"))
    assert world.rejected(using("c")) == []


# --- volumes that exist and are free -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offered", "fits"),
    [
        (volume("v", class_name="local"), True),
        (volume("v", class_name="other"), False),
        (volume("v", class_name="local", size="1Mi"), False),
        (volume("v", class_name="local", volumeMode="Block"), False),
        (volume("v", class_name="local", accessModes=["ReadOnlyMany"]), False),
        (volume("v", class_name="local", deletionTimestamp="2026-01-01T00:00:00Z"), False),
        (volume("v", class_name="local", volumeAttributesClassName="gold"), False),
        (volume("v", class_name="local", claimRef={"namespace": "default", "name": "else"}), False),
        ({**volume("v", class_name="local"), "status": {"phase": "Released"}}, False),
    ],
    ids=["good", "class", "size", "mode", "access", "deleting", "attributes", "claimed", "not available"],
)
def test_which_free_volume_a_claim_may_take(offered: Object, fits: bool) -> None:
    world = two_zones(LOCAL, claim("c", class_name="local"), offered)
    assert world.messages(using("c"))["a"] == ([] if fits else [BIND_CONFLICT])


def test_a_claim_may_choose_volumes_by_label() -> None:
    wanted = claim("c", class_name="local", spec={"selector": {"matchLabels": {"tier": "gold"}}})
    world = two_zones(LOCAL, wanted, volume("v", class_name="local", at={ZONE: ["z1"]}))
    assert world.rejected(using("c")) == ["a", "b"]
    world.put(volume("w", class_name="local", at={ZONE: ["z2"]}, labels={"tier": "gold"}))
    assert world.rejected(using("c")) == ["a"]


def test_each_claim_needs_a_volume_of_its_own() -> None:
    world = two_zones(LOCAL, claim("c", class_name="local"), claim("d", class_name="local"))
    world.put(*(volume(f"a{n}", class_name="local", at={HOSTNAME: ["a"]}) for n in range(2)))
    world.put(volume("b0", class_name="local", at={HOSTNAME: ["b"]}))
    assert world.messages(using("c", "d")) == {"a": [], "b": [BIND_CONFLICT]}


def test_a_volume_reserved_for_the_claim_is_the_only_one() -> None:
    mine: Object = {"claimRef": {"namespace": "default", "name": "c"}}
    world = two_zones(LOCAL, claim("c", class_name="local"))
    world.put(volume("v", class_name="local", at={ZONE: ["z1"]}, **mine), volume("w", class_name="local"))
    assert world.rejected(using("c")) == ["b"]


# --- volumes that would have to be made --------------------------------------------------------------------------


def test_a_volume_can_be_made_where_the_class_allows() -> None:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z2", "z3"]}]}]
    world = two_zones(storage_class("s", allowedTopologies=allowed), claim("c", class_name="s"))
    assert world.messages(using("c")) == {"a": [BIND_CONFLICT], "b": []}


def test_a_claim_stays_with_the_node_that_was_selected_for_it() -> None:
    selected = {"volume.kubernetes.io/selected-node": "b"}
    world = two_zones(storage_class("s"), claim("c", class_name="s", annotations=selected))
    assert world.messages(using("c")) == {"a": [BIND_CONFLICT], "b": []}


def in_zone(zone: str) -> Object:
    return {"matchLabels": {ZONE: zone}}


@pytest.mark.parametrize(
    ("driver", "capacities", "rejected"),
    [
        ([], [], []),
        ([csi_driver(DRIVER)], [], []),
        ([csi_driver(DRIVER, storageCapacity=True)], [], ["a", "b"]),
        ([csi_driver(DRIVER, storageCapacity=True)], [capacity("x", "s", "5Gi", in_zone("z1"))], ["b"]),
        ([csi_driver(DRIVER, storageCapacity=True)], [capacity("x", "s", "5Mi", {})], ["a", "b"]),
        ([csi_driver(DRIVER, storageCapacity=True)], [capacity("x", "other", "5Gi", {})], ["a", "b"]),
        ([csi_driver(DRIVER, storageCapacity=True)], [capacity("x", "s", "5Gi", None)], ["a", "b"]),
        (
            [csi_driver(DRIVER, storageCapacity=True)],
            [capacity("x", "s", "5Gi", {}, maximumVolumeSize="5Mi")],
            ["a", "b"],
        ),
    ],
    ids=["no driver", "unlimited", "nothing left", "one zone", "too small", "other class", "no access", "too large"],
)
def test_storage_that_drivers_have_left(driver: list[Object], capacities: list[Object], rejected: list[str]) -> None:
    world = two_zones(storage_class("s"), claim("c", class_name="s"), *driver, *capacities)
    assert world.messages(using("c")) == {name: [NO_SPACE] if name in rejected else [] for name in ("a", "b")}


def test_all_reasons_of_a_node_are_reported() -> None:
    world = two_zones(
        LOCAL, volume("v", at={ZONE: ["z2"]}), claim("c", volume_name="v"), claim("d", class_name="local")
    )
    assert world.messages(using("c", "d")) == {"a": [BIND_CONFLICT, NODE_CONFLICT], "b": [BIND_CONFLICT]}
    world.remove(volume("v"))
    assert world.messages(using("c", "d"))["a"] == sorted([BIND_CONFLICT, NO_VOLUME])


# --- answers that are remembered ---------------------------------------------------------------------------------


def test_a_claim_like_the_one_before_sees_what_has_changed() -> None:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z2"]}]}]
    also = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z1", "z2"]}]}]
    world = two_zones(storage_class("s", allowedTopologies=allowed))
    world.put(claim("c", class_name="s"), claim("d", class_name="s"), claim("e", class_name="s"))
    assert world.rejected(using("c")) == ["a"]
    world.put(storage_class("s", allowedTopologies=also))
    assert world.rejected(using("d")) == [], "the class allows more"
    world.put(csi_driver(DRIVER, storageCapacity=True))
    assert world.rejected(using("e")) == ["a", "b"], "the driver has begun to count"
    world.put(capacity("x", "s", "5Gi", in_zone("z1")))
    assert world.rejected(using("c")) == ["b"], "there is something left in one zone"
    world.remove(capacity("x", "s", "5Gi", in_zone("z1")))
    assert world.rejected(using("d")) == ["a", "b"]
    world.put(volume("v", class_name="s", at={ZONE: ["z2"]}))
    assert world.rejected(using("e")) == ["a"], "a free volume has come"


def test_a_claim_with_a_volume_of_its_own_is_not_like_the_one_before() -> None:
    world = two_zones(LOCAL, claim("c", class_name="local"), claim("d", class_name="local"))
    world.put(volume("v", class_name="local", at={ZONE: ["z1"]}))
    assert world.rejected(using("c")) == ["b"]
    mine = {"namespace": "default", "name": "d"}
    world.put(volume("w", class_name="local", at={ZONE: ["z2"]}, claimRef=mine))
    assert world.rejected(using("d")) == ["a"]
    assert world.rejected(using("c")) == ["b"]


def test_nodes_that_come_later_are_judged() -> None:
    world = two_zones(LOCAL, claim("c", class_name="local"), volume("v", class_name="local", at={HOSTNAME: ["new"]}))
    assert world.rejected(using("c")) == ["a", "b"]
    world.cluster.put_node(node("new").build())
    world.cluster.put_node(node("newer").build())
    assert world.rejected(using("c")) == ["a", "b", "newer"]


def test_a_claim_with_a_selected_node_is_not_like_the_one_before() -> None:
    selected = {"volume.kubernetes.io/selected-node": "b"}
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z1", "z2"]}]}]
    world = two_zones(storage_class("s", allowedTopologies=allowed), claim("c", class_name="s"))
    assert world.rejected(using("c")) == []
    world.put(claim("d", class_name="s", annotations=selected))
    assert world.rejected(using("d")) == ["a"]


def test_a_node_may_go_back_to_the_in_tree_plugin() -> None:
    world = BindingWorld(node("a").label("topology.gke.io/zone", "z1"))
    world.put(volume("v", at={ZONE: ["z1"]}, gcePersistentDisk={"pdName": "d"}), claim("c", volume_name="v"))
    world.put(csi_node("a", {}, "kubernetes.io/gce-pd"))
    assert world.rejected(using("c")) == []
    world.put(csi_node("a", {}))
    assert world.rejected(using("c")) == ["a"]
