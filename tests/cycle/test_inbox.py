"""News wait for the loop and take effect in order."""

from __future__ import annotations

import asyncio

from pilotage.cycle.inbox import Inbox
from pilotage.testing import VirtualClock


def test_news_take_effect_in_order_and_once() -> None:
    inbox, done = Inbox(), []
    inbox.put(lambda: done.append(1))
    inbox.put(lambda: done.append(2))
    assert inbox.drain() == 2 and done == [1, 2]
    assert inbox.drain() == 0


def test_news_that_bring_news_are_all_done() -> None:
    inbox, done = Inbox(), []
    inbox.put(lambda: inbox.put(lambda: done.append("later")))
    assert inbox.drain() == 2 and done == ["later"]


async def test_an_arrival_wakes_who_waits_and_a_drained_inbox_does_not() -> None:
    inbox, clock = Inbox(), VirtualClock()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(inbox.arrival())
        await clock.settle()
        assert not waiting.done()
        inbox.put(lambda: None)
        await clock.settle()
        assert waiting.done()
        inbox.drain()
        again = tasks.create_task(inbox.arrival())
        await clock.settle()
        assert not again.done()
        inbox.wake()
        await clock.settle()
        assert again.done()
