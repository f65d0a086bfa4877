"""A scheduler in somebody's own program, in front of an embedded cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pilotage.api import CycleState, NodeView, Plugin, Score
from pilotage.kube.errors import KubeconfigError
from pilotage.library import Scheduler
from pilotage.model import Pod
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.testing import VirtualClock, pod


class Last(Plugin, Score):
    """Prefers the node whose name ends in 3, and prefers it more than anything else."""

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return 100 if node.name.endswith("3") else 0


async def test_a_scheduler_runs_with_the_plugins_that_it_is_given(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {multiPoint: {enabled: [{name: Last, weight: 100}]}}}]\n"
    )
    clock, rng = VirtualClock(), seeded(1)
    async with EmbeddedCluster.running(EmbeddedOptions(nodes=3, port=None), clock, rng) as cluster:
        scheduler = Scheduler(plugins=[Last], config=config, transport=cluster.transport(), clock=clock, rng=rng)
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(scheduler.serve())
            cluster.api.create("pods", "default", pod("p").json())
            await clock.advance(1)
            assert cluster.api.get("pods", "default", "p")["spec"]["nodeName"].endswith("3")
            serving.cancel()


def test_a_cluster_that_cannot_be_found_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError):
        Scheduler(kubeconfig=str(tmp_path / "none"))
