from __future__ import annotations

import asyncio

from pilotage.cli.demo import Play, acts, stage_options
from pilotage.clock import SystemClock
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster
from pilotage.sandbox.manifests import read_manifests
from pilotage.sandbox.seeding import seed
from pilotage.testing.virtual_clock import VirtualClock


async def test_every_workload_is_accepted_by_the_server() -> None:
    async with EmbeddedCluster.running(stage_options(5, is_served=False), SystemClock(), seeded(1)) as cluster:
        seed(cluster.api, read_manifests(acts()))
        kinds = {manifest.kind for manifest in read_manifests(acts())}
        pools = {node["metadata"]["labels"]["pool"] for node in cluster.api.list("nodes")}
    assert {"Deployment", "Job", "Pod", "PriorityClass"} <= kinds
    assert pools == {"disk", "gpu", "worker"}


async def test_the_play_is_over_when_nothing_moves_any_more() -> None:
    clock = VirtualClock()
    async with EmbeddedCluster.running(stage_options(3, is_served=False), clock, seeded(1)) as cluster:
        play = Play(cluster, clock)
        assert not play.is_still()
        await _advance_during(play, clock)
        assert not play.is_still(), "something has just been written"
        await clock.advance(1.0)
        assert not play.is_still()
        await clock.advance(1.0)
        assert play.is_still()
        cluster.api.create("namespaces", "", {"metadata": {"name": "late"}})
        assert not play.is_still()


async def _advance_during(play: Play, clock: VirtualClock) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(play.perform())
        await clock.advance(10.0)
