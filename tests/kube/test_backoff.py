"""Delays between attempts."""

from __future__ import annotations

from pilotage.kube.backoff import FIRST_SECONDS, LONGEST_SECONDS, Backoff
from pilotage.rng import seeded


def test_delays_double_up_to_the_limit_and_are_spread() -> None:
    runs = [[backoff.next_delay() for _ in range(14)] for backoff in (Backoff(seeded(seed)) for seed in range(50))]
    for step in range(8):
        column = [run[step] for run in runs]
        base = FIRST_SECONDS * 2**step
        assert all(base * 0.5 <= delay <= base * 1.5 for delay in column)
        assert max(column) > base * 1.2 and min(column) < base * 0.8
    assert all(LONGEST_SECONDS / 2 <= run[-1] <= LONGEST_SECONDS for run in runs)


def test_after_a_success_delays_are_short_again() -> None:
    backoff = Backoff(seeded(1))
    for _ in range(10):
        backoff.next_delay()
    backoff.reset()
    assert backoff.next_delay() <= FIRST_SECONDS * 1.5
