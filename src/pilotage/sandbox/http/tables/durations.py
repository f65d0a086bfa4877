"""Times as people read them in a table: `45s`, `3m12s`, `5h`, `2d4h`, `1y20d`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from pilotage.clock import parse_rfc3339

UNKNOWN: Final = "<unknown>"


def human_duration(seconds: float) -> str:
    """Two units at most, the second only while it matters, as kubectl writes durations."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def seconds_of(timestamp: Any) -> float | None:
    """Epoch seconds of an RFC 3339 timestamp, None for anything else."""
    return _parsed(timestamp) if isinstance(timestamp, str) and len(timestamp) < 64 else None


def since(timestamp: Any, now: float) -> str:
    """How long ago, `<unknown>` when there is no such time."""
    then = seconds_of(timestamp)
    return UNKNOWN if then is None else human_duration(now - then)


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


# Objects created together share their timestamps.
@lru_cache(1 << 14)
def _parsed(timestamp: str) -> float | None:
    try:
        return parse_rfc3339(timestamp)
    except ValueError:
        return None
