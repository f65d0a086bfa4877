"""Pods with devices come and go in a living sandbox: no device has two owners, and in the end all are free again."""

from __future__ import annotations

import asyncio
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.plugins.dynamic_resources.claim_book import ClaimBook
from tests.plugins.dynamic_resources.live_cluster import CLAIMS, Live, live

_TEMPLATE = {"name": "d", "resourceClaimTemplateName": "t"}
NODES = ("node-00001", "node-00002")

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("come"), st.integers(1, 3)),
        st.tuples(st.just("go"), st.integers(0, 5)),
        st.tuples(st.just("plug"), st.integers(0, 1)),
        st.tuples(st.just("pass"), st.sampled_from((0, 1, 12))),
    ),
    min_size=3,
    max_size=14,
)


def _check(cluster: Live) -> None:
    owners: Counter[tuple[str, str]] = Counter()
    node_of_claim: dict[str, str] = {}
    for claim in cluster.api.list(CLAIMS, "default"):
        for result in ((claim.get("status") or {}).get("allocation") or {}).get("devices", {}).get("results", ()):
            owners[result["pool"], result["device"]] += 1
            node_of_claim[claim["metadata"]["name"]] = result["pool"]
    assert all(count == 1 for count in owners.values()), owners
    for pod in cluster.api.list("pods", "default"):
        node = pod["spec"].get("nodeName")
        for told in pod["status"].get("resourceClaimStatuses") or ():
            assert not node or node_of_claim[told["resourceClaimName"]] == node, "a pod runs where its device is"
    cluster.scheduler.cluster.index(ClaimBook).check()


async def _live_through(steps: list[tuple[str, int]]) -> None:
    async with live() as cluster:
        born, plugged = 0, 0
        for step, amount in steps:
            living = [pod["metadata"]["name"] for pod in cluster.api.list("pods", "default")]
            if step == "come":
                for _ in range(amount):
                    cluster.pod(f"p{born}", [_TEMPLATE])
                    born += 1
            elif step == "go" and amount < len(living):
                cluster.api.delete("pods", "default", living[amount], {"gracePeriodSeconds": 0})
            elif step == "plug":
                cluster.publish_more(NODES[amount], f"slice-{plugged}", f"d{plugged}", generation=plugged + 1)
                plugged += 1
            elif step == "pass":
                await cluster.after(amount)
            _check(cluster)
        await cluster.after(30)
        _check(cluster)
        for pod in cluster.api.list("pods", "default"):
            cluster.api.delete("pods", "default", pod["metadata"]["name"], {"gracePeriodSeconds": 0})
        await cluster.after(60)
        assert cluster.allocated() == {}
        assert list(cluster.scheduler.cluster.index(ClaimBook).ledger.devices()) == []


@settings(max_examples=12, deadline=None)
@given(STEPS)
def test_devices_have_one_owner_and_come_back(steps: list[tuple[str, int]]) -> None:
    asyncio.run(_live_through(steps))
