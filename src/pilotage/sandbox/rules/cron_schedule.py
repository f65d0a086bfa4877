"""Cron schedules: `*/5 9-17 * * mon-fri`, `@daily`, `TZ=Europe/Berlin 0 3 * * *`.

The five fields are minute, hour, day of month, month and day of week (0 is Sunday); each is a list of numbers, ranges
and steps, `*` or `?` for all. If both days are restricted, one of them suffices. Also `@every 90s`, from a start on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from pilotage.model.durations import parse_duration

MOST_YEARS: Final = 5
"""A schedule that names no day within so many years never comes: 30 February."""
_MACROS: Final[Mapping[str, str]] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS: Final = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS: Final = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_FIELDS: Final = (("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12), ("day of week", 0, 6))
_PART: Final = re.compile(r"(\*|\?|\w+)(?:-(\w+))?(?:/(\d+))?")


class ScheduleError(ValueError):
    """A schedule that cannot be read; says which field and what would be right."""


class CronSchedule(NamedTuple):
    """When something is due."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day_suffices: bool
    zone: tzinfo | None = None
    every_seconds: float | None = None

    def next_after(self, epoch_seconds: float) -> float | None:
        """The first time after this one; None if there is none within a few years."""
        if self.every_seconds is not None:
            return float(int(epoch_seconds)) + self.every_seconds
        zone = self.zone or ZoneInfo("UTC")
        at = datetime.fromtimestamp(int(epoch_seconds), zone).replace(second=0, tzinfo=None) + timedelta(minutes=1)
        last = at.year + MOST_YEARS
        while at.year <= last:
            if at.month not in self.months:
                at = (at.replace(day=1, hour=0, minute=0) + timedelta(days=32)).replace(day=1)
            elif not self._has_day(at):
                at = at.replace(hour=0, minute=0) + timedelta(days=1)
            elif at.hour not in self.hours:
                at = at.replace(minute=0) + timedelta(hours=1)
            elif at.minute not in self.minutes or (found := at.replace(tzinfo=zone).timestamp()) <= epoch_seconds:
                at += timedelta(minutes=1)
            else:
                return found
        return None

    def _has_day(self, at: datetime) -> bool:
        day, weekday = at.day in self.days, at.isoweekday() % 7 in self.weekdays
        return day or weekday if self.any_day_suffices else day and weekday


@lru_cache(maxsize=1024)
def parse_schedule(text: str, time_zone: str | None = None) -> CronSchedule:
    """The schedule that the text describes; ScheduleError if it describes none."""
    words = text.split()
    if words and words[0].startswith(("TZ=", "CRON_TZ=")):
        time_zone = words.pop(0).partition("=")[2]
    zone = _zone(time_zone) if time_zone else None
    if len(words) == 2 and words[0] == "@every":
        return _every(words[1])
    fields = _MACROS.get(words[0], "").split() if len(words) == 1 else words
    if len(fields) != len(_FIELDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(words)}: [{text}]")
    minutes, hours, days, months, weekdays = (
        _numbers(field, *bounds) for field, bounds in zip(fields, _FIELDS, strict=True)
    )
    any_day_suffices = not fields[2].startswith(("*", "?")) and not fields[4].startswith(("*", "?"))
    return CronSchedule(minutes, hours, days, months, weekdays, any_day_suffices, zone)


def _every(text: str) -> CronSchedule:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise ScheduleError(f"failed to parse duration @every {text}: {error}") from None
    none: frozenset[int] = frozenset()
    return CronSchedule(none, none, none, none, none, any_day_suffices=False, every_seconds=max(seconds, 1.0))


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise ScheduleError(f"unknown time zone {name}") from None


def _numbers(field: str, title: str, low: int, high: int) -> frozenset[int]:
    found: set[int] = set()
    for part in field.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ScheduleError(f"{title}: failed to parse {part}")
        first, last, step = match.groups()
        start = low if first in ("*", "?") else _number(first, title)
        end = high if first in ("*", "?") or (step and not last) else start
        end = _number(last, title) if last else end
        if start < low or end > high or start > end or step == "0":
            raise ScheduleError(f"{title}: {part} is not within {low} to {high}")
        found.update(range(start, end + 1, int(step or 1)))
    return frozenset(found)


def _number(text: str, title: str) -> int:
    names = _MONTHS if title == "month" else _DAYS if title == "day of week" else []
    if text.lower() in names:
        return names.index(text.lower()) + (title == "month")
    if not text.isascii() or not text.isdigit() or len(text) > 4:
        raise ScheduleError(f"{title}: {text} is no number")
    return int(text)
