"""VolumeZone: nodes in the zone of the volumes that a pod mounts."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.api.results import SKIP
from pilotage.plugins import VolumeZone
from pilotage.testing import NodeBuilder, node, pod
from tests.plugins.volume_world import ZONE, VolumeWorld, claim, storage_class, using, volume

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
CONFLICT = "node(s) had no available volume zone"


def world_of(labels: dict[str, str], *nodes: NodeBuilder) -> VolumeWorld:
    world = VolumeWorld(VolumeZone, *nodes)
    world.put(volume("v", labels=labels), claim("c", volume_name="v"))
    return world


@pytest.mark.parametrize(
    ("labels", "there", "fits"),
    [
        ({ZONE: "a"}, node("n").zone("a"), True),
        ({ZONE: "a"}, node("n").zone("b"), False),
        ({ZONE: "a__b"}, node("n").zone("b"), True),
        ({ZONE: "a"}, node("n"), True),
        ({ZONE: "a"}, node("n").region("r"), False),
        ({ZONE: "a", REGION: "r"}, node("n").zone("a").region("other"), False),
        ({BETA_ZONE: "a"}, node("n").zone("a"), True),
        ({BETA_ZONE: "a"}, node("n").label(BETA_ZONE, "b").zone("a"), False),
        ({ZONE: "a"}, node("n").label(BETA_ZONE, "a"), False),
    ],
    ids=["same", "other", "one of", "no zone", "only region", "region", "old on volume", "old on both", "old on node"],
)
def test_zones(labels: dict[str, str], there: NodeBuilder, fits: bool) -> None:
    assert world_of(labels, there).messages(using("c")) == {"n": [] if fits else [CONFLICT]}


@pytest.mark.parametrize("labels", [{}, {"other": "x"}, {ZONE: ""}, {ZONE: "a__"}])
def test_a_volume_without_a_usable_zone_says_nothing(labels: dict[str, str]) -> None:
    assert world_of(labels, node("n").zone("b")).pre_filter(using("c")) is SKIP


def test_pods_without_claims_are_skipped() -> None:
    assert VolumeWorld(VolumeZone, node("n")).pre_filter(pod("p")) is SKIP


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        ([claim("c", volume_name="v")], 'persistentvolume "v" not found'),
        ([claim("c")], "PersistentVolumeClaim had no pv name and storageClass name"),
        ([claim("c", class_name="s")], 'storageclass.storage.k8s.io "s" not found'),
        ([claim("c", class_name="s"), storage_class("s", waits=False)], "PersistentVolume had no name"),
        (
            [claim("c", class_name="s"), {**storage_class("s"), "volumeBindingMode": None}],
            'VolumeBindingMode not set for StorageClass "s"',
        ),
    ],
)
def test_what_cannot_be_known_is_rejected(objects: list[dict[str, Any]], message: str) -> None:
    world = VolumeWorld(VolumeZone, node("n"))
    world.put(*objects)
    assert world.messages(using("c")) == {"n": [message]}


def test_a_volume_that_will_be_made_for_the_pod_has_no_zone_yet() -> None:
    world = VolumeWorld(VolumeZone, node("n").zone("a"))
    world.put(claim("c", class_name="s"), storage_class("s"))
    assert world.pre_filter(using("c")) is SKIP
