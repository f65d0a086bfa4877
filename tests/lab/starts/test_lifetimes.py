"""What is left of a lifetime, from what is known."""

from __future__ import annotations

from statistics import fmean, median

import pytest

from pilotage.lab.starts.lifetimes import Lifetimes
from pilotage.rng import seeded


def drawn(known: Lifetimes, keys: tuple[str, ...], age: float = 0.0, deadline: float | None = None) -> list[float]:
    rng = seeded(1)
    found = [known.remaining(keys, age, deadline, rng) for _ in range(4000)]
    assert None not in found
    return [one for one in found if one is not None]


def test_what_ended_before_decides() -> None:
    known = Lifetimes()
    for seconds in (10.0, 20.0, 30.0):
        known.learn(("a",), seconds, is_over=True)
    found = drawn(known, ("a",))
    assert sorted({round(one) for one in found}) == [10, 20, 30]
    assert fmean(found) == pytest.approx(20, rel=0.05)


def test_who_is_older_than_some_has_what_the_others_had_left() -> None:
    known = Lifetimes()
    for seconds in (10.0, 20.0, 30.0):
        known.learn(("a",), seconds, is_over=True)
    assert sorted({round(one) for one in drawn(known, ("a",), age=15.0)}) == [5, 15]


def test_what_still_runs_makes_lifetimes_longer() -> None:
    rng, censored, naive = seeded(3), Lifetimes(), Lifetimes()
    for _ in range(2000):
        seconds = rng.expovariate(1 / 100)
        censored.learn(("a",), min(seconds, 80.0), is_over=seconds <= 80.0)
        if seconds <= 80.0:
            naive.learn(("a",), seconds, is_over=True)
    assert fmean(drawn(censored, ("a",))) == pytest.approx(100, rel=0.1)
    assert fmean(drawn(naive, ("a",))) < 50


def test_a_lifetime_without_memory_leaves_as_much_at_any_age() -> None:
    rng, known = seeded(3), Lifetimes()
    for _ in range(3000):
        known.learn(("a",), rng.expovariate(1 / 100), is_over=True)
    assert median(drawn(known, ("a",), age=150.0)) == pytest.approx(69, rel=0.2)


def test_the_most_specific_key_of_which_enough_ended_counts() -> None:
    known = Lifetimes()
    for _ in range(5):
        known.learn(("all",), 1000.0, is_over=True)
    known.learn(("own", "all"), 5.0, is_over=True)
    assert median(drawn(known, ("own", "all"))) == 1000.0
    for _ in range(2):
        known.learn(("own",), 5.0, is_over=True)
    assert median(drawn(known, ("own", "all"))) == 5.0


def test_a_deadline_bounds_and_stands_in_for_history() -> None:
    known = Lifetimes()
    assert known.remaining(("a",), 10.0, None, seeded(1)) is None
    assert known.remaining(("a",), 10.0, 60.0, seeded(1)) == 50.0
    for _ in range(3):
        known.learn(("a",), 500.0, is_over=True)
    assert set(drawn(known, ("a",), age=10.0, deadline=60.0)) == {50.0}
