"""Queues whose theory is known: pods of one slot on c slots, with exponential times between arrivals and lifetimes.

The probability to wait and the mean wait are those of Erlang's formula C, and with priorities (which do not preempt)
those of Cobham: within the confidence interval of batch means. Arrivals are drawn once, so the test is always the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pilotage.rng import seeded
from tests.lab.worlds import EAGER, Change, node, played, pod, put

BATCHES = 20
T_999 = 3.88
"""Of Student's t with 19 degrees of freedom: 999 of 1,000 intervals hold the mean."""


def erlang_c(slots: int, load: float) -> float:
    """The probability that somebody who comes has to wait."""
    term, total = 1.0, 0.0
    for busy in range(slots):
        total += term
        term *= load / (busy + 1)
    waiting = term * slots / (slots - load)
    return waiting / (total + waiting)


def arrivals(slots: int, load: float, count: int, priorities: tuple[int, ...]) -> Iterator[Change]:
    yield put(0, node("n").cpu("1000").pods(slots))
    rng, time = seeded(7), 0.0
    for number in range(count):
        time += rng.expovariate(load)
        one = pod(f"p{number}").priority(rng.choice(priorities)).spec(preemptionPolicy="Never")
        yield put(time, one, runs=rng.expovariate(1.0))


def agrees(found: NDArray[np.float64], expected: float) -> bool:
    """Is the expected mean in the interval that the batches give?"""
    means = np.array([batch.mean() for batch in np.array_split(found, BATCHES)])
    return abs(means.mean() - expected) <= T_999 * means.std(ddof=1) / math.sqrt(BATCHES)


def waits(result: dict[str, NDArray[np.float64]], warm_up: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    order = np.argsort(result["arrived"], kind="stable")[warm_up:]
    return (result["bound"] - result["arrived"])[order], result["priority"][order]


@pytest.mark.parametrize(("slots", "load", "count"), [(10, 8.0, 2000), (100, 90.0, 3000)])
def test_waiting_is_as_erlang_says(tmp_path: Path, slots: int, load: float, count: int) -> None:
    result = played(tmp_path, *arrivals(slots, load, count, (0,)), options=EAGER, every=1e6)
    waited, _ = waits(result.pods, warm_up=count // 10)
    chance = erlang_c(slots, load)
    assert agrees((waited > 0).astype(np.float64), chance)
    assert agrees(waited, chance / (slots - load))


@pytest.mark.parametrize(("slots", "load", "count"), [(10, 8.0, 2000), (100, 90.0, 3000)])
def test_who_is_more_important_waits_less_and_as_long_as_theory_says(
    tmp_path: Path, slots: int, load: float, count: int
) -> None:
    result = played(tmp_path, *arrivals(slots, load, count, (0, 100)), options=EAGER, every=1e6)
    waited, priority = waits(result.pods, warm_up=count // 10)
    chance, share = erlang_c(slots, load), load / slots / 2
    assert agrees((waited > 0).astype(np.float64), chance)
    important = chance / slots / (1 - share)
    assert agrees(waited[priority == 100], important)
    assert agrees(waited[priority == 0], important / (1 - 2 * share))


def test_the_formula_is_right_where_it_is_known() -> None:
    assert erlang_c(1, 0.5) == pytest.approx(0.5)
    assert erlang_c(2, 1.0) == pytest.approx(1 / 3)
