"""What is done every second or so: by a timer, or by somebody who skips the seconds in which nothing is due."""

from __future__ import annotations

import math

from pilotage.cycle.scheduling_loop import Tick, Ticks
from pilotage.observe.task_errors import TaskErrors


class Timer:
    """Something that is done every so many seconds, and says how long it has nothing to do."""

    def __init__(self, every: int, wait: float = math.inf) -> None:
        self.wait = wait
        self.done = 0
        self.tick = Tick("timer", every, self._do, lambda: self.wait)

    def _do(self) -> None:
        self.done += 1


def test_each_is_done_in_its_seconds() -> None:
    one, three = Timer(1), Timer(3)
    ticks = Ticks([one.tick, three.tick], TaskErrors())
    for second in range(1, 8):
        ticks.run(second)
    assert (one.done, three.done) == (7, 2)


def test_the_next_second_is_the_first_that_has_something_to_do() -> None:
    quiet, soon, later = Timer(1), Timer(1, 2.5), Timer(30, 40.0)
    assert Ticks([quiet.tick], TaskErrors()).next(0.0) == math.inf
    assert Ticks([quiet.tick, soon.tick, later.tick], TaskErrors()).next(10.0) == 13
    assert Ticks([later.tick], TaskErrors()).next(10.0) == 60


def test_a_second_is_not_done_twice() -> None:
    timer = Timer(1, 0.0)
    ticks = Ticks([timer.tick], TaskErrors())
    ticks.run(5)
    assert ticks.next(5.0) == 6


def test_what_fails_stops_no_other() -> None:
    def fail() -> None:
        raise RuntimeError("no")

    timer = Timer(1)
    Ticks([Tick("fails", 1, fail, lambda: 0.0), timer.tick], TaskErrors()).run(1)
    assert timer.done == 1
