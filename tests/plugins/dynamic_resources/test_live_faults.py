"""Pods share claims while the API server misbehaves: all are scheduled, and every reservation and device is right."""

from __future__ import annotations

from collections import Counter

import pytest

from pilotage.plugins.dynamic_resources.claim_book import ClaimBook
from tests.plugins.dynamic_resources.live_cluster import CLAIMS, Live, live

FAULTS = {
    "conflicts": ("409,resource=resourceclaims/status,p=0.4",),
    "errors": ("500,p=0.3",),
    "throttled": ("429=1s,p=0.3",),
    "lost before": ("reset-before,p=0.3",),
    "lost after": ("reset-after,p=0.3",),
    "lost reservations": ("reset-after,resource=resourceclaims/status,p=0.8,times=20",),
    "no answer": ("slow=45s,resource=resourceclaims/status,p=0.5,times=6",),
    "everything": ("409,p=0.1", "500,p=0.1", "reset-before,p=0.1", "reset-after,p=0.1", "slow=1s,p=0.2"),
}
SHARED = ("s0", "s1")
PODS = [f"p{number}" for number in range(8)]


def _furnish(cluster: Live) -> None:
    cluster.publish("node-00001", *(f"a{number}" for number in range(5)))
    cluster.publish("node-00002", *(f"b{number}" for number in range(5)))
    for name in SHARED:
        cluster.claim(name)
    for number, name in enumerate(PODS):
        own = {"name": "own", "resourceClaimTemplateName": "t"}
        cluster.pod(name, [{"name": "shared", "resourceClaimName": SHARED[number % 2]}] + ([own] if number < 4 else []))


def _check(cluster: Live) -> None:
    nodes = {name: cluster.node_of(name) for name in PODS}
    assert all(nodes.values()), nodes
    devices = Counter(device for devices in cluster.allocated().values() for device in devices)
    assert devices and max(devices.values()) == 1, "a device has one owner"
    for number, name in enumerate(SHARED):
        users = cluster.api.get(CLAIMS, "default", name)["status"]["reservedFor"]
        assert sorted(user["name"] for user in users) == PODS[number::2]
        where = cluster.allocated()[name][0]
        assert {nodes[pod] for pod in PODS[number::2]} == {"node-00001" if where[0] == "a" else "node-00002"}
    cluster.scheduler.cluster.index(ClaimBook).check()
    cluster.scheduler.dispatcher.queue.check()
    assert cluster.scheduler.dispatcher.is_idle


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS.keys())
async def test_shared_claims_are_right_in_the_end(faults: tuple[str, ...]) -> None:
    async with live(faults=faults) as cluster:
        _furnish(cluster)
        await cluster.after(600)
        assert cluster.faults is not None and sum(cluster.faults.hits) > 0, "there were faults"
        _check(cluster)
