from __future__ import annotations

import click
import pytest

from pilotage.cli.durations import DURATION, seconds_of, short_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("0.5", 0.5), ("1h30m", 5400), ("2d", 172_800), ("1w1d12h", 734_400), ("0", 0), ("100ms", 0.1)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5s", "5 s", "1.5d", "d", "1h-30m"])
def test_what_is_no_duration_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        seconds_of(text)
    with pytest.raises(click.BadParameter):
        DURATION.convert(text, None, None)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (0.25, "0.25s"), (61, "1m 1s"), (3600, "1h"), (90_061, "1d 1h"), (59.6, "59.6s")]
)
def test_durations_for_people(seconds: float, text: str) -> None:
    assert short_duration(seconds) == text
