"""What goes wrong with claims and devices, with the whole scheduler and a sandbox: the reason names the object, nothing
is half written, and the pod is scheduled when the trouble is over."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.plugins.dynamic_resources.claim_book import ClaimBook
from tests.plugins.dynamic_resources.conflicting_transport import ConflictingTransport
from tests.plugins.dynamic_resources.live_cluster import CLAIMS, Json, Live, live

_MINE = [{"name": "d", "resourceClaimName": "mine"}]
_CLASSES = "deviceclasses.resource.k8s.io"


def _status(cluster: Live, name: str = "mine") -> Json:
    status: Json = cluster.api.get(CLAIMS, "default", name).get("status") or {}
    return status


def _selecting(expression: str) -> Json:
    return {"name": "r0", "exactly": {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}]}}


async def test_a_conflict_is_tried_again_with_the_claim_as_it_is_now() -> None:
    transports: list[ConflictingTransport] = []

    def conflicting(inner: Any) -> ConflictingTransport:
        transports.append(ConflictingTransport(inner, conflicts=3))
        return transports[0]

    async with live(transport=conflicting) as cluster:
        cluster.publish("node-00001", "only")
        cluster.claim("mine")
        cluster.pod("p", _MINE)
        await cluster.after(5)
        assert transports[0].left == 0
        assert cluster.node_of("p") == "node-00001"
        assert cluster.scheduler.metrics.schedule_attempts_total.value("error", "default-scheduler") == 0


async def test_conflicts_that_do_not_end_send_the_pod_back_and_nothing_stays_allocated() -> None:
    def conflicting(inner: Any) -> ConflictingTransport:
        return ConflictingTransport(inner, conflicts=5)

    async with live(transport=conflicting) as cluster:
        cluster.publish("node-00001", "only")
        cluster.claim("mine")
        cluster.pod("p", _MINE)
        await cluster.after(0.9)
        assert cluster.node_of("p") == ""
        assert "allocation" not in _status(cluster)
        book = cluster.scheduler.cluster.index(ClaimBook)
        book.check()
        await cluster.after(20)
        assert cluster.node_of("p") == "node-00001"
        assert [user["name"] for user in _status(cluster)["reservedFor"]] == ["p"]


async def test_binding_conditions_are_waited_for_and_told_in_an_event() -> None:
    conditions = {"bindingConditions": ["attached"], "bindingFailureConditions": ["broken"], "bindsToNode": True}
    async with live() as cluster:
        cluster.publish("node-00001", {"name": "far", **conditions})
        cluster.claim("mine")
        cluster.pod("p", _MINE)
        await cluster.after(20)
        assert cluster.node_of("p") == "", "the device is not attached yet"
        note = "waiting for binding conditions for device on node node-00001"
        assert ("BindingConditionsPending", note) in cluster.events("p")
        claim = cluster.api.get(CLAIMS, "default", "mine")
        ready = {"type": "attached", "status": "True", "reason": "Done", "message": ""}
        where = {"driver": "d.example.com", "pool": "node-00001", "device": "far"}
        claim["status"]["devices"] = [
            {**where, "conditions": [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
        ]
        cluster.api.update(CLAIMS, "default", "mine", claim, "status")
        await cluster.after(6)
        assert cluster.node_of("p") == "node-00001"
        outcomes = cluster.scheduler.metrics.dra_bindingconditions_allocations_total
        assert outcomes.value("default-scheduler", "d.example.com", "success") == 1


BAD_CLAIMS = {
    "does not compile": (
        _selecting("device.driver =="),
        "claim default/mine: selector #0: CEL compile error",
    ),
    "fails on one device": (
        _selecting('device.attributes["d.example.com"].memory > 1'),
        "selector #0 on device d.example.com/node-00001/only: CEL runtime error: no such key: memory",
    ),
    "costs too much": (
        _selecting("lists.range(99).all(a, lists.range(99).all(b, lists.range(99).all(c, a+b+c > 0)))"),
        "claim default/mine: selector #0: CEL compile error: too complex, exceeds cost limit",
    ),
    "missing class": (
        {"name": "r0", "exactly": {"deviceClassName": "fast"}},
        "request r0: device class fast does not exist",
    ),
}


@pytest.mark.parametrize(("request_", "reason"), BAD_CLAIMS.values(), ids=BAD_CLAIMS.keys())
async def test_a_claim_that_cannot_be_understood_is_named_and_harms_nobody_else(request_: Json, reason: str) -> None:
    async with live() as cluster:
        cluster.publish("node-00001", "only")
        cluster.claim("mine", request_)
        cluster.pod("p", _MINE)
        await cluster.after(3)
        assert reason in cluster.why("p")
        assert "allocation" not in _status(cluster)
        cluster.claim("good")
        cluster.pod("q", [{"name": "d", "resourceClaimName": "good"}])
        await cluster.after(3)
        assert cluster.node_of("q") == "node-00001"


async def test_a_class_that_comes_later_lets_the_pod_in() -> None:
    async with live() as cluster:
        cluster.publish("node-00001", "only")
        cluster.claim("mine", {"name": "r0", "exactly": {"deviceClassName": "fast"}})
        cluster.pod("p", _MINE)
        await cluster.after(3)
        cluster.api.create(_CLASSES, "", {"metadata": {"name": "fast"}, "spec": {}})
        await cluster.after(15)
        assert cluster.node_of("p") == "node-00001"


async def test_an_unfinished_pool_gives_nothing_until_it_is_complete() -> None:
    async with live() as cluster:
        cluster.publish("node-00001", "a", resourceSliceCount=2)
        cluster.claim("mine")
        cluster.pod("p", _MINE)
        await cluster.after(3)
        assert "cannot allocate all claims" in cluster.why("p")
        assert "allocation" not in _status(cluster)
        cluster.publish_more("node-00001", "slice-z", "b", resourceSliceCount=2)
        await cluster.after(15)
        assert cluster.allocated() == {"mine": ["a"]}
        assert cluster.node_of("p") == "node-00001"


async def test_a_lost_volume_claim_is_named() -> None:
    async with live() as cluster:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "gone"}
        metadata = {"name": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        cluster.api.create("persistentvolumeclaims", "default", {"metadata": metadata, "spec": spec})
        container = {"name": "c", "image": "i"}
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [container], "volumes": volumes}}
        cluster.api.create("pods", "default", pod)
        await cluster.after(10)
        assert 'persistentvolumeclaim "data" bound to non-existent persistentvolume "gone"' in cluster.why("p")
