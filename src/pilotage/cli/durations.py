"""Durations on the command line: `90` (seconds), `1h30m`, `2d`, `1w`."""

from __future__ import annotations

import re
from typing import Any, Final

import click

from pilotage.model.durations import parse_duration

_DAYS: Final = re.compile(r"(?:(\d+)w)?(?:(\d+)d)?(.*)")


class DurationParam(click.ParamType):  # type: ignore[type-arg]
    """Seconds; a number without a unit is one of seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        try:
            return seconds_of(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def seconds_of(text: str) -> float:
    """ValueError if it is no duration, or a negative one."""
    if re.fullmatch(r"\d+(\.\d*)?|\.\d+", text):
        return float(text)
    found = _DAYS.fullmatch(text)
    assert found is not None, "everything matches"
    weeks, days, rest = found.groups()
    if text.startswith("-") or not (weeks or days or rest):
        raise ValueError(f'"{text}" is not a duration (seconds, or a number with a unit, such as 10s, 1h30m, 2d or 1w)')
    return int(weeks or 0) * 604_800.0 + int(days or 0) * 86_400.0 + (parse_duration(rest) if rest else 0.0)


def short_duration(seconds: float) -> str:
    """For people: the two largest units, such as `3d 4h`, `5m 2s`, `0.4s`."""
    if seconds < 60:
        return f"{seconds:.3g}s"
    parts, rest = [], round(seconds)
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])


DURATION: Final = DurationParam()
