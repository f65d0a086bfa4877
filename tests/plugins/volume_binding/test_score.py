"""Nodes with more free storage score higher, unless a configuration says otherwise."""

from __future__ import annotations

from pilotage.plugins.args import UtilizationShapePoint, VolumeBindingArgs
from pilotage.testing import node, pod
from tests.plugins.volume_binding.binding_world import BindingWorld, with_objects
from tests.plugins.volume_world import HOSTNAME, capacity, claim, csi_driver, storage_class, using, volume

NODES = (node("a"), node("b"))
FULLEST = VolumeBindingArgs(shape=(UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10)))


def at(name: str) -> dict[str, list[str]]:
    return {HOSTNAME: [name]}


def test_pods_without_claims_score_nothing() -> None:
    assert BindingWorld(*NODES).raw_scores(pod("p")) == {"a": 0, "b": 0}


def test_scoring_can_be_switched_off() -> None:
    assert BindingWorld(*NODES, args=VolumeBindingArgs(shape=None)).skips_score(pod("p"))
    assert not BindingWorld(*NODES).skips_score(pod("p"))


def test_a_volume_much_larger_than_the_claim_scores_higher() -> None:
    storage = (
        storage_class("local", provisioner="kubernetes.io/no-provisioner"),
        claim("c", class_name="local", size="5Gi"),
        volume("va", class_name="local", size="10Gi", at=at("a")),
        volume("vb", class_name="local", size="20Gi", at=at("b")),
    )
    assert with_objects(BindingWorld(*NODES), *storage).raw_scores(using("c")) == {"a": 50, "b": 75}
    assert with_objects(BindingWorld(*NODES, args=FULLEST), *storage).raw_scores(using("c")) == {"a": 50, "b": 25}


def test_volumes_to_be_made_are_taken_from_one_pool() -> None:
    pools = (
        storage_class("s"),
        csi_driver("csi.example.com", storageCapacity=True),
        claim("c", class_name="s", size="1Gi"),
        claim("d", class_name="s", size="2Gi"),
        capacity("ka", "s", "4Gi", {"matchLabels": {HOSTNAME: "a"}}),
        capacity("kb", "s", "30Gi", {"matchLabels": {HOSTNAME: "b"}}),
    )
    assert with_objects(BindingWorld(*NODES), *pools).raw_scores(using("c", "d")) == {"a": 25, "b": 90}


def test_classes_count_alike() -> None:
    storage = (
        storage_class("one", provisioner="kubernetes.io/no-provisioner"),
        storage_class("two", provisioner="kubernetes.io/no-provisioner"),
        claim("c", class_name="one", size="10Gi"),
        claim("d", class_name="two", size="1Gi"),
        volume("v", class_name="one", size="10Gi"),
        volume("w", class_name="two", size="4Gi"),
    )
    assert with_objects(BindingWorld(*NODES), *storage).raw_scores(using("c", "d"))["a"] == 38, "37.5 is rounded up"
