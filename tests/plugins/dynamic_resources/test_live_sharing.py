"""Pods that write to the same claim: never at the same time, and each gets what it asked for or nothing at all."""

from __future__ import annotations

from typing import Any

from pilotage.plugins.dynamic_resources.claim_book import ClaimBook
from tests.plugins.dynamic_resources.holding_transport import HoldingTransport
from tests.plugins.dynamic_resources.live_cluster import CLAIMS, Live, live

_SHARED = [{"name": "d", "resourceClaimName": "shared"}]


class Held:
    """Makes the transport and keeps it in reach."""

    transport: HoldingTransport

    def __call__(self, inner: Any) -> HoldingTransport:
        self.transport = HoldingTransport(inner)
        return self.transport


def _users(cluster: Live, name: str = "shared") -> list[str]:
    status = cluster.api.get(CLAIMS, "default", name).get("status") or {}
    return sorted(user["name"] for user in status.get("reservedFor") or ())


async def test_pods_that_come_while_a_claim_is_written_are_written_together_after_it() -> None:
    held = Held()
    async with live(transport=held) as cluster:
        cluster.publish("node-00001", "only")
        cluster.claim("shared")
        cluster.pod("first", _SHARED)
        await cluster.after(5)
        held.transport.writes.clear()
        held.transport.hold("shared")
        names = [f"p{number}" for number in range(5)]
        for name in names:
            cluster.pod(name, _SHARED)
            await cluster.after(0.2)
        assert held.transport.begun == 2, "the first one's, and that of the pod that came first"
        held.transport.let_go()
        await cluster.after(5)
        assert [cluster.node_of(name) for name in names] == ["node-00001"] * 5
        assert _users(cluster) == ["first", *names]
        assert [status for _, status in held.transport.writes] == [200, 200], "one pod, then the four that had to wait"
        assert not held.transport.has_raced


async def test_a_pod_that_is_called_back_while_its_claim_is_written_leaves_no_reservation_and_no_device_twice() -> None:
    held = Held()
    async with live(transport=held) as cluster:
        cluster.publish("node-00001", "only")
        cluster.claim("shared")
        cluster.claim("other")
        cpu = cluster.api.get("nodes", "", "node-00001")["status"]["allocatable"]["cpu"]
        held.transport.hold("shared")
        cluster.pod("modest", _SHARED, cpu=cpu)
        await cluster.after(2)
        assert held.transport.begun == 1
        _create_important_pod(cluster, cpu)
        await cluster.after(2)
        cluster.pod("waiting", [{"name": "d", "resourceClaimName": "other"}])
        await cluster.after(2)
        assert cluster.node_of("important") == "node-00001", "the modest one was called back"
        assert cluster.node_of("waiting") == "", "nobody gets a device that may just be written for somebody else"
        held.transport.let_go()
        await cluster.after(0.1)
        assert _users(cluster) == []
        await cluster.after(30)
        cluster.scheduler.cluster.index(ClaimBook).check()
        assert sorted(cluster.allocated().values()) in ([], [["only"]]), "one claim has it at most"
        assert not held.transport.has_raced


def _create_important_pod(cluster: Live, cpu: str) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    selector = {"kubernetes.io/hostname": "node-00001"}
    cluster.api.create(
        "priorityclasses.scheduling.k8s.io", "", {"metadata": {"name": "high"}, "value": 1000, "globalDefault": False}
    )
    spec = {"containers": [container], "priorityClassName": "high", "nodeSelector": selector}
    cluster.api.create("pods", "default", {"metadata": {"name": "important"}, "spec": spec})


async def test_members_share_the_claim_that_was_made_for_their_group() -> None:
    async with live() as cluster:
        cluster.publish("node-00001", "only")
        entry = {"name": "d", "resourceClaimTemplateName": "t"}
        spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": [entry]}
        cluster.api.create("podgroups.scheduling.k8s.io", "default", {"metadata": {"name": "g"}, "spec": spec})
        container = {"name": "c", "image": "i"}
        for name in "ab":
            member = {"containers": [container], "schedulingGroup": {"podGroupName": "g"}, "resourceClaims": [entry]}
            cluster.api.create("pods", "default", {"metadata": {"name": name}, "spec": member})
        await cluster.after(10)
        assert [cluster.node_of(name) for name in "ab"] == ["node-00001"] * 2
        (shared,) = cluster.api.list(CLAIMS, "default")
        (user,) = shared["status"]["reservedFor"]
        group = cluster.api.get("podgroups.scheduling.k8s.io", "default", "g")["metadata"]
        named = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": group["uid"]}
        assert user == named, "the second member finds its group there"
