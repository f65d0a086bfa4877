"""Pictures and the numbers in them."""

from __future__ import annotations

import pytest

from pilotage.console import pictures
from pilotage.pictures import amount, duration


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (1234.0, "1,234"), (0.25, "0.25"), (12.34, "12.3"), (123.4, "123")]
)
def test_amounts_read_well(value: float, text: str) -> None:
    assert amount(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "-"), (0.0, "0 s"), (5.0, "5 s"), (180.0, "3 min"), (9000.0, "2.5 h"), (2e-5, "20 us")]
)
def test_durations_read_well(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_quantile_of_what_was_counted_in_between() -> None:
    before = ((1.0, 10), (2.0, 10), (float("inf"), 10))
    now = ((1.0, 10), (2.0, 20), (float("inf"), 20))
    assert pictures.quantile(before, now, 0.5) == 1.5
    assert pictures.quantile(now, now, 0.5) is None and pictures.quantile((), (), 0.5) is None
    beyond = ((1.0, 0), (float("inf"), 4))
    assert pictures.quantile((), beyond, 0.99) == 1.0


def test_rates_are_growth_per_second() -> None:
    assert pictures.rates([0.0, 5.0, 10.0], [0.0, 10.0, 10.0]) == [2.0, 2.0, 0.0]


def test_names_in_pictures_are_escaped() -> None:
    drawn = pictures.bar("<x>", 1.0, [("<b>", "used", 1.0)])
    assert "<b>" not in drawn and "&lt;b&gt;" in drawn and "&lt;x&gt;" in drawn


def test_bar_marks_the_whole_when_more_is_used() -> None:
    assert "limit" in pictures.bar("cpu", 10.0, [("used", "used", 15.0)])
    assert "limit" not in pictures.bar("cpu", 10.0, [("used", "used", 5.0)])
