"""PrioritySort: higher priority first, then who has waited longer."""

from __future__ import annotations

from pilotage.api import QueuedPod
from pilotage.plugins import PrioritySort
from pilotage.testing import pod


def key(priority: int | None, timestamp: float) -> tuple[float, ...]:
    builder = pod("p") if priority is None else pod("p").priority(priority)
    return PrioritySort().sort_key(QueuedPod(builder.build(), timestamp, attempts=1))


def test_higher_priority_comes_first_whenever_it_came() -> None:
    assert key(10, 99.0) < key(9, 1.0) < key(-5, 0.0)


def test_of_equal_priority_the_older_comes_first() -> None:
    assert key(3, 1.0) < key(3, 1.5)


def test_no_priority_is_priority_zero() -> None:
    assert key(None, 5.0) == key(0, 5.0)
    assert key(1, 5.0) < key(None, 5.0) < key(-1, 5.0)
