"""Volume plugins on random clusters that change: columns = node by node, kept counts = counts from scratch.

One world lives through all changes, so that what the plugins remember of pods, volumes and claims is on trial too.
`VolumeWorld.reasons` compares columns with single nodes whenever it is asked.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilotage.api import CycleState
from pilotage.model import Pod
from pilotage.plugins import NodeVolumeLimits, VolumeBinding, VolumeRestrictions, VolumeZone
from pilotage.plugins.args import VolumeBindingArgs
from pilotage.plugins.volume_binding.catalog import VolumeCatalog
from pilotage.plugins.volume_binding.claims import VolumeError
from pilotage.testing import NodeBuilder, PodBuilder, node, pod
from tests.plugins.volume_world import (
    HOSTNAME,
    ZONE,
    Object,
    VolumeWorld,
    attachment,
    capacity,
    claim,
    csi_driver,
    csi_node,
    storage_class,
    volume,
)

NODES = [f"n{number}" for number in range(4)]
CLAIMS = [f"c{number}" for number in range(5)]
VOLUMES = [f"v{number}" for number in range(5)]
CLASSES = ["local", "made", "made", "now"]
DRIVERS = ["csi.example.com", "ebs.csi.aws.com"]
MIGRATED = ["", "kubernetes.io/aws-ebs", "kubernetes.io/gce-pd,kubernetes.io/aws-ebs"]
PLUGINS: dict[str, Any] = {
    "VolumeRestrictions": VolumeRestrictions,
    "NodeVolumeLimits": NodeVolumeLimits,
    "VolumeBinding": lambda handle: VolumeBinding(handle, VolumeBindingArgs()),
    "VolumeZone": VolumeZone,
}


class Dice(random.Random):
    """Random parts of a cluster, dense enough that most rules matter."""

    def happens(self, percent: int) -> bool:
        return self.random() * 100 < percent

    def node(self) -> NodeBuilder:
        built = node(self.choice(NODES))
        if self.happens(80):
            built = built.zone(self.choice("ab"))
        if self.happens(30):
            built = built.label("failure-domain.beta.kubernetes.io/zone", self.choice("ab"))
        if self.happens(30):
            built = built.label("topology.ebs.csi.aws.com/zone", self.choice("ab"))
        return built

    def pod(self, name: str) -> PodBuilder:
        volumes: list[Object] = []
        for at in range(self.choice([0, 1, 1, 1, 2, 3])):
            kind = self.randrange(10)
            source: Object = {"persistentVolumeClaim": {"claimName": self.choice(CLAIMS)}}
            if kind == 0:
                source = {"gcePersistentDisk": {"pdName": self.choice("ab"), "readOnly": self.happens(50)}}
            elif kind == 1:
                source = {"awsElasticBlockStore": {"volumeID": f"vol-{self.randrange(3)}"}}
            elif kind == 2:
                source = {"rbd": {"image": "i", "monitors": self.sample("xyz", 2), "readOnly": self.happens(50)}}
            volumes.append({"name": f"m{at}", **source})
        return pod(name).spec(volumes=volumes)

    def claim(self) -> Object:
        mode = "ReadWriteOncePod" if self.happens(20) else "ReadWriteOnce"
        more: Object = {"spec": {"accessModes": [mode]}}
        if self.happens(8):
            more["annotations"] = {"volume.kubernetes.io/selected-node": self.choice(NODES)}
        name = self.choice(VOLUMES) if self.happens(40) else ""
        size = f"{self.randint(1, 6)}Gi"
        return claim(self.choice(CLAIMS), class_name=self.choice(CLASSES), volume_name=name, size=size, **more)

    def volume(self) -> Object:
        more: Object = {"labels": {ZONE: self.choice(["a", "b", "a__b"])}} if self.happens(50) else {}
        if self.happens(60):
            more["at"] = {ZONE: self.sample("ab", 1)} if self.happens(50) else {HOSTNAME: self.sample(NODES, 2)}
        kind = self.randrange(4)
        if kind == 0:
            more["awsElasticBlockStore"] = {"volumeID": f"vol-{self.randrange(3)}"}
        elif kind == 1:
            more["gcePersistentDisk"] = {"pdName": self.choice("ab")}
        else:
            more["csi"] = {"driver": self.choice(DRIVERS), "volumeHandle": self.choice("xyz")}
        if self.happens(25):
            more["claimRef"] = {"namespace": "default", "name": self.choice(CLAIMS)}
        size = f"{self.randint(1, 8)}Gi"
        return volume(self.choice(VOLUMES), class_name=self.choice(CLASSES), size=size, **more)

    def other(self) -> Object:
        match self.randrange(5):
            case 0:
                limits: dict[str, int | None] = {driver: self.choice([None, 0, 1, 2]) for driver in DRIVERS}
                return csi_node(self.choice(NODES), limits, self.choice(MIGRATED))
            case 1:
                name = f"a{self.randrange(4)}"
                return attachment(name, self.choice(NODES), self.choice(VOLUMES), self.choice(DRIVERS))
            case 2:
                prevents = self.happens(30)
                storage = self.happens(60)
                return csi_driver(self.choice(DRIVERS), storageCapacity=storage, preventPodSchedulingIfMissing=prevents)
            case 3:
                where = [{"matchLabels": {ZONE: "a"}}, {}, None, {"matchLabels": {ZONE: "b", HOSTNAME: "n1"}}]
                return capacity(f"k{self.randrange(3)}", "made", f"{self.randint(1, 9)}Gi", self.choice(where))
        allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}] if self.happens(40) else []
        return storage_class("made", allowedTopologies=allowed)

    def change(self, world: VolumeWorld) -> None:
        """Something happens to the cluster."""
        match self.randrange(8):
            case 0:
                world.cluster.put_node(self.node().build())
            case 1 | 2:
                world.cluster.put_pod(self.pod(f"p{self.randrange(12)}").node(self.choice(NODES)).build())
            case 3:
                world.cluster.remove_pod(f"uid-default-p{self.randrange(12)}")
            case 4:
                world.put(self.claim())
            case 5:
                world.put(self.volume())
            case 6:
                world.put(self.other())
            case 7:
                world.remove(self.choice([self.claim, self.volume, self.other])())


def new_world(plugin: str) -> VolumeWorld:
    world = VolumeWorld(PLUGINS[plugin], *(node(name).zone("a") for name in NODES[:3]))
    world.put(storage_class("local", provisioner="kubernetes.io/no-provisioner"), storage_class("made"))
    world.put(storage_class("now", waits=False))
    dice = Dice(1)
    for _ in range(12):
        world.put(dice.claim(), dice.volume(), dice.other())
    return world


def copied(world: VolumeWorld, plugin: str) -> VolumeWorld:
    """The same cluster, and a plugin that sees it for the first time."""
    fresh = VolumeWorld(PLUGINS[plugin])
    for row in range(len(world.cluster.nodes)):
        fresh.cluster.put_node(world.cluster.nodes.node(row))
    for placed in world.cluster._placed.values():
        fresh.cluster.put_pod(placed.pod)
    for kind, objects in world.cluster._objects.items():
        for obj in objects.values():
            fresh.cluster.put_object(kind, obj)
    return fresh


def told(world: VolumeWorld, waiting: PodBuilder) -> dict[str, list[str]] | str:
    """Why each node is rejected; or the error, if a volume of an old plugin cannot be translated."""
    try:
        return world.messages(waiting)
    except VolumeError as error:
        return str(error)


@pytest.mark.parametrize("plugin", PLUGINS)
@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 40))
def test_columns_single_nodes_and_a_fresh_plugin_agree(plugin: str, seed: int, steps: int) -> None:
    dice, world = Dice(seed), new_world(plugin)
    for _ in range(steps):
        dice.change(world)
        if dice.happens(60):
            waiting = dice.pod("new")
            assert told(world, waiting) == told(copied(world, plugin), waiting)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 50))
def test_scores_of_columns_and_single_nodes_agree(seed: int, steps: int) -> None:
    dice, world = Dice(seed), new_world("VolumeBinding")
    for _ in range(steps):
        dice.change(world)
        waiting = dice.pod("new")
        if world.pre_filter(waiting) is None:
            assert world.raw_scores(waiting) == copied(world, "VolumeBinding").raw_scores(waiting)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 60))
@example(seed=277, steps=50)
def test_assumptions_are_made_once_and_all_can_be_taken_back(seed: int, steps: int) -> None:
    """No volume is assumed twice; when every pod has given back what it had, the world is as the API server has it."""
    dice, world = Dice(seed), new_world("VolumeBinding")
    reserved: list[tuple[CycleState, Pod, str]] = []
    for number in range(steps):
        if dice.happens(40):
            _place(world, dice.pod(f"new{number}"), dice, reserved)
        elif reserved and dice.happens(30):
            world.plugin.unreserve(*reserved.pop(dice.randrange(len(reserved))))
        else:
            dice.change(world)
        world.cluster.index(VolumeCatalog).check()
    for reservation in reserved:
        world.plugin.unreserve(*reservation)
    catalog = world.cluster.index(VolumeCatalog)
    catalog.check()
    assert catalog.assumed == 0
    waiting = dice.pod("last")
    assert _messages(world, waiting) == _messages(copied(world, "VolumeBinding"), waiting)


def _place(world: VolumeWorld, waiting: PodBuilder, dice: Dice, reserved: list[tuple[CycleState, Pod, str]]) -> None:
    """Reserve on a node that is not rejected, if there is one."""
    if world.pre_filter(waiting) is not None:
        return
    fitting = [name for name, messages in _messages(world, waiting).items() if not messages]
    if fitting:
        name = dice.choice(fitting)
        before = _assumed(world)
        state = world.reserved(waiting, name)
        reserved.append((state, waiting.build(), name))
        taken = [volume for volume, claim_key in before.items() if _assumed(world).get(volume) != claim_key]
        assert not taken, "what was assumed for one claim is not assumed for another"


def _messages(world: VolumeWorld, waiting: PodBuilder) -> dict[str, list[str]]:
    """Why each node is rejected; a volume that cannot be translated is an error, and the pod has no node then."""
    try:
        return world.messages(waiting)
    except VolumeError as error:
        return {"error": [str(error)]}


def _assumed(world: VolumeWorld) -> dict[str, str]:
    """Volume -> claim, of assumptions that stand."""
    assumed = world.cluster.index(VolumeCatalog)._assumed_volumes
    return {
        name: f"{v.spec.claim_ref.namespace}/{v.spec.claim_ref.name}" for name, v in assumed.items() if v.spec.claim_ref
    }
