"""VolumeRestrictions: disks with one user at a time, claims for one pod."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.api import Action, CycleState, Hint, Resource
from pilotage.api.results import SKIP
from pilotage.cluster.node_view import ImaginedNode, RowView
from pilotage.plugins import VolumeRestrictions
from pilotage.testing import node, pod
from tests.plugins.one_plugin import hint
from tests.plugins.volume_world import VolumeWorld, claim, mounting, using

DISK = "node(s) had no available disk"
ONE_POD = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
ALONE: dict[str, Any] = {"spec": {"accessModes": ["ReadWriteOncePod"]}}


def gce(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(iqn: str, read_only: bool = False) -> dict[str, Any]:
    return {"iscsi": {"targetPortal": "t", "iqn": iqn, "lun": 0, "readOnly": read_only}}


def rbd(image: str, *monitors: str, pool: str = "p", read_only: bool = False) -> dict[str, Any]:
    return {"rbd": {"image": image, "monitors": list(monitors), "pool": pool, "readOnly": read_only}}


@pytest.mark.parametrize(
    ("there", "wanted", "is_rejected"),
    [
        (gce("a"), gce("a"), True),
        (gce("a"), gce("b"), False),
        (gce("a", True), gce("a", True), False),
        (gce("a", True), gce("a"), True),
        (ebs("a", True), ebs("a", True), True),
        (ebs("a"), gce("a"), False),
        (iscsi("q"), iscsi("q"), True),
        (iscsi("q", True), iscsi("q", True), False),
        (rbd("i", "m1", "m2"), rbd("i", "m2", "m3"), True),
        (rbd("i", "m1"), rbd("i", "m2"), False),
        (rbd("i", "m1", pool="x"), rbd("i", "m1"), False),
        (rbd("i", "m1", read_only=True), rbd("i", "m1", read_only=True), False),
    ],
)
def test_which_disks_exclude_each_other(there: dict[str, Any], wanted: dict[str, Any], is_rejected: bool) -> None:
    world = VolumeWorld(VolumeRestrictions, node("n"), node("free"), pods=[mounting("u", there).node("n")])
    assert world.messages(mounting("p", wanted)) == {"n": [DISK] if is_rejected else [], "free": []}


def test_a_disk_is_free_again_when_its_user_is_gone() -> None:
    user = mounting("u", ebs("a")).node("n")
    world = VolumeWorld(VolumeRestrictions, node("n"), pods=[user])
    assert world.rejected(mounting("p", ebs("a"))) == ["n"]
    world.cluster.remove_pod(user.build().uid)
    assert world.rejected(mounting("p", ebs("a"))) == []


def test_a_claim_for_one_pod_is_taken_everywhere() -> None:
    world = VolumeWorld(VolumeRestrictions, node("n"), node("m"), pods=[using("c", name="u").node("n")])
    world.put(claim("c", **ALONE))
    assert world.messages(using("c")) == {"n": [ONE_POD], "m": [ONE_POD]}


def test_a_user_on_a_node_that_is_gone_does_not_count() -> None:
    world = VolumeWorld(VolumeRestrictions, node("n"), pods=[using("c", name="u").node("gone")])
    world.put(claim("c", **ALONE))
    assert world.pre_filter(using("c")) is SKIP


@pytest.mark.parametrize("waiting", [pod("p"), using("shared"), mounting("p", {"emptyDir": {}})])
def test_pods_without_such_volumes_are_skipped(waiting: Any) -> None:
    world = VolumeWorld(VolumeRestrictions, node("n"), pods=[using("shared", name="u").node("n")])
    world.put(claim("shared"))
    assert world.pre_filter(waiting) is SKIP


def test_a_missing_claim_is_named() -> None:
    world = VolumeWorld(VolumeRestrictions, node("n"))
    assert world.messages(using("nope")) == {"n": ['persistentvolumeclaim "nope" not found']}
    assert world.pre_filter(using("nope")).unresolvable


def test_the_claim_is_free_when_its_user_is_imagined_away() -> None:
    user = using("c", name="u").node("n").build()
    world = VolumeWorld(VolumeRestrictions, node("n"), pods=[using("c", name="u").node("n")])
    world.put(claim("c", **ALONE))
    state, waiting = CycleState(), using("c").build()
    world.plugin.pre_filter(state, waiting, world.cluster.nodes)
    trial = state.clone()
    place = ImaginedNode(RowView(world.cluster.nodes, 0))
    place.remove(user)
    world.plugin.remove_pod(trial, waiting, user, place)
    assert world.plugin.filter(trial, waiting, place) is None
    assert world.plugin.filter(state, waiting, RowView(world.cluster.nodes, 0)) is not None, "only the trial changes"
    world.plugin.add_pod(trial, waiting, user, place)
    assert world.plugin.filter(trial, waiting, place) is not None


@pytest.mark.parametrize(
    ("gone", "answer"),
    [
        (using("c", name="u"), Hint.QUEUE),
        (using("d", name="u"), Hint.SKIP),
        (mounting("u", ebs("a")), Hint.SKIP),
        (using("c", name="u").namespace("other"), Hint.SKIP),
    ],
)
def test_the_end_of_a_user_may_help(gone: Any, answer: Hint) -> None:
    plugin = VolumeWorld(VolumeRestrictions).plugin
    assert hint(plugin, Resource.ASSIGNED_POD, Action.DELETE, using("c"), gone.node("n"), None) is answer
