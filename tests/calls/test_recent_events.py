"""Repetitions of an event: what is written when, as kube-scheduler's events do it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hypothesis import given
from hypothesis import strategies as st

from pilotage.calls.dispatcher import Dispatcher
from pilotage.calls.event import EventCreation, Repetition
from pilotage.calls.recent_events import FINISH_SECONDS, RecentEvents
from pilotage.calls.recorder import EventRecorder
from pilotage.model import Pod
from pilotage.testing import VirtualClock, pod
from tests.calls.captured_writes import CapturedWrites, Write
from tests.calls.test_event import FACTS


class Recording:
    def __init__(self) -> None:
        self.writer = CapturedWrites()
        self.clock = VirtualClock()
        self.dispatcher = Dispatcher(self.writer)
        self.recorder = EventRecorder(self.dispatcher, self.clock)

    async def fail(self, which: Pod, note: str = "no room") -> None:
        self.recorder.record(which, "Warning", "FailedScheduling", "Scheduling", note)
        await self.clock.settle()

    async def after(self, seconds: float) -> list[Write]:
        """What is written while so much time passes."""
        before = len(self.writer.writes)
        for _ in range(int(seconds)):
            await self.clock.advance(1.0)
            self.recorder.tick()
        await self.clock.settle()
        return self.writer.writes[before:]


@asynccontextmanager
async def recording() -> AsyncIterator[Recording]:
    made = Recording()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(made.dispatcher.run())
        yield made
        running.cancel()


POD = pod("p").uid("u").version(7).build()


async def test_second_time_makes_a_series_of_two_at_once() -> None:
    async with recording() as world:
        await world.fail(POD, "first note")
        await world.after(3)
        await world.fail(POD, "another note")
        created, patched = world.writer.writes
        assert created.verb == "create" and "series" not in created.body
        assert (patched.verb, patched.key) == ("patch", f"default/{created.body['metadata']['name']}")
        assert patched.body == {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:03.000000Z"}}
        assert patched.options == {"content_type": "application/strategic-merge-patch+json", "subresource": ""}


async def test_events_of_a_busy_scheduler_wait_for_a_second_at_most() -> None:
    async with recording() as world:
        world.recorder.catch_up(is_busy=True)
        await world.fail(POD)
        await world.clock.advance(0.5)
        await world.fail(pod("soon").build())
        await world.clock.advance(0.25)
        await world.fail(pod("q").build())
        world.recorder.catch_up(is_busy=True)
        await world.clock.settle()
        assert not world.writer.writes
        await world.clock.advance(0.25)
        world.recorder.catch_up(is_busy=True)
        await world.clock.settle()
        names = [write.body["regarding"]["name"] for write in world.writer.writes]
        assert names == ["p", "soon"], "what is half as old goes with the oldest"
        assert len(await world.after(1)) == 1, "also if the scheduler is held up"


async def test_events_are_written_at_once_when_there_is_time() -> None:
    async with recording() as world:
        world.recorder.catch_up(is_busy=True)
        await world.fail(POD, "first note")
        await world.fail(POD, "another note")
        world.recorder.catch_up(is_busy=False)
        await world.clock.settle()
        # The call queue makes one call of the event and its series.
        assert [write.body["series"]["count"] for write in world.writer.writes] == [2]
        await world.fail(pod("q").build())
        assert [write.verb for write in world.writer.writes] == ["create", "create"]


async def test_further_times_are_counted_and_written_when_the_series_is_over() -> None:
    async with recording() as world:
        for _ in range(5):
            await world.fail(POD)
            await world.after(10)
        assert len(world.writer.writes) == 2
        written = await world.after(2 * FINISH_SECONDS)
        assert [write.body["series"]["count"] for write in written] == [5]
        assert written[0].body["series"]["lastObservedTime"] == "2026-01-01T00:00:40.000000Z"


async def test_series_that_goes_on_is_written_every_half_hour() -> None:
    async with recording() as world:
        counts = []
        for _ in range(70):
            await world.fail(POD)
            counts += [write.body["series"]["count"] for write in await world.after(60) if write.verb == "patch"]
        assert counts == [30, 60]


async def test_after_a_pause_an_event_is_created_again() -> None:
    async with recording() as world:
        await world.fail(POD)
        assert await world.after(2 * FINISH_SECONDS + 1) == []
        await world.fail(POD)
        assert [write.verb for write in world.writer.writes] == ["create", "create"]


async def test_another_version_of_the_pod_is_another_event() -> None:
    async with recording() as world:
        await world.fail(POD)
        await world.fail(pod("p").uid("u").version(8).build())
        await world.fail(pod("q").uid("v").version(7).build())
        assert [write.verb for write in world.writer.writes] == ["create"] * 3


async def test_what_happens_once_is_not_remembered() -> None:
    async with recording() as world:
        world.recorder.record(POD, "Normal", "Scheduled", "Binding", "assigned")
        assert len(world.recorder._recent) == 0


async def test_series_of_an_event_that_has_expired_is_created_anew_with_its_count() -> None:
    class Expired(Exception):
        code = 404

    class Forgetful(CapturedWrites):
        async def patch(self, *arguments: object, **options: object) -> bytes:
            raise Expired

    writer = Forgetful()
    series = Repetition(9, "2026-01-01T00:00:40.000000Z")
    await EventCreation(POD, FACTS, series, is_new=False).perform(writer)
    (write,) = writer.writes
    assert write.verb == "create" and write.body["series"]["count"] == 9


async def test_repetition_before_the_event_was_sent_is_sent_with_it() -> None:
    first = EventCreation(POD, FACTS)
    merged = first.merged_with(EventCreation(POD, FACTS, Repetition(2, "t"), is_new=False))
    writer = CapturedWrites()
    await merged.perform(writer)
    (write,) = writer.writes
    assert write.verb == "create" and write.body["series"] == {"count": 2, "lastObservedTime": "t"}


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 900)), max_size=60))
def test_nothing_that_happened_goes_uncounted(steps: list[tuple[str, int]]) -> None:
    """Whatever the pauses: created events and the last counts written add up to what happened."""
    recent: RecentEvents[list[int]] = RecentEvents(0.0)
    now, written = 0.0, []
    for key, pause in steps:
        now += pause
        for event in recent.to_write(now):
            event.written[0] = event.count
        if recent.again(key, now) is None:
            counts = [1]
            written.append(counts)
            recent.add(key, counts, now)
    for _ in range(10):
        now += FINISH_SECONDS + 1
        for event in recent.to_write(now):
            event.written[0] = event.count
    assert sum(counts[0] for counts in written) == len(steps)
    assert len(recent) == 0
