"""Ranges for starts: from what happened on the copies, put right by how such ranges fared before.

The copies alone are too sure of themselves, or not sure enough. Of each past start it is known by which factor its
range would have had to be wider to hold it (or could have been narrower): the factor that would have been enough for
four of five is taken from now on (split conformal prediction). Starts that come as those before them did are then
within the range as often as it is stated, whatever is wrong with the copies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

import msgspec

from pilotage.explain.expected_start import STATED, PastStarts

_FLOOR: Final = 10.0
"""Seconds that are added before times are compared by their ratio: so long a pod may be in backoff."""
_LEAST: Final = 10
"""Past starts without which nothing is put right."""
_ROUNDING: Final = 1e-9
NEVER: Final = math.inf


class StartRange(msgspec.Struct, frozen=True):
    """Seconds; infinite for what did not start."""

    soonest: float
    middle: float
    latest: float

    def holds(self, actual: float) -> bool:
        return self.soonest <= actual <= self.latest

    def widened(self, factor: float) -> StartRange:
        """By a factor in both directions, narrower if it is below 1; the middle stays within."""
        soonest = min(self.middle, _divided(self.soonest, factor))
        return StartRange(soonest, self.middle, max(self.middle, _divided(self.latest, 1 / factor)))


def range_of(starts: Sequence[float]) -> StartRange:
    """Of what happened on the copies: there is at least one."""
    ordered, tail = sorted(starts), (1 - STATED) / 2
    last = len(ordered) - 1
    least = int(tail * last + _ROUNDING)
    return StartRange(ordered[least], ordered[last // 2], ordered[last - least])


class PastStart(msgspec.Struct, frozen=True):
    """What was stated of one whose start is known."""

    stated: StartRange
    actual: float
    """Seconds from when it was stated; infinite: it had not started after `followed` seconds."""
    followed: float = NEVER

    @property
    def is_judged(self) -> bool:
        """Can it be said whether it was within the range? Who has not started yet may still.

        Where too little was known for it to start on the copies, there was no range.
        """
        return self.stated.soonest < NEVER and (self.actual < NEVER or self.stated.latest < self.followed)

    @property
    def error(self) -> float:
        """By how much the middle was off."""
        off = abs(self.actual - self.stated.middle) if min(self.actual, self.stated.middle) < NEVER else 0.0
        return off if off < NEVER else NEVER

    def needed(self) -> float:
        """The factor by which the range would have had to be wider; below 1 if it could have been narrower."""
        if self.actual == NEVER:
            return NEVER
        early = _ratio(self.stated.soonest, self.actual)
        late = _ratio(self.actual, self.stated.latest)
        return max(early, late)


class Calibration(msgspec.Struct, frozen=True):
    """By which factor ranges are made wider."""

    factor: float = 1.0
    starts: int = 0

    @classmethod
    def of(cls, past: Iterable[PastStart]) -> Calibration:
        needed = sorted(one.needed() for one in past if one.is_judged)
        if len(needed) < _LEAST:
            return cls()
        rank = min(len(needed), math.ceil(STATED * (len(needed) + 1)))
        factor = needed[rank - 1]
        return cls(min(max(factor, 0.1), 1000.0), len(needed))


def fared(past: Sequence[PastStart], factor: float) -> PastStarts | None:
    """How these ranges, made wider by a factor, fared; None if none of them can be judged."""
    judged = [one for one in past if one.is_judged]
    return _summed(judged, [one.stated.widened(factor).holds(one.actual) for one in judged])


def fared_apart(past: Sequence[PastStart]) -> PastStarts | None:
    """The same, each range made wider by what the others needed, so that none is judged by itself."""
    judged = [one for one in past if one.is_judged]
    if len(judged) <= _LEAST:
        return None
    held = []
    for number, one in enumerate(judged):
        factor = Calibration.of([*judged[:number], *judged[number + 1 :]]).factor
        held.append(one.stated.widened(factor).holds(one.actual))
    return _summed(judged, held)


def _summed(judged: Sequence[PastStart], held: Sequence[bool]) -> PastStarts | None:
    if not judged:
        return None
    error = median(one.error for one in judged)
    return PastStarts(len(judged), sum(held) / len(judged), error if error < NEVER else None)


def _divided(value: float, factor: float) -> float:
    return max(0.0, (value + _FLOOR) / factor - _FLOOR) if value < NEVER else NEVER


def _ratio(more: float, less: float) -> float:
    if less == NEVER:
        return 0.0
    return (more + _FLOOR) / (less + _FLOOR) if more < NEVER else NEVER
