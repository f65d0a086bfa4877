"""Durations as Kubernetes writes and reads them: `5m0s`, `1.5s`, `100ms`."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated

from msgspec import Struct


class DurationText(Struct, frozen=True):
    """Marks a number of seconds that is written as a duration in files."""


Duration = Annotated[float, DurationText()]
"""Seconds in memory, `1m30s` in configuration files."""

_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_UNITS |= {"m": 60 * _UNITS["s"], "h": 3600 * _UNITS["s"]}
_LONGEST = 2**63 - 1
"""Nanoseconds, as in Kubernetes."""
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")


def go_duration(seconds: float) -> str:
    """The canonical text of a duration."""
    nanos = round(seconds * 1e9)
    if nanos == 0:
        return "0s"
    sign, nanos = ("-", -nanos) if nanos < 0 else ("", nanos)
    if nanos < _UNITS["s"]:
        unit = next(unit for unit in ("ms", "us", "ns") if nanos >= _UNITS[unit])
        return f"{sign}{_decimal(nanos, _UNITS[unit])}{'µs' if unit == 'us' else unit}"
    minutes, rest = divmod(nanos, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, _UNITS['s'])}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def parse_duration(text: str) -> float:
    """Seconds of a duration such as `1h30m` or `2s`; ValueError if it is none."""
    body = text.lstrip("+-")
    if body == "0":
        return 0.0
    nanos, at = Fraction(0), 0
    while at < len(body):
        found = _PART.match(body, at)
        if found is None:
            break
        nanos += Fraction(found[1]) * _UNITS[found[2]]
        at = found.end()
    if not body or at != len(body) or len(text) - len(body) > 1:
        raise ValueError(f'"{text}" is not a duration (a number with a unit, such as 300ms, 10s or 1h30m)')
    if nanos > _LONGEST:
        raise ValueError(f'"{text[:40]}" is longer than a duration can be (about 292 years)')
    seconds = float(nanos / _UNITS["s"])
    return -seconds if text.startswith("-") else seconds


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    digits = str(unit)[1:]
    fraction = str(rest).zfill(len(digits)).rstrip("0") if rest else ""
    return f"{whole}.{fraction}" if fraction else str(whole)
