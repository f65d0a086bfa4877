"""Both sides in one process, in virtual time: an API server in memory, and a scheduler that does as it is told."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pilotage.kube.client import KubeClient
from pilotage.kube.election import Election, ElectionTiming, LeaseName
from pilotage.kube.leader_election import LeaderElector
from pilotage.observe.metrics import Metrics
from pilotage.rng import seeded
from pilotage.serve.page import PageRequest, text_answer
from pilotage.serve.service import LeadershipLost
from pilotage.serve.site import Site
from pilotage.supervise.link import SupervisorLink
from pilotage.supervise.messages import Channel, ToScheduler, ToSupervisor
from pilotage.supervise.shared_lease import SharedElection
from pilotage.supervise.shared_state import SharedState
from pilotage.supervise.supervisor import LeaseCandidate, SchedulerEnded, Supervisor
from tests.kube.lease_world import Cable, LeaseWorld


class FakeChild:
    """A process that ends when it is killed, and otherwise as the test says."""

    def __init__(self, state: SharedState) -> None:
        self.state = state
        self.code: int | None = None
        self.signals: list[str] = []

    def poll(self) -> int | None:
        return self.code

    def terminate(self) -> None:
        self.signals.append("TERM")

    def kill(self) -> None:
        self.signals.append("KILL")
        self.code = -signal.SIGKILL

    def ask_for_stack(self) -> None:
        self.signals.append("stack")

    def stack(self) -> str:
        return "File x.py, line 1 in f"


class Pair:
    def __init__(self, world: LeaseWorld, to_supervisor: Any, to_scheduler: Any) -> None:
        self.world = world
        self.clock = world.clock
        self.state = SharedState()
        self.child = FakeChild(self.state)
        self.cable = Cable(world.plain)
        timing, lease = ElectionTiming(), LeaseName()
        election = Election("us", lease, timing, self.state.set_renewed_at)
        client = KubeClient(self.cable)
        elector = LeaderElector(client, election, self.clock, seeded(1))
        self.metrics = Metrics()
        child: Any = self.child
        self.supervisor = Supervisor(
            child, to_scheduler, LeaseCandidate(elector, client), self.metrics, self.clock, longest_silence=30.0
        )
        shared = SharedElection(lease, timing, self.state)
        self.link = SupervisorLink(to_supervisor, self.state, shared, self.clock)
        assert self.link.elector is not None
        self.lease = self.link.elector
        self.shown = Metrics()
        self.is_stuck = False
        self.channels = (to_supervisor, to_scheduler)

    async def alive(self) -> None:
        """What `SupervisorLink.serve` does beside the service."""
        site = Site({"/metrics": lambda request: text_answer("m")})
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.link._listen(site, self.shown))
            while True:
                if not self.is_stuck:
                    self.state.beat(self.clock.monotonic())
                await self.clock.sleep(0.5)


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[Pair, asyncio.Task[int], asyncio.TaskGroup]]:
    ours, theirs = socket.socketpair()
    to_supervisor: Channel[ToScheduler] = await Channel.over(ours, ToScheduler)
    to_scheduler: Channel[ToSupervisor] = await Channel.over(theirs, ToSupervisor)
    made = Pair(LeaseWorld(), to_supervisor, to_scheduler)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(outcome(made.supervisor.run()))
        living = tasks.create_task(quietly(made.alive()))
        yield made, running, tasks
        made.child.code = made.child.code or 0
        await passing(made, 20.0)
        assert running.done()
        living.cancel()
    for channel in made.channels:
        channel.close()


async def outcome(work: Any) -> Any:
    try:
        return await work
    except (SchedulerEnded, LeadershipLost) as error:
        return error


async def quietly(work: Any) -> None:
    try:
        await work
    except* LeadershipLost:
        pass


async def passing(made: Pair, seconds: float) -> None:
    """Virtual time in small steps, with real turns of the loop between them for the sockets."""
    for _ in range(int(seconds / 0.25)):
        await made.clock.advance(0.25)
        for _ in range(5):
            await asyncio.sleep(0)


async def test_scheduler_leads_as_long_as_its_supervisor_renews() -> None:
    async with pair() as (made, _, tasks):
        acquiring = tasks.create_task(made.lease.acquire())
        await passing(made, 1.0)
        assert acquiring.done() and made.lease.is_leading
        await passing(made, 60.0)
        assert made.lease.is_leading and (await made.world.spec())["holderIdentity"] == "us"
        await asyncio.wait([tasks.create_task(made.lease.release()), tasks.create_task(passing(made, 2.0))])
        assert not made.lease.is_leading and (await made.world.spec())["holderIdentity"] == ""


async def test_lost_lease_closes_the_fence_and_who_does_not_stop_is_killed_before_it_is_anyone_elses() -> None:
    async with pair() as (made, running, tasks):
        tasks.create_task(made.lease.acquire())
        await passing(made, 3.0)
        made.cable.is_cut = True
        holding = tasks.create_task(made.lease.hold())
        await passing(made, 10.0)
        assert not made.lease.is_leading
        assert holding.done() and "could not be renewed for 10 s" in holding.result()
        await passing(made, 2.75)
        assert made.child.signals == ["KILL"] and isinstance(running.result(), LeadershipLost)


async def test_silent_scheduler_is_ended_and_the_lease_given_back() -> None:
    async with pair() as (made, running, tasks):
        tasks.create_task(made.lease.acquire())
        await passing(made, 3.0)
        made.is_stuck = True
        await passing(made, 29.0)
        assert made.child.signals == [] and made.lease.is_leading, "the lease is kept meanwhile"
        assert (await made.supervisor.pages.reply(PageRequest("/healthz"))).status == 200
        await passing(made, 3.0)
        assert made.child.signals == ["stack", "KILL"] and isinstance(running.result(), SchedulerEnded)
        assert not made.lease.is_leading and (await made.world.spec())["holderIdentity"] == ""


async def test_scheduler_that_moves_again_when_asked_for_its_stack_lives_on() -> None:
    async with pair() as (made, running, tasks):
        tasks.create_task(made.lease.acquire())
        await passing(made, 3.0)
        made.is_stuck = True
        await passing(made, 30.25)
        assert made.child.signals == ["stack"]
        made.is_stuck = False
        made.state.beat(made.clock.monotonic())
        await passing(made, 20.0)
        assert made.child.signals == ["stack"] and not running.done()


async def test_lease_of_a_dead_scheduler_is_given_back_when_its_last_words_must_have_arrived() -> None:
    async with pair() as (made, running, tasks):
        tasks.create_task(made.lease.acquire())
        await passing(made, 3.0)
        made.is_stuck, made.child.code = True, -signal.SIGSEGV
        await passing(made, 4.0)
        assert (await made.world.spec())["holderIdentity"] == "us"
        await passing(made, 1.5)
        assert (await made.world.spec())["holderIdentity"] == "" and running.done()


async def test_page_is_the_schedulers_and_health_is_not() -> None:
    async with pair() as (made, _, tasks):
        made.metrics.rest_client_requests_total.add("200", "PUT", "host")
        assert (await made.supervisor.pages.reply(PageRequest("/metrics"))).status == 503, "nobody has begun"
        assert (await made.supervisor.pages.reply(PageRequest("/readyz"))).status == 500
        assert (await made.supervisor.pages.reply(PageRequest("/livez"))).body == b"ok"
        made.supervisor.pages.is_open = True
        asking = tasks.create_task(made.supervisor.pages.reply(PageRequest("/metrics")))
        await passing(made, 0.5)
        assert asking.result().body == b"m"
        assert made.shown.rest_client_requests_total.value("200", "PUT", "host") == 1


@pytest.mark.parametrize("side", [0, 1])
async def test_end_of_the_other_process_is_noticed(side: int) -> None:
    ours, theirs = socket.socketpair()
    ends: list[Channel[Any]] = [await Channel.over(ours, ToScheduler), await Channel.over(theirs, ToSupervisor)]
    ends[side].close()
    async with asyncio.timeout(60):
        assert await ends[1 - side].receive() is None
    ends[1 - side].close()
