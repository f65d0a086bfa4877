"""Writes of a job's reconciler: one at a time per object, and none of them stands in the way of the next for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from pilotage.api.calls import ApiWriter
from pilotage.calls.dispatcher import Dispatcher
from pilotage.calls.recorder import EventRecorder
from pilotage.jobs.controller.events import QueueingEvents
from pilotage.jobs.controller.objects import ReconcileKey
from pilotage.jobs.controller.steps import PatchObject
from pilotage.jobs.controller.writes import JobWrites
from pilotage.model.meta import ObjectMeta
from pilotage.model.workloads import Job
from pilotage.testing import VirtualClock

SUBJECT = ReconcileKey("Job", "ns/train")


def suspension(version: int) -> PatchObject:
    job = Job(metadata=ObjectMeta(name="train", namespace="ns", uid="u", resource_version=str(version)))
    return PatchObject(job, {"metadata": {"uid": "u"}, "spec": {"suspend": True}})


class Conflict(Exception):
    code = 409


class Server:
    def __init__(self) -> None:
        self.patches = 0
        self.conflicts = 0

    async def patch(self, *arguments: Any, **options: Any) -> bytes:
        self.patches += 1
        if self.conflicts:
            self.conflicts -= 1
            raise Conflict
        return b"{}"


class Scene:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.server = Server()
        self.dispatcher = Dispatcher(cast(ApiWriter, self.server), self.clock)
        self.looked_at: list[ReconcileKey] = []
        events = QueueingEvents(EventRecorder(self.dispatcher, self.clock))
        self.writes = JobWrites(self.dispatcher, events, self.clock, self.looked_at.append, lambda: None)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(self.dispatcher.run())
            yield
            running.cancel()


async def test_an_object_has_one_write_at_a_time_and_the_next_only_for_a_newer_version() -> None:
    scene = Scene()
    async with scene.running():
        for _ in range(3):
            scene.writes.carry_out(suspension(1), SUBJECT)
        await scene.clock.settle()
        assert scene.server.patches == 1 and scene.looked_at == [SUBJECT]
        scene.writes.carry_out(suspension(1), SUBJECT)
        await scene.clock.advance(60.0)
        assert scene.server.patches == 1, "the watch will bring what was written"
        scene.writes.carry_out(suspension(2), SUBJECT)
        await scene.clock.settle()
        assert scene.server.patches == 2


async def test_a_write_that_brought_no_version_does_not_keep_others_back_for_ever() -> None:
    scene = Scene()
    async with scene.running():
        scene.writes.carry_out(suspension(1), SUBJECT)
        await scene.clock.settle()
        scene.writes.carry_out(suspension(1), SUBJECT)
        await scene.clock.advance(130.0)
        assert scene.writes.retries.take_due() == [SUBJECT]
        scene.writes.carry_out(suspension(1), SUBJECT)
        await scene.clock.settle()
        assert scene.server.patches == 2


async def test_a_write_that_was_given_up_with_the_lease_does_not_keep_the_next_leader_from_it() -> None:
    scene = Scene()
    scene.writes.carry_out(suspension(1), SUBJECT)
    scene.dispatcher.abandon("not the leader any more")
    async with scene.running():
        await scene.clock.advance(2.0)
        assert scene.writes.retries.take_due() == [SUBJECT] and scene.server.patches == 0
        scene.writes.carry_out(suspension(1), SUBJECT)
        await scene.clock.settle()
        assert scene.server.patches == 1


async def test_a_conflict_without_a_newer_version_is_tried_again_after_a_while() -> None:
    scene = Scene()
    scene.server.conflicts = 1
    async with scene.running():
        scene.writes.carry_out(suspension(1), SUBJECT)
        await scene.clock.settle()
        assert scene.looked_at == [SUBJECT]
        scene.writes.carry_out(suspension(1), SUBJECT)
        await scene.clock.advance(4.0)
        assert scene.server.patches == 1 and scene.writes.retries.take_due() == [], "the watch may bring it"
        await scene.clock.advance(1.0)
        assert scene.writes.retries.take_due() == [SUBJECT]
        scene.writes.carry_out(suspension(1), SUBJECT)
        await scene.clock.settle()
        assert scene.server.patches == 2
