"""When something that waits is expected to start: a range, what it rests on, and how good such ranges were before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

STATED: Final = 0.8
"""The part of all starts that is to lie within a stated range."""
_NO_GUARANTEE: Final = "an estimate, not a guarantee"


class PastStarts(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How ranges of the same making fared with starts that are known."""

    starts: int
    """So many were looked at."""
    within: float
    """The part of them that lay within the range."""
    error_seconds: float | None = None
    """By how much the middle of the range was off, in the median; None if that is not known of half of them."""


class ExpectedStart(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Seconds from now. What waits was played forward on copies of the present."""

    soonest: float | None
    """A tenth of all starts is to be earlier; None if it did not start in any but a few copies."""
    latest: float | None
    """A tenth of all starts is to be later; None if it did not start in some copies."""
    copies: int
    started: int
    """In so many of them it started."""
    horizon: float
    """So far they were played."""
    from_history: int = 0
    """Of so many that run, the time that is left is drawn from what ended before."""
    from_deadline: int = 0
    """So many are taken to run until their deadline."""
    without_end: int = 0
    """Of so many no end is known: they are taken to stay."""
    past: PastStarts | None = None


def range_text(start: ExpectedStart | None) -> str:
    """As a cell of a table."""
    if start is None:
        return "-"
    if start.soonest is None:
        return f"not within {span_text(start.horizon)}"
    if start.latest is None:
        return f"{span_text(start.soonest)} or later"
    soonest, latest = span_text(start.soonest), span_text(start.latest)
    return soonest if soonest == latest else f"{soonest} to {latest}"


def start_lines(start: ExpectedStart) -> Iterator[str]:
    """What there is to say, the range first."""
    if start.soonest is None:
        yield f"not within {span_text(start.horizon)}: it started in {start.started} of {start.copies} copies"
    else:
        yield f"in {range_text(start)} ({_NO_GUARANTEE}; {start.started} of {start.copies} copies started it)"
    yield _sources_text(start)
    yield _trust(start.past)


def trust_text(start: ExpectedStart) -> str:
    """A line for below a table of ranges."""
    return f"Starts are estimates, not guarantees: {STATED:.0%} are to lie within their range. {_trust(start.past)}."


def _trust(past: PastStarts | None) -> str:
    if past is None:
        return "It was not checked how good this is: too few past starts are known"
    error = (
        "" if past.error_seconds is None else f", and its middle was off by {span_text(past.error_seconds)} (median)"
    )
    return f"Of {past.starts} past starts {past.within:.0%} were within their range{error}"


def _sources_text(start: ExpectedStart) -> str:
    parts = [
        f"{count} {text}"
        for count, text in (
            (start.from_history, "end as those before them did"),
            (start.from_deadline, "run until their deadline"),
            (start.without_end, "stay, because nothing is known of their end"),
        )
        if count
    ]
    return f"of those that run, {', '.join(parts)}" if parts else "nothing that runs is in its way"


def span_text(seconds: float) -> str:
    """The two largest units, such as 3d 4h; below a minute whole seconds."""
    rest = round(seconds)
    if rest < 60:
        return f"{rest}s"
    if rest >= 600:
        rest = round(rest / 60) * 60
    parts = []
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])
