"""Pictures and the numbers in them."""

from __future__ import annotations

import re

import pytest

from pilotage.console import pictures
from pilotage.pictures import amount, duration


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (1234.0, "1,234"), (0.25, "0.25"), (12.34, "12.3"), (123.4, "123")]
)
def test_amounts_read_well(value: float, text: str) -> None:
    assert amount(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.0, "0 s"),
        (5.0, "5 s"),
        (180.0, "3 min"),
        (9000.0, "2.5 h"),
        (0.0643, "64.3 ms"),
        (2e-5, "20 us"),
    ],
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


def test_scale_ends_where_people_count_to_and_says_what_half_of_it_is() -> None:
    drawn = pictures.lines("Waiting", [0.0, 3600.0], {"gated": [1.0, 45.7]})
    assert re.findall(r'class="tick end"[^>]*>([^<]*)<', drawn) == ["0", "30", "60", "now"]
    assert re.findall(r">([^<]* ago)<", drawn) == ["60 min ago", "40 min ago", "20 min ago"]
    slow = pictures.lines("Time", [0.0, 5.0], {"p99": [150.0, 150.0]}, duration)
    assert re.findall(r'class="tick end"[^>]*>([^<]*)<', slow)[1:3] == ["2 min", "4 min"]


def test_level_lines_are_two_points_and_lone_values_are_dots() -> None:
    drawn = pictures.lines("Waiting", [0.0, 1.0, 2.0, 3.0], {"level": [2.0] * 4, "lone": [None, 1.0, None, None]})
    level, lone = re.findall(r'class="line s\d( dot|)" data-name="\w+" points="([^"]*)"', drawn)
    assert level[0] == "" and level[1].count(",") == 2
    assert lone[0] == " dot" and len({*lone[1].split()}) == 1
