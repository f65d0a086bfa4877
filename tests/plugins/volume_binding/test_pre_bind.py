"""The wait for the volume controller: what ends it, well or badly, and news that come too late to be an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from pilotage.api import CycleState
from pilotage.calls.dispatcher import Dispatcher
from pilotage.cycle.handle import FrameworkHandle, NoEffects
from pilotage.observe.metrics import Metrics
from pilotage.plugins import VolumeBinding
from pilotage.plugins.args import VolumeBindingArgs
from pilotage.plugins.volume_binding.claims import VolumeError
from pilotage.rng import seeded
from pilotage.testing import VirtualClock, node
from tests.calls.captured_writes import CapturedWrites
from tests.plugins.volume_binding.binding_world import BindingWorld
from tests.plugins.volume_world import BOUND, Object, claim, storage_class, using, volume

SELECTED = "volume.kubernetes.io/selected-node"
WRITTEN = "7"


class Answering(CapturedWrites):
    """Gives what is written the resource version 7."""

    async def patch(self, *arguments: Any, **options: Any) -> bytes:
        await super().patch(*arguments, **options)
        return msgspec.json.encode({"metadata": {"resourceVersion": WRITTEN}})


class Waiting(BindingWorld):
    """A pod on node n whose PreBind is running."""

    def __init__(self, *objects: Object, timeout_seconds: int = 600) -> None:
        super().__init__(node("n").zone("z1"), node("m"))
        self.clock, self.writer = VirtualClock(), Answering()
        self.dispatcher = Dispatcher(self.writer)
        self.metrics = Metrics()
        self.handle = FrameworkHandle(self.cluster, self.clock, seeded(1), self.metrics, NoEffects(self.dispatcher))
        self.plugin = VolumeBinding(self.handle, VolumeBindingArgs(bind_timeout_seconds=timeout_seconds))
        self.put(*objects)
        self.pod = using("c").build()
        self.cluster.put_object("Pod", self.pod)
        self.outcome: list[Exception | None] = []

    async def bind(self, state: CycleState) -> None:
        try:
            assert await self.plugin.pre_bind(state, self.pod, "n") is None
            self.outcome.append(None)
        except VolumeError as error:
            self.outcome.append(error)

    def problem(self) -> str:
        (error,) = self.outcome
        return str(error)


@asynccontextmanager
async def waiting(*objects: Object, timeout_seconds: int = 600) -> AsyncIterator[Waiting]:
    world = Waiting(*objects, timeout_seconds=timeout_seconds)
    state = world.reserved(using("c"), "n")
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(world.dispatcher.run()), tasks.create_task(world.bind(state))]
        await world.clock.settle()
        yield world
        for task in running:
            task.cancel()


MADE = (storage_class("s"), claim("c", class_name="s"))
LOCAL = (
    storage_class("s", provisioner="kubernetes.io/no-provisioner"),
    claim("c", class_name="s"),
    volume("v", class_name="s"),
)


def ordered(version: str = WRITTEN, **annotations: str) -> Object:
    """The claim after our write."""
    return claim("c", class_name="s", resourceVersion=version, annotations={SELECTED: "n", **annotations})


def reserved_volume(**more: Any) -> Object:
    mine = {"namespace": "default", "name": "c", "uid": "uid-c"}
    written = volume("v", class_name="s", **{"claimRef": mine, **more})
    written["metadata"]["resourceVersion"] = WRITTEN
    return written


def bound_claim(volume_name: str, version: str = "8") -> Object:
    annotations = {SELECTED: "n", **BOUND}
    return claim("c", class_name="s", volume_name=volume_name, resourceVersion=version, annotations=annotations)


async def test_a_claim_that_gets_its_volume_ends_the_wait() -> None:
    async with waiting(*MADE) as world:
        (write,) = world.writer.writes
        assert write.body["metadata"] == {"uid": "uid-c", "resourceVersion": "1", "annotations": {SELECTED: "n"}}
        world.put(ordered())
        await world.clock.advance(3)
        assert world.outcome == []
        world.put(volume("made", class_name="s"), bound_claim("made"))
        await world.clock.advance(1)
        assert world.outcome == [None]


async def test_the_answer_is_noticed_when_it_comes_not_at_the_next_look() -> None:
    async with waiting(*MADE) as world:
        world.put(ordered(), bound_claim("made"))
        await world.clock.settle()
        assert world.outcome == [], "its volume is not known yet"
        named = {"namespace": "default", "name": "c", "uid": "uid-c"}
        world.put(volume("made", class_name="s", claimRef=named))
        await world.clock.settle()
        assert world.outcome == [None]


async def test_a_reserved_volume_that_is_bound_ends_the_wait() -> None:
    async with waiting(*LOCAL) as world:
        (write,) = world.writer.writes
        assert write.body["spec"]["claimRef"]["uid"] == "uid-c"
        world.put(reserved_volume(), bound_claim("v"))
        await world.clock.advance(1)
        assert world.outcome == [None]


async def test_news_from_before_the_write_are_no_answer() -> None:
    """Before our write is seen, the claim has no annotation and the volume no claim: nobody has taken them off."""
    async with waiting(*MADE) as world:
        world.put(claim("c", class_name="s", resourceVersion="3", annotations={"other": "news"}))
        await world.clock.advance(5)
        assert world.outcome == []
    async with waiting(*LOCAL) as world:
        world.put(bound_claim("v"))
        await world.clock.advance(5)
        assert world.outcome == [], "the volume is still as it was before"


async def test_news_of_the_claim_may_overtake_those_of_its_volume() -> None:
    async with waiting(*MADE) as world:
        world.put(bound_claim("made"))
        await world.clock.advance(3)
        assert world.outcome == []
        world.put(volume("made", class_name="s"))
        await world.clock.advance(1)
        assert world.outcome == [None]


@pytest.mark.parametrize(
    ("start", "news", "problem"),
    [
        (MADE, [claim("c", class_name="s", resourceVersion="9")], 'selectedNode annotation reset for PVC "c"'),
        (
            MADE,
            [claim("c", class_name="s", resourceVersion="9", annotations={"x": "y"})],
            'provisioning failed for PVC "c"',
        ),
        (
            MADE,
            [volume("made", class_name="s", at={"zone": ["other"]}), bound_claim("made")],
            'pv "made" node affinity doesn\'t match node "n": no matching NodeSelectorTerms',
        ),
        (LOCAL, [reserved_volume(claimRef=None)], 'ClaimRef got reset for pv "v"'),
    ],
    ids=["annotation gone", "given up", "made elsewhere", "claim taken off"],
)
async def test_an_answer_that_ends_the_wait_badly(start: tuple[Object, ...], news: list[Object], problem: str) -> None:
    async with waiting(*start) as world:
        world.put(*news)
        await world.clock.advance(1)
        assert world.problem() == f"binding volumes: {problem}"


async def test_a_pod_that_is_gone_is_not_waited_for() -> None:
    async with waiting(*MADE) as world:
        world.cluster.remove_object("Pod", world.pod.key)
        await world.clock.advance(1)
        assert world.problem() == 'binding volumes: pod does not exist any more: pod "p" not found'


async def test_the_wait_has_an_end() -> None:
    async with waiting(*MADE, timeout_seconds=5) as world:
        world.put(ordered())
        await world.clock.advance(4.9)
        assert world.outcome == []
        await world.clock.advance(0.1)
        assert world.problem() == "binding volumes: not bound after 5 seconds"
        assert world.metrics.volume_scheduling_stage_error_total.values() == {("bind",): 1}


async def test_what_was_written_before_is_not_written_again() -> None:
    async with waiting(storage_class("s"), ordered(version="1")) as world:
        assert world.writer.writes == []
        world.put(volume("made", class_name="s"), bound_claim("made"))
        await world.clock.advance(1)
        assert world.outcome == [None]
