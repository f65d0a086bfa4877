"""Calls that bind storage: what changes and nothing else, and only if the object is the one that was decided about."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from functools import partial

import msgspec
import pytest

from pilotage.api.calls import ApiCall, Ending, Lane, ObjectChanged, Outcome, Seen
from pilotage.calls.call_queue import CallQueue
from pilotage.calls.volumes import ProvisioningOrder, VolumeReservation
from pilotage.kube.client import ApiStatusError, KubeClient
from pilotage.model import KINDS
from pilotage.model.meta import ObjectReference
from pilotage.model.storage import PersistentVolume, PersistentVolumeClaim
from pilotage.sandbox.api import Api
from pilotage.sandbox.http.inprocess import InProcessTransport
from pilotage.sandbox.http.server import ApiServer
from pilotage.sandbox.storage.store import Store
from pilotage.testing import VirtualClock

VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "v", "annotations": {"keep": "me"}},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/x", "type": "Directory"},
    },
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "c", "namespace": "default"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


class Server:
    """An API server that enforces resource versions."""

    def __init__(self) -> None:
        clock = VirtualClock()
        self.api = Api(Store(history=1000), clock=clock, rng=random.Random(1))
        self.client = KubeClient(InProcessTransport(ApiServer(self.api, token=None, clock=clock)))
        self.api.create("persistentvolumes", "", deepcopy(VOLUME))
        self.api.create("persistentvolumeclaims", "default", deepcopy(CLAIM))

    def volume(self) -> PersistentVolume:
        found: PersistentVolume = KINDS["persistentvolumes"].decode(
            msgspec.json.encode(self.api.get("persistentvolumes", "", "v"))
        )
        return found

    def claim(self) -> PersistentVolumeClaim:
        found: PersistentVolumeClaim = KINDS["persistentvolumeclaims"].decode(
            msgspec.json.encode(self.api.get("persistentvolumeclaims", "default", "c"))
        )
        return found


def reservation(server: Server) -> VolumeReservation:
    volume, claim = server.volume(), server.claim()
    reference = ObjectReference(kind="PersistentVolumeClaim", namespace="default", name="c", uid=claim.uid)
    metadata = msgspec.structs.replace(volume.metadata, annotations={**volume.annotations, "more": "yes"})
    spec = msgspec.structs.replace(volume.spec, claim_ref=reference)
    return VolumeReservation(msgspec.structs.replace(volume, metadata=metadata, spec=spec))


def order(server: Server) -> ProvisioningOrder:
    return ProvisioningOrder(server.claim(), "n1")


async def test_a_reservation_changes_nothing_else() -> None:
    server = Server()
    call = reservation(server)
    await call.perform(server.client)
    written = server.api.get("persistentvolumes", "", "v")
    assert written["spec"]["claimRef"]["uid"] == server.claim().uid
    assert written["metadata"]["annotations"] == {"keep": "me", "more": "yes"}
    assert written["spec"]["hostPath"] == {"path": "/x", "type": "Directory"}
    assert call.written_version == written["metadata"]["resourceVersion"]


async def test_an_order_names_the_node() -> None:
    server = Server()
    call = order(server)
    await call.perform(server.client)
    metadata = server.api.get("persistentvolumeclaims", "default", "c")["metadata"]
    assert metadata["annotations"]["volume.kubernetes.io/selected-node"] == "n1"
    assert call.written_version == metadata["resourceVersion"]


def test_pods_share_an_order_for_the_same_node_and_no_other() -> None:
    server, told = Server(), dict[str, Outcome]()
    queue = CallQueue()
    for name, node in (("first", "n1"), ("second", "n1"), ("elsewhere", "n2")):
        queue.add(ProvisioningOrder(server.claim(), node), partial(told.__setitem__, name), 0.0)
    assert {name: outcome.ending for name, outcome in told.items()} == dict.fromkeys(
        ("first", "second"), Ending.OVERWRITTEN
    )
    slot = queue.next(Lane.VOLUME)
    assert slot is not None
    for name, node in (("in flight", "n2"), ("behind", "n1")):
        queue.add(ProvisioningOrder(server.claim(), node), partial(told.__setitem__, name), 0.0)
    queue.done(slot)
    assert told["elsewhere"].ending is told["in flight"].ending is Ending.DONE
    assert "behind" not in told, "it waits for its own order"


@pytest.mark.parametrize("make", [reservation, order])
async def test_an_object_that_changed_meanwhile_is_left_alone(make: Callable[[Server], ApiCall]) -> None:
    server = Server()
    call = make(server)
    for resource, namespace, name in (("persistentvolumes", "", "v"), ("persistentvolumeclaims", "default", "c")):
        changed = server.api.get(resource, namespace, name)
        changed["metadata"].setdefault("labels", {})["new"] = "yes"
        server.api.update(resource, namespace, name, changed)
    with pytest.raises(ApiStatusError) as refused:
        await call.perform(server.client)
    assert refused.value.code == 409
    assert server.volume().spec.claim_ref is None
    assert not server.claim().annotations.get("volume.kubernetes.io/selected-node")


@pytest.mark.parametrize("make", [reservation, order])
async def test_a_look_says_whether_a_call_without_an_answer_was_done(make: Callable[[Server], ApiCall]) -> None:
    server = Server()
    call, lost = make(server), make(server)
    assert await call.look(server.client) == Seen(False), "it may be tried again"
    await lost.perform(server.client)
    assert await call.look(server.client) == Seen(True)
    assert isinstance(call, VolumeReservation | ProvisioningOrder) and isinstance(lost, type(call))
    assert call.written_version == lost.written_version


@pytest.mark.parametrize("make", [reservation, order])
async def test_a_look_at_an_object_that_changed_ends_the_call(make: Callable[[Server], ApiCall]) -> None:
    server = Server()
    call = make(server)
    for resource, namespace, name in (("persistentvolumes", "", "v"), ("persistentvolumeclaims", "default", "c")):
        changed = server.api.get(resource, namespace, name)
        changed["metadata"].setdefault("labels", {})["new"] = "yes"
        server.api.update(resource, namespace, name, changed)
    with pytest.raises(ObjectChanged, match="was changed by another client"):
        await call.look(server.client)


def test_calls_are_made_in_their_own_lane() -> None:
    server = Server()
    assert {reservation(server).lane, order(server).lane} == {Lane.VOLUME}
    assert reservation(server).object_key == server.volume().uid
    assert order(server).object_key == server.claim().uid
