"""Expected starts for the console: worked out in a process of its own, as long as somebody looks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pilotage.clock import SystemClock
from pilotage.console.starts import ExpectedStarts, StartsEstimate
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.testing import VirtualClock
from tests.lab.starts.queue_world import START, by_kind, manifests, runs


class Queues:
    """A process that knows these objects."""

    def __init__(self, objects: Mapping[str, list[Any]]) -> None:
        self.queueing = self.controller = self
        self._objects = objects

    def objects_of(self, kind: str) -> dict[str, Any]:
        return {str(number): one for number, one in enumerate(self._objects.get(kind, ()))}


def starts_of(objects: Mapping[str, list[Any]], clock: Any) -> ExpectedStarts:
    process: Any = Queues(objects)
    return ExpectedStarts(process, QueueingConfiguration(), clock)


class At(SystemClock):
    """A clock that runs, and stands at some time of the day."""

    def __init__(self, time: float) -> None:
        self._time = time

    def time(self) -> float:
        return self._time


async def test_everybody_who_waits_gets_a_range() -> None:
    all_runs = runs(0, 150)
    now = all_runs[120].created
    estimate = await starts_of(by_kind(manifests(all_runs, now)), At(START + now)).work_out()
    waiting = {f"default/{run.name}" for run in all_runs if run.created <= now < run.admitted}
    assert estimate.problem == "" and estimate.starts.keys() == waiting and waiting
    assert all(one.soonest is not None and one.past is not None for one in estimate.starts.values())


async def test_what_cannot_be_worked_out_says_why() -> None:
    class Strange:
        """Nothing that another process could know."""

    off: Any = Queues({})
    off.queueing = None
    assert "is off" in (await ExpectedStarts(off, QueueingConfiguration(), SystemClock()).work_out()).problem
    many = await starts_of({"Workload": [None] * 5001}, SystemClock()).work_out()
    assert "pilotage queues --when" in many.problem
    broken = await starts_of({"Workload": [1]}, SystemClock()).work_out()
    assert "its process ended with 1" in broken.problem
    local = await starts_of({"Workload": [Strange()]}, SystemClock()).work_out()
    assert local.problem.startswith("it could not be worked out")


async def test_it_is_worked_out_only_while_somebody_looks_and_not_too_often() -> None:
    class Counted(ExpectedStarts):
        times = 0

        async def work_out(self) -> StartsEstimate:
            self.times += 1
            return StartsEstimate(clock.time())

    clock = VirtualClock(1000.0)
    process: Any = Queues({})
    starts = Counted(process, QueueingConfiguration(), clock)
    async with asyncio.TaskGroup() as tasks:
        keeping = tasks.create_task(starts.keep())
        await clock.advance(100.0)
        assert starts.times == 0 and starts.look() is None
        for _ in range(10):
            await clock.advance(2.0)
            assert starts.look() is not None
        assert starts.times == 1
        await clock.advance(31.0)
        assert starts.look() is not None
        await clock.advance(1.0)
        assert starts.times == 2, "somebody looked again after it was old"
        await clock.advance(7200.0)
        assert starts.times == 2 and starts.look() is None, "nobody has looked for hours"
        keeping.cancel()
