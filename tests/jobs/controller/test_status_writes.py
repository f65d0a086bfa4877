"""Statuses on their way out: nothing that others wrote is overwritten unseen, and the newest content arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from pilotage.api.calls import ApiWriter
from pilotage.calls.dispatcher import Dispatcher
from pilotage.jobs.controller.retries import Retries
from pilotage.jobs.controller.status_writes import StatusWrites
from pilotage.jobs.engine import JobQueueing
from pilotage.model.kueue import Admission, ReclaimablePod, RequeueState, Workload, WorkloadStatus
from pilotage.model.meta import ObjectMeta, TimedCondition
from pilotage.testing import VirtualClock


class Rejected(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(str(code))
        self.code = code


class Server:
    """One workload; refuses what is meant for another version."""

    def __init__(self) -> None:
        self.version = 1
        self.bodies: list[Any] = []
        self.rejection: int | None = None

    async def patch(self, kind: Any, namespace: str, name: str, body: bytes, **options: Any) -> bytes:
        told = msgspec.json.decode(body)
        if self.rejection is not None:
            raise Rejected(self.rejection)
        if told["metadata"]["resourceVersion"] != str(self.version):
            raise Rejected(409)
        self.version += 1
        self.bodies.append(told["status"])
        return msgspec.json.encode({"metadata": {"resourceVersion": str(self.version)}})

    async def get(self, kind: Any, namespace: str, name: str) -> bytes:
        metadata = {"name": name, "namespace": namespace, "uid": "u", "resourceVersion": str(self.version)}
        return msgspec.json.encode({"metadata": metadata})


class Engine:
    def __init__(self) -> None:
        self.current = Workload(metadata=ObjectMeta(name="w", namespace="ns", uid="u", resource_version="1"))
        self.refused: list[str] = []

    def workload(self, key: str) -> Workload | None:
        return self.current

    def quota_tree(self, cluster_queue: str) -> str:
        return cluster_queue

    def write_rejected(self, key: str, message: str, retry_seconds: float) -> None:
        self.refused.append(key)

    def decide(self, count: int) -> None:
        self.current = replace(self.current, status=WorkloadStatus(requeue_state=RequeueState(count=count)))

    def seen(self, version: int) -> Workload:
        metadata = replace(self.current.metadata, resource_version=str(version))
        self.current = replace(self.current, metadata=metadata)
        return self.current


class News:
    """Remembers what it is told."""

    def __init__(self, on_written: Callable[[str], None] = lambda key: None) -> None:
        self.written: list[str] = []
        self.failed: list[str] = []
        self.read: list[str] = []
        self._on_written = on_written

    def on_written(self, key: str) -> None:
        self.written.append(key)
        self._on_written(key)

    def on_failed(self, key: str, error: Exception) -> None:
        self.failed.append(key)

    def on_read(self, workload: Workload) -> None:
        self.read.append(workload.resource_version)

    def wake(self) -> None:
        pass


@asynccontextmanager
async def sending(
    server: Any, engine: Engine, news: News | None = None
) -> AsyncIterator[tuple[StatusWrites, VirtualClock]]:
    """Writes through a real call queue and dispatcher."""
    clock = VirtualClock()
    dispatcher = Dispatcher(cast(ApiWriter, server), clock)
    writes = StatusWrites(cast(JobQueueing, engine), dispatcher, clock, news or News())
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(dispatcher.run())
        await clock.settle()
        yield writes, clock
        await clock.settle()
        running.cancel()


async def settled() -> None:
    await VirtualClock().settle()


async def test_a_newer_version_is_taken_in_before_the_status_is_written_again() -> None:
    server, engine, news = Server(), Engine(), News()
    async with sending(server, engine, news) as (writes, _):
        writes.seen(engine.seen(1))
        server.version = 7  # somebody else has written
        engine.decide(1)
        writes.changed("ns/w")
        await settled()
        assert server.bodies == [] and writes.is_pending("ns/w") and news.written == []
        engine.decide(2)
        writes.changed("ns/w")
        await settled()
        assert server.bodies == [], "what the other one wrote is not known yet"
        writes.seen(engine.seen(7))
        await settled()
        assert [body["requeueState"]["count"] for body in server.bodies] == [2]
        assert news.written == ["ns/w"] and not writes.is_pending("ns/w")


async def test_what_was_written_is_not_written_again_while_the_watch_lags() -> None:
    """The workload is compared with its job after every write; until the watch has brought the write they differ."""
    server, engine, news = Server(), Engine(), News()
    pods = (ReclaimablePod("main", 2),)
    waiting = TimedCondition(
        type="WaitingForReplacementPods", status="True", last_transition_time="2026-01-01T00:00:00Z"
    )
    async with sending(server, engine, news) as (writes, _):
        writes.seen(engine.seen(1))
        writes.set_reclaimable("ns/w", pods)
        writes.set_condition("ns/w", waiting)
        await settled()
        sent = len(server.bodies)
        for second in range(5):
            writes.set_reclaimable("ns/w", pods)
            writes.set_condition("ns/w", replace(waiting, last_transition_time=f"2026-01-01T00:00:0{second}Z"))
            await settled()
        assert len(server.bodies) == sent, "nothing new was said"
        writes.set_reclaimable("ns/w", (ReclaimablePod("main", 3),))
        await settled()
        assert [one["count"] for one in server.bodies[-1]["reclaimablePods"]] == [3], "what is new goes out at once"


async def test_what_someone_else_took_out_is_written_again() -> None:
    server, engine = Server(), Engine()
    async with sending(server, engine) as (writes, _):
        writes.seen(engine.seen(1))
        writes.set_reclaimable("ns/w", (ReclaimablePod("main", 2),))
        await settled()
        sent = len(server.bodies)
        server.version = 9  # somebody else has written
        writes.seen(engine.seen(9))
        writes.set_reclaimable("ns/w", (ReclaimablePod("main", 2),))
        await settled()
        assert len(server.bodies) == sent + 1


async def test_our_own_writes_need_not_be_seen_first() -> None:
    server, engine = Server(), Engine()
    async with sending(server, engine) as (writes, _):
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


async def test_a_rejection_for_good_is_told_to_the_engine() -> None:
    server, engine = Server(), Engine()
    server.rejection = 422
    async with sending(server, engine) as (writes, _):
        writes.changed("ns/w")
        await settled()
        assert engine.refused == ["ns/w"] and not writes.is_pending("ns/w")


async def test_a_rejection_is_looked_at_again_later_and_later() -> None:
    """What the job says and the workload lacks is found missing at every look, and refused again."""
    server, engine = Server(), Engine()
    server.rejection = 403
    tried = 0

    def look(key: str) -> None:
        nonlocal tried
        tried += 1
        writes.set_reclaimable(key, (ReclaimablePod("main", 2),))

    async with sending(server, engine, News(look)) as (writes, clock):
        writes.set_reclaimable("ns/w", (ReclaimablePod("main", 2),))
        for _ in range(60):
            await clock.advance(1.0)
            writes.try_again()
        assert tried == 5, "after 1, 2, 4, 8 and 16 seconds"
        server.rejection = None
        for _ in range(60):
            await clock.advance(1.0)
            writes.try_again()
        assert [one["count"] for one in server.bodies[-1]["reclaimablePods"]] == [2]
        writes.gone("ns/w")


async def test_a_passing_failure_is_tried_again_with_what_is_to_be_written_by_then() -> None:
    server, engine = Server(), Engine()
    server.rejection = 500
    async with sending(server, engine) as (writes, clock):
        engine.decide(1)
        writes.changed("ns/w")
        await clock.advance(30.0)
        assert writes.is_pending("ns/w") and server.bodies == []
        engine.decide(2)
        server.rejection = None
        await clock.advance(15.0)
        assert [body["requeueState"]["count"] for body in server.bodies] == [2] and not writes.is_pending("ns/w")


async def test_a_status_that_the_call_queue_has_given_up_is_not_lost() -> None:
    server, engine = Server(), Engine()
    server.rejection = 500
    async with sending(server, engine) as (writes, clock):
        writes.changed("ns/w")
        for _ in range(70):
            await clock.advance(10.0)
        due = writes.retries.next_due()
        assert writes.is_pending("ns/w") and due is not None
        server.rejection = None
        await clock.advance(max(0.0, due - clock.monotonic()))
        writes.try_again()
        await settled()
        assert len(server.bodies) == 1 and not writes.is_pending("ns/w")


async def test_after_a_conflict_the_workload_is_read_if_the_watch_does_not_bring_it() -> None:
    server, engine, news = Server(), Engine(), News()
    async with sending(server, engine, news) as (writes, clock):
        writes.seen(engine.seen(1))
        server.version = 7  # somebody else has written, and the watch does not tell
        engine.decide(1)
        writes.changed("ns/w")
        await settled()
        writes.try_again()
        assert news.read == [], "the watch is given a second"
        await clock.advance(1.0)
        writes.try_again()
        await settled()
        assert news.read == ["7"] and server.bodies == [], "what the other one wrote is not overwritten unseen"
        writes.seen(engine.seen(7))
        await settled()
        assert len(server.bodies) == 1 and not writes.is_pending("ns/w") and writes.retries.next_due() is None


async def test_a_conflict_without_a_newer_version_does_not_hold_up_a_status_for_ever() -> None:
    server, engine, news = Server(), Engine(), News()
    server.rejection = 409
    async with sending(server, engine, news) as (writes, clock):
        writes.seen(engine.seen(1))
        writes.changed("ns/w")
        await settled()
        server.rejection = None
        await clock.advance(1.0)
        writes.try_again()
        await settled()
        assert len(server.bodies) == 1 and not writes.is_pending("ns/w") and news.read == []


async def test_what_is_left_in_the_call_queue_when_we_lead_no_more_is_not_written() -> None:
    """Whoever leads then, perhaps this very process, has decided anew: quota could be given away twice."""
    server, engine = Server(), Engine()
    server.rejection = 500
    async with sending(server, engine) as (writes, clock):
        writes.changed("ns/w")
        await clock.advance(1.0)
        writes.end()
        server.rejection = None
        await clock.advance(60.0)
        assert server.bodies == []


async def test_the_answer_for_a_workload_that_is_gone_is_of_no_interest() -> None:
    server, engine = EachWrittenOnce(), Two("cohort")
    async with sending(server, engine) as (writes, _):
        engine.hand_over(writes)
        writes.gone("ns/old")
        await settled()
        assert not writes.is_pending("ns/old") and not writes.is_pending("ns/new")


async def test_an_admission_is_taken_back_before_another_one_takes_its_place() -> None:
    """The API server refuses to exchange one for the other."""
    server, engine, news = Server(), Engine(), News()
    async with sending(server, engine, news) as (writes, _):
        writes.seen(engine.seen(1))
        for queue in ("first", "second"):
            conditions = tuple(TimedCondition(type=one, status="True") for one in ("QuotaReserved", "Admitted"))
            status = WorkloadStatus(conditions=conditions, admission=Admission(queue))
            engine.current = replace(engine.current, status=status)
            writes.decided([engine.current])
            await settled()
    told = [(body["admission"] or {}).get("clusterQueue") for body in server.bodies]
    assert told == ["first", None, "second"] and news.written == ["ns/w", "ns/w"]
    assert [one["status"] for one in server.bodies[1]["conditions"]] == ["False", "False"]


class Two(Engine):
    """Two workloads, each with quota in the queue that is named or without."""

    def __init__(self, tree: str) -> None:
        super().__init__()
        self.tree = tree
        self.held = {"ns/old": "first", "ns/new": ""}

    def workload(self, key: str) -> Workload:
        queue, name = self.held[key], key.removeprefix("ns/")
        conditions = (TimedCondition(type="QuotaReserved", status="True"),) if queue else ()
        status = WorkloadStatus(conditions=conditions, admission=Admission(queue) if queue else None)
        return Workload(metadata=ObjectMeta(name=name, namespace="ns", resource_version="1"), status=status)

    def quota_tree(self, cluster_queue: str) -> str:
        return self.tree or cluster_queue

    def hand_over(self, writes: StatusWrites) -> None:
        """What one gives back the other gets."""
        for key in self.held:
            writes.seen(self.workload(key))
        self.held = {"ns/old": "", "ns/new": "second"}
        writes.decided([self.workload(key) for key in self.held])


class EachWrittenOnce(Server):
    async def patch(self, *arguments: Any, **options: Any) -> bytes:
        self.version = 1
        return await super().patch(*arguments, **options)

    @property
    def queues(self) -> list[str | None]:
        return [(body["admission"] or {}).get("clusterQueue") for body in self.bodies]


async def test_quota_is_shared_as_the_present_engine_says() -> None:
    """The first engine knows no cohorts; it is replaced when the first list has come, and after errors."""
    server, engine = EachWrittenOnce(), Two("cohort")
    async with sending(server, Two("")) as (writes, clock):
        writes.engine = cast(JobQueueing, engine)
        server.rejection = 500
        engine.hand_over(writes)
        await settled()
        server.rejection = None
        writes.changed("ns/new")
        await settled()
        assert server.bodies == [], "the release of the same cohort is not stored"
        await clock.advance(1.0)
        assert server.queues == [None, "second"]


async def test_quota_that_it_is_not_allowed_to_give_back_is_not_given_away() -> None:
    server, engine = EachWrittenOnce(), Two("cohort")
    async with sending(server, engine) as (writes, clock):
        server.rejection = 403
        engine.hand_over(writes)
        await settled()
        assert engine.refused == [] and writes.is_pending("ns/old")
        server.rejection = None
        writes.changed("ns/new")
        await settled()
        assert server.bodies == []
        for _ in range(5):
            await clock.advance(1.0)
            writes.try_again()
        await settled()
        assert server.queues == [None, "second"] and not writes.is_pending("ns/old")


async def test_a_failure_wakes_who_sleeps_until_the_next_look() -> None:
    """Simulation, seed 313: the controller slept without end, because nothing was due when it went to sleep."""
    woken: list[float | None] = []
    clock = VirtualClock()
    retries: Retries[str] = Retries(clock, lambda: woken.append(retries.next_due()))
    assert retries.next_due() is None
    retries.failed("ns/w")
    assert woken == [clock.monotonic() + 1.0]
