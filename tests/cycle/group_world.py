"""A scheduler of groups in virtual time, with short forms for what it is given."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from pilotage.api import Plugin
from pilotage.assembly import SchedulerOptions, options_from_configuration
from pilotage.config.feature_gates import FeatureGates
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.config.load import configuration_of
from pilotage.cycle.group_reservation import ReservationSettings
from pilotage.model import Pod
from pilotage.simulate.extenders_run import ScriptedExtenders
from pilotage.simulate.shorthands import NAMESPACE, full_object
from pilotage.simulate.stage import Stage

Short = Mapping[str, Any]


def node(name: str, **fields: Any) -> Short:
    return {"node": {"name": name, **fields}}


def group(name: str, **fields: Any) -> Short:
    return {"podGroup": {"name": name, **fields}}


def pod(name: str, **fields: Any) -> Short:
    return {"pod": {"name": name, "cpu": 1, **fields}}


def members(name: str, count: int, **fields: Any) -> list[Short]:
    return [pod(f"{name}-{number}", group=name, **fields) for number in range(count)]


class GroupWorld:
    """What happens to pods and groups, seen from outside."""

    def __init__(self, stage: Stage, extenders: ScriptedExtenders) -> None:
        self.stage = stage
        self.extenders = extenders
        self.queue = stage.queue
        self.cluster = stage.scheduler.cluster

    async def apply(self, *objects: Short) -> None:
        for short in objects:
            self.stage.api.add(full_object(short))
        await self.after(0)

    async def after(self, seconds: float) -> None:
        await self.stage.clock.advance(seconds)
        await self.stage.clock.settle()
        self.queue.check()
        self.cluster.check()

    async def remove(self, *names: str) -> None:
        for name in names:
            self.stage.api.remove(("Pod", NAMESPACE, name))
        await self.after(0)

    def node_of(self, name: str) -> str:
        found = self.stage.api.last_known(("Pod", NAMESPACE, name))
        return str(found.get("spec", {}).get("nodeName") or "")

    def message(self, name: str) -> str:
        conditions = self.stage.api.last_known(("Pod", NAMESPACE, name)).get("status", {}).get("conditions", [])
        return next((str(c.get("message", "")) for c in conditions if c["type"] == "PodScheduled"), "")

    def group_message(self, name: str) -> str:
        conditions = self.stage.api.last_known(("PodGroup", NAMESPACE, name)).get("status", {}).get("conditions", [])
        return next((str(c.get("message", "")) for c in conditions), "")

    def bound(self) -> set[str]:
        return {key[2] for key in self.pod_keys() if self.node_of(key[2])}

    def pod_keys(self) -> list[tuple[str, str, str]]:
        return [("Pod", NAMESPACE, obj.name) for obj in self.cluster.objects("Pod").values()]

    def pod(self, name: str) -> Pod:
        found: Pod = self.cluster.objects("Pod")[f"{NAMESPACE}/{name}"]
        return found

    def facts(self) -> dict[str, object]:
        """Everything that is believed of nodes: equal before and after what changes nothing."""
        nodes = self.cluster.nodes
        return {
            name: (
                nodes.requested("cpu").tolist()[row],
                nodes.pod_count.tolist()[row],
                sorted(nodes.pods_on(row)),
                sorted(one.uid for one in self.cluster.nominations.on(name)),
            )
            for row, name in enumerate(nodes.names)
        }


@asynccontextmanager
async def world(
    *plugins: type[Plugin],
    config: Mapping[str, Any] | None = None,
    reservation: ReservationSettings | None = None,
    gates: Mapping[str, bool] | None = None,
) -> AsyncIterator[GroupWorld]:
    """A scheduler that runs until the block ends."""
    script = ScriptedExtenders()
    options = replace(_options(plugins, config, gates), reports_gated_pods=False)
    if reservation is not None:
        options = replace(options, group_reservation=reservation)
    async with asyncio.TaskGroup() as tasks:
        holder = tasks.create_task(asyncio.Event().wait())
        inner = tasks.create_task(_play(options, script, stage_made := asyncio.get_running_loop().create_future()))
        yield GroupWorld(await stage_made, script)
        inner.cancel()
        holder.cancel()


def _options(
    plugins: Sequence[type[Plugin]], config: Mapping[str, Any] | None, gates: Mapping[str, bool] | None
) -> SchedulerOptions:
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    configuration = configuration_of({**document, **config}, "test") if config else SchedulerConfiguration()
    options = options_from_configuration(configuration, plugins, FeatureGates(gates or {}))
    return replace(options, cycle_budget_seconds=float("inf"))


async def _play(options: SchedulerOptions, script: ScriptedExtenders, made: asyncio.Future[Stage]) -> None:
    async with asyncio.TaskGroup() as tasks:
        made.set_result(Stage(options, tasks, script.api_at, script.connect))
        await asyncio.Event().wait()
