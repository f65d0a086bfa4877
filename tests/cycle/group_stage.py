"""A whole scheduler with pod groups, in virtual time; objects are written as in scenarios."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import msgspec

from pilotage.api import Plugin
from pilotage.assembly import options_from_configuration
from pilotage.clock import Clock
from pilotage.config.feature_gates import FeatureGates
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.model import KindInfo
from pilotage.simulate.memory_api import MemoryApi
from pilotage.simulate.shorthands import NAMESPACE, full_object
from pilotage.simulate.stage import Stage

GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True, "PodGroupPreemptionPolicy": True}


class _Over(Exception):
    """The test is over: ends the tasks of the stage."""


class ApiWithEvents(MemoryApi):
    """Keeps whole Events."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.told: list[dict[str, Any]] = []

    async def create(self, kind: KindInfo, namespace: str, body: bytes) -> bytes:
        if kind.kind == "Event":
            self.told.append(msgspec.json.decode(body))
        return await super().create(kind, namespace, body)


class GroupStage(Stage):
    """The stage of scenarios, with a shorter way to put objects."""

    async def put(self, *objects: Mapping[str, Any]) -> None:
        """Create these and let the scheduler do what it can without time passing."""
        for obj in objects:
            self.api.add(full_object(obj))
        await self.clock.settle()

    def events_about(self, kind: str) -> list[tuple[str, str, str]]:
        """(name, reason, note) of the Events about objects of a kind."""
        assert isinstance(self.api, ApiWithEvents)
        found = [event for event in self.api.told if event["regarding"]["kind"] == kind]
        return [(event["regarding"]["name"], event["reason"], event["note"]) for event in found]

    def condition(self, group: str) -> dict[str, str] | None:
        """Its condition as the API server has it: status, reason and message."""
        status = self.api.last_known(("PodGroup", NAMESPACE, group)).get("status") or {}
        found = next(iter(status.get("conditions", ())), None)
        return found and {key: found.get(key, "") for key in ("status", "reason", "message")}

    def pod_condition(self, name: str) -> dict[str, str]:
        status = self.api.last_known(("Pod", NAMESPACE, name)).get("status") or {}
        found = next((one for one in status.get("conditions", ()) if one["type"] == "PodScheduled"), {})
        return {key: found.get(key, "") for key in ("reason", "message")}


@asynccontextmanager
async def group_stage(
    *plugins: type[Plugin], gates: Mapping[str, bool] = GATES, **options: Any
) -> AsyncIterator[GroupStage]:
    made = options_from_configuration(SchedulerConfiguration(), plugins, FeatureGates(gates))
    try:
        async with asyncio.TaskGroup() as tasks:
            stage = GroupStage(replace(made, cycle_budget_seconds=float("inf"), **options), tasks, ApiWithEvents)
            await stage.clock.settle()
            yield stage
            stage.queue.check()
            stage.scheduler.cluster.check()
            raise _Over
    except* _Over:
        pass


def members(group: str, count: int, first: int = 0, **fields: Any) -> Sequence[dict[str, Any]]:
    """So many pods of a group, of 1 cpu each."""
    numbers = range(first, first + count)
    return [{"pod": {"name": f"{group}-{number}", "group": group, "cpu": "1", **fields}} for number in numbers]
