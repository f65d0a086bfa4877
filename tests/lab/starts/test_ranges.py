"""Ranges, put right by how earlier ones fared."""

from __future__ import annotations

import math

import pytest

from pilotage.lab.starts.ranges import NEVER, Calibration, PastStart, StartRange, fared, fared_apart, range_of
from pilotage.rng import seeded


def test_a_range_leaves_out_a_tenth_on_each_side() -> None:
    found = range_of([float(number) for number in range(101)])
    assert (found.soonest, found.middle, found.latest) == (10, 50, 90)


def test_what_does_not_start_has_no_latest_and_perhaps_no_soonest() -> None:
    assert range_of([1.0, 2.0, NEVER, NEVER]) == StartRange(1.0, 2.0, NEVER)
    assert range_of([NEVER, NEVER]).soonest == NEVER


@pytest.mark.parametrize("error", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("bias", [0.2, 1.0, 5.0])
def test_however_wrong_the_copies_are_four_of_five_are_within(error: float, bias: float) -> None:
    """The copies say half of a width that is too small, and are wrong by a factor; later ones are like the earlier."""
    rng = seeded(5)
    past = []
    for _ in range(1200):
        truth = rng.lognormvariate(5, 1)
        said = truth * bias * rng.lognormvariate(0, error)
        past.append(PastStart(StartRange(said / 1.2, said, said * 1.2), truth))
    factor = Calibration.of(past[:600]).factor
    alone, right = fared(past[600:], 1.0), fared(past[600:], factor)
    assert alone is not None and right is not None
    assert right.within == pytest.approx(0.8, abs=0.05)
    assert alone.within < 0.6


def test_ranges_that_are_too_wide_become_narrower_but_hold_their_middle() -> None:
    past = [PastStart(StartRange(1.0, 100.0, 10_000.0), 100.0) for _ in range(20)]
    factor = Calibration.of(past).factor
    assert factor < 0.1 + 1e-9
    shrunk = past[0].stated.widened(factor)
    assert shrunk.soonest <= shrunk.middle <= shrunk.latest < 1100


def test_few_past_starts_change_nothing_and_are_not_spoken_of() -> None:
    past = [PastStart(StartRange(1.0, 2.0, 3.0), 30.0)] * 9
    assert Calibration.of(past).factor == 1.0
    assert fared_apart(past) is None


def test_who_has_not_started_yet_is_judged_only_when_the_range_is_over() -> None:
    early = PastStart(StartRange(10.0, 20.0, 30.0), NEVER, followed=25.0)
    late = PastStart(StartRange(10.0, 20.0, 30.0), NEVER, followed=40.0)
    assert not early.is_judged and late.is_judged
    counted = fared([early, late], 1.0)
    assert counted is not None and (counted.starts, counted.within, counted.error_seconds) == (1, 0.0, None)
    assert math.isinf(late.needed())
