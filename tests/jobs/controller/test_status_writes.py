"""Statuses on their way out: nothing that others wrote is overwritten unseen, and the newest content arrives."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from pilotage.api.calls import ApiCall, ApiWriter
from pilotage.jobs.controller.status_writes import StatusWrites
from pilotage.jobs.surface import QueueingEngine
from pilotage.model.kueue import Admission, RequeueState, Workload, WorkloadStatus
from pilotage.model.meta import ObjectMeta, TimedCondition
from pilotage.testing import VirtualClock


class Refused(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(str(code))
        self.code = code


class Server:
    """One workload; refuses what is meant for another version."""

    def __init__(self) -> None:
        self.version = 1
        self.bodies: list[Any] = []
        self.refusal: int | None = None

    async def patch(self, kind: Any, namespace: str, name: str, body: bytes, **options: Any) -> bytes:
        told = msgspec.json.decode(body)
        if self.refusal is not None:
            raise Refused(self.refusal)
        if told["metadata"]["resourceVersion"] != str(self.version):
            raise Refused(409)
        self.version += 1
        self.bodies.append(told["status"])
        return msgspec.json.encode({"metadata": {"resourceVersion": str(self.version)}})

    def submit(self, call: ApiCall) -> None:
        raise AssertionError("statuses are awaited")

    async def perform(self, call: ApiCall) -> None:
        await call.perform(cast(ApiWriter, self))


class Engine:
    def __init__(self) -> None:
        self.current = Workload(metadata=ObjectMeta(name="w", namespace="ns", uid="u", resource_version="1"))
        self.refused: list[str] = []

    def workload(self, key: str) -> Workload | None:
        return self.current

    def quota_tree(self, cluster_queue: str) -> str:
        return cluster_queue

    def write_refused(self, key: str, message: str) -> None:
        self.refused.append(key)

    def decide(self, count: int) -> None:
        self.current = replace(self.current, status=WorkloadStatus(requeue_state=RequeueState(count=count)))

    def seen(self, version: int) -> Workload:
        metadata = replace(self.current.metadata, resource_version=str(version))
        self.current = replace(self.current, metadata=metadata)
        return self.current


async def settled() -> None:
    await VirtualClock().settle()


async def test_a_newer_version_is_taken_in_before_the_status_is_written_again() -> None:
    server, engine, written = Server(), Engine(), list[str]()
    writes = StatusWrites(cast(QueueingEngine, engine), server, VirtualClock(), written.append)
    async with asyncio.TaskGroup() as tasks:
        writes.start(tasks)
        writes.seen(engine.seen(1))
        server.version = 7  # somebody else has written
        engine.decide(1)
        writes.changed("ns/w")
        await settled()
        assert server.bodies == [] and writes.is_pending("ns/w") and written == []
        engine.decide(2)
        writes.changed("ns/w")
        await settled()
        assert server.bodies == [], "what the other one wrote is not known yet"
        writes.seen(engine.seen(7))
        await settled()
        assert [body["requeueState"]["count"] for body in server.bodies] == [2]
        assert written == ["ns/w"] and not writes.is_pending("ns/w")


async def test_our_own_writes_need_not_be_seen_first() -> None:
    server, engine = Server(), Engine()
    writes = StatusWrites(cast(QueueingEngine, engine), server, VirtualClock(), lambda key: None)
    async with asyncio.TaskGroup() as tasks:
        writes.start(tasks)
        writes.seen(engine.seen(1))
        for count in (1, 2, 3):
            engine.decide(count)
            writes.changed("ns/w")
            await settled()
        writes.seen(engine.seen(2))  # an older echo
        engine.decide(4)
        writes.changed("ns/w")
        await settled()
        assert [body["requeueState"]["count"] for body in server.bodies] == [1, 2, 3, 4]


async def test_a_refusal_for_good_is_told_to_the_engine() -> None:
    server, engine = Server(), Engine()
    server.refusal = 422
    writes = StatusWrites(cast(QueueingEngine, engine), server, VirtualClock(), lambda key: None)
    async with asyncio.TaskGroup() as tasks:
        writes.start(tasks)
        writes.changed("ns/w")
        await settled()
        assert engine.refused == ["ns/w"] and not writes.is_pending("ns/w")


async def test_a_passing_failure_is_tried_again_later() -> None:
    server, engine, clock = Server(), Engine(), VirtualClock()
    server.refusal = 500
    writes = StatusWrites(cast(QueueingEngine, engine), server, clock, lambda key: None)
    async with asyncio.TaskGroup() as tasks:
        writes.start(tasks)
        writes.changed("ns/w")
        await settled()
        due = writes.retries.next_due()
        assert writes.is_pending("ns/w") and due is not None
        server.refusal = None
        await clock.advance(due - clock.monotonic())
        writes.try_again()
        await settled()
        assert len(server.bodies) == 1 and not writes.is_pending("ns/w")


async def test_an_admission_is_taken_back_before_another_one_takes_its_place() -> None:
    """The API server refuses to exchange one for the other."""
    server, engine, written = Server(), Engine(), list[str]()
    writes = StatusWrites(cast(QueueingEngine, engine), server, VirtualClock(), written.append)
    async with asyncio.TaskGroup() as tasks:
        writes.start(tasks)
        writes.seen(engine.seen(1))
        for queue in ("first", "second"):
            conditions = tuple(TimedCondition(type=one, status="True") for one in ("QuotaReserved", "Admitted"))
            status = WorkloadStatus(conditions=conditions, admission=Admission(queue))
            engine.current = replace(engine.current, status=status)
            writes.decided([engine.current])
            await settled()
    told = [(body["admission"] or {}).get("clusterQueue") for body in server.bodies]
    assert told == ["first", None, "second"] and written == ["ns/w", "ns/w"]
    assert [one["status"] for one in server.bodies[1]["conditions"]] == ["False", "False"]
