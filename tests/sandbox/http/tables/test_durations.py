"""Durations in words, as kubectl writes them."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.http.tables.durations import human_duration, since

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (1.9, "1s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (9 * MINUTE + 59, "9m59s"),
        (10 * MINUTE + 5, "10m"),
        (179 * MINUTE, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 5 * MINUTE, "3h5m"),
        (8 * HOUR + 5 * MINUTE, "8h"),
        (47 * HOUR, "47h"),
        (48 * HOUR, "2d"),
        (2 * DAY + 3 * HOUR, "2d3h"),
        (8 * DAY + 3 * HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + 5 * DAY, "2y5d"),
        (8 * YEAR + 5 * DAY, "8y"),
    ],
)
def test_human_duration(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


@pytest.mark.parametrize("timestamp", [None, 5, "", "yesterday", "x" * 1000, {}])
def test_no_timestamp_is_unknown(timestamp: Any) -> None:
    assert since(timestamp, 0.0) == "<unknown>"


def test_since_counts_from_the_timestamp() -> None:
    assert since("1970-01-01T00:01:00Z", 65.0) == "5s"
    assert since("1970-01-01T00:01:00.500000Z", 65.0) == "4s"
