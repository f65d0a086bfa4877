"""NUMA zones: a pod goes where one zone has room for each of its containers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pilotage.framework.plugin_files import load_plugin_file
from pilotage.testing import FakeHandle, node_view
from pilotage.testing import node as node_builder
from pilotage.testing import pod as pod_builder
from tests.examples.sandbox_world import EXAMPLES, SandboxWorld, sandbox

TOPOLOGIES = "noderesourcetopologies.topology.node.k8s.io"


def topology(name: str, *cpus: int, policy: str = "single-numa-node", scope: str = "container") -> dict[str, Any]:
    """Zones with so many cores available, of eight each."""
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name},
        "attributes": [
            {"name": "topologyManagerPolicy", "value": policy},
            {"name": "topologyManagerScope", "value": scope},
        ],
        "zones": [
            {
                "name": f"node-{number}",
                "type": "Node",
                "resources": [{"name": "cpu", "capacity": 8, "allocatable": 8, "available": cpu}],
            }
            for number, cpu in enumerate(cpus)
        ],
    }


def pod(name: str, *cpus: int, is_guaranteed: bool = True) -> dict[str, Any]:
    containers = []
    for number, cpu in enumerate(cpus):
        requests = {"cpu": cpu, "memory": "1Gi"}
        limits = requests if is_guaranteed else {}
        containers.append({"name": f"c{number}", "image": "i", "resources": {"requests": requests, "limits": limits}})
    return {"metadata": {"name": name}, "spec": {"containers": containers}}


@asynccontextmanager
async def cluster(manifest: bool = True) -> AsyncIterator[SandboxWorld]:
    nodes = None if manifest else 1
    async with sandbox("node_resource_topology", manifest=manifest, nodes=nodes, crd="noderesourcetopologies") as world:
        yield world


async def test_the_example_goes_to_the_node_with_enough_in_one_zone() -> None:
    async with cluster() as world:
        await world.after(5)
        assert world.nodes_of("aligned") == {"aligned": "whole"}


async def test_pods_placed_since_the_last_report_count_in_every_zone() -> None:
    async with cluster() as world:
        await world.after(5)
        world.api.create("pods", "default", pod("second", 3))
        await world.after(10)
        assert world.nodes_of("second") == {"second": ""}
        assert "cannot align container c0" in world.condition("second")["message"]
        # The agent reports: aligned was put into zone 1, so zone 0 is free after all.
        world.put(TOPOLOGIES, "", topology("whole", 4, 0))
        await world.after(15)
        assert world.nodes_of("second") == {"second": "whole"}


async def test_a_report_that_helps_wakes_the_pod_and_one_that_does_not_does_not() -> None:
    async with cluster(manifest=False) as world:
        (name,) = (node["metadata"]["name"] for node in world.api.list("nodes"))
        world.put(TOPOLOGIES, "", topology(name, 1, 1))
        world.api.create("pods", "default", pod("p", 2))
        await world.after(5)
        (waiting,) = world.scheduler.queue.entries()
        attempts = waiting.attempts
        world.put(TOPOLOGIES, "", topology(name, 0, 1))
        await world.after(15)
        (waiting,) = world.scheduler.queue.entries()
        assert waiting.attempts == attempts
        world.put(TOPOLOGIES, "", topology(name, 2, 1))
        await world.after(15)
        assert world.nodes_of("p") == {"p": name}


@pytest.mark.parametrize(
    ("report", "wanted", "fits"),
    [
        (topology("n", 2, 2), pod("p", 2), True),
        (topology("n", 2, 2), pod("p", 3), False),
        (topology("n", 2, 2), pod("p", 2, 2), True),
        (topology("n", 2, 2), pod("p", 2, 2, 1), False),
        (topology("n", 2, 2, scope="pod"), pod("p", 1, 1), True),
        (topology("n", 2, 2, scope="pod"), pod("p", 2, 2), False),
        (topology("n", 2, 2), pod("p", 3, is_guaranteed=False), True),
        (topology("n", 2, 2, policy="best-effort"), pod("p", 3), True),
        ({**topology("n", 2, 2, policy=""), "topologyPolicies": ["SingleNUMANodePodLevel"]}, pod("p", 2, 2), False),
        ({**topology("n", 2, 2, policy=""), "topologyPolicies": ["SingleNUMANodeContainerLevel"]}, pod("p", 2), True),
        (topology("other", 0), pod("p", 3), True),
        (topology("n"), pod("p", 3), True),
    ],
)
def test_what_fits_into_zones(report: dict[str, Any], wanted: dict[str, Any], fits: bool) -> None:
    (cls,) = load_plugin_file(EXAMPLES / "node_resource_topology.py")
    handle = FakeHandle(watches=cls.watches)
    handle.put(report)
    plugin: Any = cls(handle)
    built = pod_builder("p").spec(**wanted["spec"]).build()
    rejection = plugin.filter(None, built, node_view(node_builder("n").cpu(16)))
    assert (rejection is None) == fits


def test_the_emptier_best_zone_has_the_higher_score() -> None:
    (cls,) = load_plugin_file(EXAMPLES / "node_resource_topology.py")
    handle = FakeHandle(watches=cls.watches)
    handle.put(topology("a", 4, 1), topology("b", 6, 0), topology("c", 1, 1))
    plugin: Any = cls(handle)
    built = pod_builder("p").spec(**pod("p", 2)["spec"]).build()
    scores = {name: plugin.score(None, built, node_view(node_builder(name).cpu(16))) for name in "abcd"}
    assert scores == {"a": 25, "b": 50, "c": 0, "d": 0}
