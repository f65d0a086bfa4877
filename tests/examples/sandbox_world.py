"""An example plugin in the sandbox, as its documented command would run it, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pilotage.assembly import SchedulerProcess, options_from_configuration
from pilotage.config.load import default_configuration, load_configuration
from pilotage.framework.plugin_files import load_plugin_files
from pilotage.kube.client import KubeClient
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.testing import VirtualClock

EXAMPLES = Path(__file__).parents[2] / "examples" / "plugins"

Object = dict[str, Any]


class SandboxWorld:
    """What is in the cluster."""

    def __init__(self, cluster: EmbeddedCluster, process: SchedulerProcess, clock: VirtualClock) -> None:
        self.api = cluster.api
        self.scheduler = process.scheduler
        self.clock = clock

    async def after(self, seconds: float) -> None:
        await self.clock.advance(seconds)
        self.scheduler.queue.check()
        self.scheduler.cluster.check()

    def end(self, namespace: str, name: str) -> None:
        self.api.delete("pods", namespace, name, {"gracePeriodSeconds": 0})

    def nodes_of(self, prefix: str = "") -> dict[str, str]:
        """Where the pods are whose names begin so; "" for those that have no node."""
        pods = {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in self.api.list("pods")}
        return {name: node for name, node in pods.items() if name.startswith(prefix)}

    def put(self, resource: str, namespace: str, obj: Object) -> None:
        """Create an object, or replace what is in it besides its metadata."""
        name = obj["metadata"]["name"]
        known = self.api.find(resource, namespace, name)
        if known is None:
            self.api.create(resource, namespace, obj)
        else:
            self.api.update(resource, namespace, name, {**obj, "metadata": known["metadata"]})

    def condition(self, name: str) -> Object:
        status = self.api.get("pods", "default", name)["status"]
        return next((c for c in status.get("conditions", []) if c["type"] == "PodScheduled"), {})


@asynccontextmanager
async def sandbox(
    name: str,
    *,
    plugin: bool = True,
    manifest: bool = True,
    config: str = "",
    nodes: int | None = None,
    crd: str = "",
) -> AsyncIterator[SandboxWorld]:
    """`pilotage sandbox --plugin NAME.py -f crds/CRD.yaml -f NAME.yaml`, until the block ends."""
    clock, rng = VirtualClock(), seeded(1)
    manifests = [EXAMPLES / "crds" / f"{crd}.yaml"] if crd else []
    manifests += [EXAMPLES / f"{name}.yaml"] if manifest else []
    plugins = load_plugin_files([EXAMPLES / f"{name}.py"]) if plugin else []
    configuration = load_configuration(EXAMPLES / config) if config else default_configuration()
    options = options_from_configuration(configuration, plugins)
    async with EmbeddedCluster.running(
        EmbeddedOptions(manifests=manifests, nodes=nodes, port=None), clock, rng
    ) as cluster:
        process = SchedulerProcess(KubeClient(cluster.transport()), clock, rng, options)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(process.run())
            world = SandboxWorld(cluster, process, clock)
            await world.after(1)
            yield world
            running.cancel()
