"""The test and the index, against values that are known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.lab.significance import jain, least_p, p_value


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        # All 20 ways to deal six values: the one that was found, and the one the other way round.
        ([1, 2, 3], [4, 5, 6], 2 / 20),
        ([4, 5, 6], [1, 2, 3], 2 / 20),
        ([1, 4], [2, 3], 1.0),
        ([1, 3], [2, 4], 4 / 6),
        ([0, 0, 0, 0], [1, 1, 1, 1], None),
        ([0, 0, 0, 1], [5, 6, 7, 8], 2 / 70),
        ([1, 2], [3, 4, 5], 2 / 10),
        ([1], [2, 3], None),
        ([1, 2], [float("inf"), 3], None),
    ],
)
def test_known_values(first: list[float], second: list[float], p: float | None) -> None:
    assert p_value(first, second) == (None if p is None else pytest.approx(p))


def test_of_many_values_so_many_ways_are_drawn_and_always_the_same() -> None:
    low, high = [float(n) for n in range(20)], [float(n) + 30 for n in range(20)]
    assert p_value(low, high) == p_value(low, high) == pytest.approx(1 / 20_000)
    mixed = p_value(low, [float(n) + 0.5 for n in range(20)])
    assert mixed is not None and 0.6 < mixed <= 1.0, "half a step in twenty is chance"


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=5), st.lists(st.integers(-50, 50), min_size=2, max_size=5))
def test_it_is_a_probability_that_neither_order_nor_size_changes(first: list[int], second: list[int]) -> None:
    p = p_value(first, second)
    assert p == p_value(second, first) == p_value(first[::-1], second)
    assert p_value([10 * value for value in first], [10 * value for value in second]) == p
    assert p is None or least_p(len(first), len(second)) <= p + 1e-12 <= 1 + 2e-12


@pytest.mark.parametrize(("counts", "p"), [((4, 4), 2 / 70), ((2, 2), 2 / 6), ((2, 3), 1 / 10), ((5, 5), 2 / 252)])
def test_the_least_that_so_many_runs_can_say(counts: tuple[int, int], p: float) -> None:
    assert least_p(*counts) == pytest.approx(p)


@pytest.mark.parametrize(
    ("values", "index"),
    [([1, 1, 1, 1], 1.0), ([1, 0, 0, 0], 0.25), ([1, 2, 3], 36 / 42), ([0, 0], 1.0), ([], 1.0)],
)
def test_jains_index(values: list[float], index: float) -> None:
    assert jain(values) == pytest.approx(index)
