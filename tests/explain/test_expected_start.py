"""How expected starts are put into words."""

from __future__ import annotations

import pytest

from pilotage.explain.expected_start import ExpectedStart, PastStarts, range_text, span_text, start_lines, trust_text
from pilotage.explain.group_text import render_group
from pilotage.explain.report import GroupReport

RANGE = ExpectedStart(250.0, 1860.0, copies=20, started=20, horizon=86_400.0, from_history=4, without_end=1)


@pytest.mark.parametrize(
    ("soonest", "latest", "text"),
    [
        (250.0, 1860.0, "4m 10s to 31m"),
        (0.0, 0.4, "0s"),
        (90.0, None, "1m 30s or later"),
        (None, None, "not within 1d"),
    ],
)
def test_a_range_in_a_cell(soonest: float | None, latest: float | None, text: str) -> None:
    assert range_text(ExpectedStart(soonest, latest, copies=20, started=10, horizon=86_400.0)) == text


def test_nothing_to_say_is_a_dash() -> None:
    assert range_text(None) == "-"


def test_what_it_rests_on_and_that_it_is_no_guarantee() -> None:
    first, second, third = start_lines(RANGE)
    assert "4m 10s to 31m" in first and "not a guarantee" in first
    assert "4 end as those before them did" in second and "1 stay" in second
    assert "not checked" in third


def test_how_good_it_was_is_said_with_its_error() -> None:
    past = PastStarts(20, 0.8, 502.0)
    known = ExpectedStart(1.0, 2.0, copies=5, started=5, horizon=60.0, past=past)
    assert "Of 20 past starts 80% were within their range, and its middle was off by 8m 22s (median)" in trust_text(
        known
    )


def test_a_group_that_waits_says_when() -> None:
    report = GroupReport("ns/g", "Unschedulable", "", fits=False, exist=2, run=0, wait=2, expected_start=RANGE)
    assert "Expected to start:\n  in 4m 10s to 31m" in render_group(report)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0s"), (59.4, "59s"), (61, "1m 1s"), (3_629, "1h"), (7_261, "2h 1m"), (90_000, "1d 1h")]
)
def test_spans(seconds: float, text: str) -> None:
    assert span_text(seconds) == text
