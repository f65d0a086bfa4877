"""News wait for the loop and take effect in order."""

from __future__ import annotations

import asyncio
from functools import partial

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


class SlowClock:
    """Each look at it takes a while."""

    def __init__(self) -> None:
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        self.now += 0.02
        return self.now

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody sleeps here")


async def test_news_that_take_long_are_taken_in_slices_in_their_order() -> None:
    inbox, done = Inbox(clock=SlowClock()), list[int]()
    for number in range(5):
        inbox.put(lambda number=number: done.append(number))  # type: ignore[misc]
    slices = []
    while not inbox.is_empty:
        await inbox.arrival()
        slices.append(inbox.drain())
    assert done == [0, 1, 2, 3, 4] and len(slices) > 1 and max(slices) < 5


def test_what_is_left_of_long_news_comes_before_the_rest() -> None:
    clock, done = SlowClock(), list[int]()
    inbox = Inbox(clock=clock)

    def take(numbers: list[int]) -> None:
        for at, number in enumerate(numbers):
            done.append(number)
            if inbox.is_slice_over(clock.monotonic()):
                inbox.put_back(partial(take, numbers[at + 1 :]))
                return

    inbox.put(lambda: take([0, 1, 2, 3, 4, 5]))
    inbox.put(lambda: done.append(6))
    turns = 0
    while not inbox.is_empty:
        inbox.drain()
        turns += 1
    assert done == [0, 1, 2, 3, 4, 5, 6] and turns > 1
