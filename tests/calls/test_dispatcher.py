"""Calls are sent side by side; lanes do not wait for each other; nothing is left behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from pilotage.api.calls import Lane
from pilotage.calls.call_queue import CallSkipped
from pilotage.calls.dispatcher import Dispatcher
from pilotage.testing import VirtualClock
from tests.calls.sample_calls import Binding, SampleCall, SlowServer, Status


class Office:
    """A running dispatcher in front of a slow server."""

    def __init__(self, concurrency: dict[Lane, int] | None = None) -> None:
        self.server = SlowServer()
        self.dispatcher = Dispatcher(self.server, concurrency)  # type: ignore[arg-type]
        self.told: list[tuple[str, str]] = []
        self._clock = VirtualClock()

    async def submit(self, *calls: SampleCall) -> None:
        for call in calls:
            self.dispatcher.submit(call, lambda error, text=call.text: self.told.append((text, repr(error))))
        await self.settle()

    async def finish(self, text: str, error: Exception | None = None) -> None:
        self.server.finish(text, error)
        await self.settle()

    async def settle(self) -> None:
        await self._clock.settle()


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    office = Office(dict.fromkeys(Lane, 2))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(office.dispatcher.run())
        await office.settle()
        yield office
        running.cancel()


async def test_calls_are_sent_and_their_outcome_told(office: Office) -> None:
    await office.submit(Status("a"))
    assert office.server.begun == ["status a"] and not office.dispatcher.is_idle
    await office.finish("status a")
    assert office.told == [("status a", "None")] and office.dispatcher.is_idle


async def test_a_slow_call_does_not_hold_up_the_next(office: Office) -> None:
    """There is room for two: the second must not wait for the first, however late it comes."""
    await office.submit(Status("a"))
    await office.submit(Status("b"))
    assert office.server.begun == ["status a", "status b"]


async def test_a_lane_sends_no_more_than_it_may(office: Office) -> None:
    await office.submit(*(Status(key) for key in "abcd"))
    assert office.server.begun == ["status a", "status b"]
    assert office.dispatcher.pending(Lane.STATUS) == 2 and office.dispatcher.in_flight == 2
    await office.finish("status b")
    await office.finish("status a")
    assert office.server.begun == ["status a", "status b", "status c", "status d"]


async def test_a_full_lane_does_not_hold_up_another(office: Office) -> None:
    await office.submit(*(Status(key) for key in "abcdefgh"))
    await office.submit(Binding("x"))
    assert office.server.begun[-1] == "binding x"


async def test_a_binding_follows_the_status_of_its_pod_without_being_asked(office: Office) -> None:
    """It waits for a call of another lane; when that is done, nothing else needs to happen."""
    await office.submit(Status("p"))
    await office.submit(Binding("p"))
    assert office.server.begun == ["status p"]
    await office.finish("status p")
    assert office.server.begun == ["status p", "binding p"]
    await office.finish("binding p")
    assert office.told == [("status p", "None"), ("binding p", "None")]


async def test_a_second_status_of_a_pod_follows_the_first(office: Office) -> None:
    await office.submit(Status("p", "1"))
    await office.submit(Status("p", "2"))
    await office.finish("1")
    assert office.server.begun == ["1", "2"]


async def test_a_failure_is_told_and_the_lane_goes_on(office: Office) -> None:
    await office.submit(*(Status(key) for key in "abc"))
    await office.finish("status a", OSError("refused"))
    await office.finish("status b")
    await office.finish("status c")
    assert office.told == [("status a", "OSError('refused')"), ("status b", "None"), ("status c", "None")]


async def test_an_awaited_call_returns_when_it_is_done(office: Office) -> None:
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(office.dispatcher.perform(Binding("p")))
        await office.settle()
        assert not waiting.done()
        await office.finish("binding p")
        assert waiting.done() and waiting.exception() is None


async def test_an_awaited_call_raises_what_went_wrong(office: Office) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_fail_soon(office))
        with pytest.raises(OSError, match="conflict"):
            await office.dispatcher.perform(Binding("p"))


async def _fail_soon(office: Office) -> None:
    await office.settle()
    await office.finish("binding p", OSError("conflict"))


async def test_an_awaited_call_that_is_pointless_raises_that(office: Office) -> None:
    await office.submit(Binding("p"))
    with pytest.raises(CallSkipped):
        await office.dispatcher.perform(Status("p"))


async def test_nobody_waits_for_a_caller_that_gave_up(office: Office) -> None:
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(office.dispatcher.perform(Binding("p")))
        await office.settle()
        waiting.cancel()
    await office.finish("binding p")
    assert office.server.ended == ["binding p"] and office.dispatcher.is_idle


async def test_a_failure_that_nobody_listens_to_is_logged(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        office.dispatcher.submit(Status("p"))
        await office.settle()
        await office.finish("status p", OSError("refused"))
    assert "call=status" in caplog.text and "refused" in caplog.text


async def test_calls_submitted_before_the_start_are_sent_after_it() -> None:
    office = Office()
    office.server.is_slow = False
    await office.submit(Status("a"), Binding("b"))
    assert office.server.begun == []
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(office.dispatcher.run())
        await office.settle()
        running.cancel()
    assert sorted(office.server.ended) == ["binding b", "status a"]


async def test_cancelling_ends_the_calls_in_flight() -> None:
    office = Office()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(office.dispatcher.run())
        await office.settle()
        await office.submit(Status("a"))
        running.cancel()
    assert running.cancelled() and office.server.ended == []
