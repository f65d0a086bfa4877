"""The loop that runs all controllers: wakes in time, survives failures, repeats exactly."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

import pytest

from pilotage.sandbox.api import Api
from pilotage.sandbox.errors import conflict
from pilotage.sandbox.life.controllers.controller import ControllerContext, Due, Interest, itself
from pilotage.sandbox.life.loop import DEFAULT_CONTROLLERS, Life
from pilotage.sandbox.life.node_templates import make_nodes
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.storage.store import Key, Store
from pilotage.testing.virtual_clock import VirtualClock
from tests.sandbox.living_cluster import PLAIN, Binder, LivingCluster, deployment, pod, replica_set


class Troubled:
    """Fails on ConfigMaps named `bad` as often as told, and notes when it is called."""

    name = "troubled"

    def __init__(self, world: ControllerContext, failures: int, error: Exception) -> None:
        self._world = world
        self._failures = failures
        self._error = error
        self.calls: list[tuple[str, float]] = []

    def interests(self) -> Mapping[str, Interest]:
        return {"configmaps": itself}

    def reconcile(self, key: Key) -> float | None:
        self.calls.append((key.name, self._world.clock.monotonic()))
        if key.name == "bad" and self._failures > 0:
            self._failures -= 1
            raise self._error
        return None


def config(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def troubled_life(failures: int, error: Exception) -> tuple[Life, Api, VirtualClock, Troubled]:
    clock = VirtualClock()
    api = Api(Store(history=1000), clock=clock, rng=random.Random(1))
    made: list[Troubled] = []

    def make(world: ControllerContext) -> Troubled:
        made.append(Troubled(world, failures, error))
        return made[0]

    life = Life(api, clock, random.Random(1), controllers=[make])
    life.start()
    return life, api, clock, made[0]


async def test_failing_key_is_retried_later_and_later_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    life, api, clock, troubled = troubled_life(3, RuntimeError("a bug"))
    api.create("configmaps", "default", config("bad"))
    api.create("configmaps", "default", config("good"))
    life.step()
    while life.next_due is not None:
        await clock.advance(life.next_due - clock.monotonic())
        life.step()
    assert ("good", 0.0) in troubled.calls
    times = [time for name, time in troubled.calls if name == "bad"]
    assert times == pytest.approx([0.0, 0.05, 0.15, 0.35])
    logged = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(logged) == 3 and "key=configmaps default/bad" in logged[0].getMessage()


async def test_conflict_is_retried_quietly(caplog: pytest.LogCaptureFixture) -> None:
    life, api, clock, troubled = troubled_life(1, conflict("configmaps", "bad", "modified"))
    api.create("configmaps", "default", config("bad"))
    life.step()
    await clock.advance(1)
    life.step()
    assert len(troubled.calls) == 2 and life.next_due is None
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_key_that_writes_before_it_fails_does_not_spin() -> None:
    class Scribbler(Troubled):
        """Marks itself by its own write each time before it fails."""

        def reconcile(self, key: Key) -> float | None:
            obj = self._world.read(key)
            assert obj is not None
            obj["data"] = {"calls": str(len(self.calls))}
            self._world.write(key, obj)
            return super().reconcile(key)

    clock = VirtualClock()
    api = Api(Store(history=1000), clock=clock, rng=random.Random(1))
    made: list[Scribbler] = []

    def make(world: ControllerContext) -> Scribbler:
        made.append(Scribbler(world, 1000, RuntimeError("a bug")))
        return made[0]

    life = Life(api, clock, random.Random(1), controllers=[make])
    life.start()
    api.create("configmaps", "default", config("bad"))
    life.step(100)
    assert len(made[0].calls) == 1
    while life.next_due is not None and life.next_due < 1.0:
        await clock.advance(life.next_due - clock.monotonic())
        life.step(100)
    assert len(made[0].calls) == 5


@asynccontextmanager
async def running(life: Life) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(life.run())
        yield
        task.cancel()


async def test_run_sleeps_until_the_next_timer_and_wakes_for_changes() -> None:
    cluster = LivingCluster(nodes=0)
    cluster.life.stop()
    async with running(cluster.life):
        await cluster.clock.settle()
        for node in make_nodes(2):
            cluster.create(node)
        cluster.create(deployment("web", 3))
        cluster.create(pod("late", node="node-00001", annotations={"start-delay": "1h"}))
        await cluster.clock.advance(5)
        assert len(cluster.pods(phase="Running", app="web")) == 3
        cluster.create(pod("soon", node="node-00001", annotations={"start-delay": "10s"}))
        await cluster.clock.advance(11)
        assert cluster.status("Pod", "soon")["phase"] == "Running"
        assert await cluster.clock.run_until_idle() == pytest.approx(3600 - 16, abs=1)
        assert cluster.status("Pod", "late")["phase"] == "Running"


async def test_run_lets_other_tasks_have_their_turn_between_batches() -> None:
    cluster = LivingCluster()
    cluster.life.stop()
    cluster.create(replica_set("web", 500))
    most_between_turns, before = 0, 0

    async with running(cluster.life):
        for _ in range(200):
            await cluster.clock.sleep(0)
            made = len(cluster.store.list("pods"))
            most_between_turns, before = max(most_between_turns, made - before), made
        assert before == 500
    assert most_between_turns <= 200


async def test_stopped_life_hears_nothing_and_goes_on_when_started_again() -> None:
    cluster = LivingCluster()
    cluster.life.stop()
    cluster.create(deployment("web", 2))
    await cluster.settle()
    assert cluster.pods() == []
    cluster.life.start()
    await cluster.settle()
    assert len(cluster.pods(phase="Running")) == 2


async def history(seed: int) -> list[bytes]:
    clock, store, lines = VirtualClock(), Store(history=10_000), []
    api = Api(store, clock=clock, rng=random.Random(seed))
    store.subscribe(None, lambda change: lines.append(change.line))
    life = Life(api, clock, random.Random(seed), controllers=(*DEFAULT_CONTROLLERS, Binder), kubelet=PLAIN)
    for node in make_nodes(3):
        api.create("nodes", "", node)
    async with running(life):
        api.create("deployments.apps", "default", deployment("web", 20))
        await clock.advance(10)
        api.delete("deployments.apps", "default", "web")
        await clock.run_until_idle()
    return lines


async def test_same_seed_gives_the_same_history_to_the_byte() -> None:
    first, second, other = await history(7), await history(7), await history(8)
    assert first == second
    assert first != other and len(first) == len(other)


def test_controller_hears_only_of_what_it_asked_for() -> None:
    heard: list[str] = []

    class Curious:
        name = "curious"

        def interests(self) -> Mapping[str, Interest]:
            return {"secrets": self._seen}

        def _seen(self, seen: ObservedChange) -> Iterable[Due]:
            heard.append(seen.key.name)
            return ()

        def reconcile(self, key: Key) -> float | None:
            raise AssertionError("nothing was marked")

    clock = VirtualClock()
    api = Api(Store(history=100), clock=clock, rng=random.Random(1))
    life = Life(api, clock, random.Random(1), controllers=[lambda world: Curious()])
    life.start()
    api.create("configmaps", "default", config("a"))
    api.create("secrets", "default", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}})
    life.step()
    assert heard == ["b"]
