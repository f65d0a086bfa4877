"""What `pilotage simulate` shows: how far it is, and what came of it, with small pictures."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final, TextIO

from pilotage.cli.columns import columns
from pilotage.clock import Clock
from pilotage.escaping import visible
from pilotage.lab.results import Result
from pilotage.lab.simulation import Progress

_MOST_REASONS: Final = 5
_INTERVALS: Final = (5.0, 0.2)
"""Seconds between two lines of a log, and between two looks at a terminal."""
_BAR: Final = 24
_TICKS: Final = "▁▂▃▄▅▆▇█"
_WIDTH: Final = 40
_LONGEST_REASON: Final = 60


class SimulationProgress:
    """A bar with pods per second and the time left, rewritten on a terminal; now and then a line in a log."""

    def __init__(self, clock: Clock, stream: TextIO | None = None) -> None:
        """`stream`: by default standard error as it is now."""
        self._clock = clock
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._began = self._last = clock.monotonic()
        self._first: Progress | None = None
        """Where it began: somewhere in the middle, if it goes on with an older one."""

    def show(self, progress: Progress) -> None:
        """Say how far it is, if it is not too soon after the last time."""
        now = self._clock.monotonic()
        first = self._first = self._first or progress
        if now - self._last < _INTERVALS[self._is_terminal]:
            return
        self._last = now
        elapsed = now - self._began
        done = progress.fraction - first.fraction
        left = elapsed * (1 - progress.fraction) / done if done > 0 else 0.0
        filled = round(_BAR * progress.fraction)
        bar = f"{'█' * filled}{'░' * (_BAR - filled)} " if self._is_terminal else ""
        speed = (progress.pods - first.pods) / elapsed
        text = f"{bar}{progress.fraction:.0%}  at {span(progress.seconds)}  {speed:,.0f} pods/s"
        text += f"  {span(left)} left"
        self._stream.write(f"\r\033[2K{text}" if self._is_terminal else f"{text}\n")
        self._stream.flush()

    def finish(self) -> None:
        """Take the bar away."""
        if self._is_terminal:
            self._stream.write("\r\033[2K")
            self._stream.flush()


def sparkline(values: Sequence[float], width: int = _WIDTH) -> str:
    """The course of a series as a row of bars: from 0, or the least value if that is below, to the largest."""
    if not values:
        return ""
    width = min(width, len(values))
    edges = [len(values) * at // width for at in range(width + 1)]
    means = [sum(values[begin:end]) / (end - begin) for begin, end in pairwise(edges)]
    low, high = min(0.0, *means), max(0.0, *means)
    scale = (len(_TICKS) - 1) / (high - low) if high > low else 0.0
    return "".join(_TICKS[round((mean - low) * scale)] for mean in means)


def summary(result: Result) -> str:
    """The totals as a table, with small pictures of the series."""
    totals = result.totals
    pods, waited = totals["pods"], totals["waited"]
    lines = [f"{result.directory}: {span(totals['seconds'])} of {totals['trace']['source'] or 'a trace'}"]
    if not totals["complete"]:
        lines[0] += " (not complete)"
    rows = [
        ["pods", f"{pods['pods']:,}", _listed(pods, "bound", "ended", "running", "waiting")],
        ["attempts", f"{pods['attempts']:,}", _listed(pods, "evicted", "lost", "deleted", "replacements")],
    ]
    if waited:
        rows.append(
            [
                "waited",
                f"{span(waited['mean'])} on average",
                ", ".join(f"{n} {span(waited[n])}" for n in ("p50", "p90", "p99", "max")),
            ]
        )
    if "workloads" in totals:
        rows += _workload_rows(totals["workloads"])
    lines += [columns(["", "", ""], rows), "", _pictures(result), ""]
    if rejected := _rejected(result):
        lines += [columns(["REJECTED: WHY", "ATTEMPTS", "MOST WAIT", "OVER TIME"], rejected), ""]
    lines += [f"ties: {totals['ties']}    seed: {totals['seed']}", *_warnings(totals)]
    for reason, count in list(totals["reasons"].items())[:_MOST_REASONS]:
        lines.append(f"never placed: {count:,} pods: {reason}")
    return "\n".join(lines)


def _workload_rows(workloads: dict[str, Any]) -> list[list[str]]:
    listed = _listed(workloads, "admitted", "finished", "running", "waiting", "failed", "deleted", "evictions")
    rows = [["workloads", f"{workloads['workloads']:,}", listed]]
    if waited := workloads["waited"]:
        quantiles = ", ".join(f"{n} {span(waited[n])}" for n in ("p50", "p90", "p99", "max"))
        rows.append(["queued", f"{span(waited['mean'])} on average", quantiles])
    return rows


def _listed(numbers: dict[str, int], *names: str) -> str:
    return ", ".join(f"{numbers[name]:,} {name}" for name in names if numbers[name])


def _pictures(result: Result) -> str:
    rows = []
    for name, column in result.series.items() if result.totals["mean"] else ():
        if name == "time" or not column.any():
            continue
        form: Callable[[float], str] = _percent if name.startswith(("used_", "stranded_")) else "{:,.6g}".format
        mean, most = result.totals["mean"][name], result.totals["most"][name]
        rows.append([name, form(mean), form(most), sparkline(column.tolist())])
    return columns(["SERIES", "MEAN", "MOST", "OVER TIME"], rows)


def _rejected(result: Result) -> list[list[str]]:
    """Of the most frequent reasons: attempts in vain, the most pods that waited at once, and attempts over time."""
    rejected, times = result.rejections, result.series.get("time", ())
    attempts: Counter[str] = Counter()
    for reason, count in zip(rejected["reason"].tolist(), rejected["attempts"].tolist(), strict=True):
        attempts[reason] += count
    rows = []
    for reason, count in attempts.most_common(_MOST_REASONS):
        chosen = rejected["reason"] == reason
        over_time = dict.fromkeys(list(times), 0.0) | dict(
            zip(rejected["time"][chosen].tolist(), rejected["attempts"][chosen].tolist(), strict=True)
        )
        course = sparkline([over_time[time] for time in sorted(over_time)])
        rows.append([visible(reason)[:_LONGEST_REASON], f"{count:,}", f"{rejected['waiting'][chosen].max():,}", course])
    return rows


def _warnings(totals: dict[str, Any]) -> list[str]:
    found = []
    if totals["gapSeconds"]:
        found.append(f"the trace has gaps of {span(totals['gapSeconds'])} in which nobody watched")
    if totals["ignored"]:
        kinds = ", ".join(f"{kind} ({count:,})" for kind, count in totals["ignored"].items())
        found.append(f"scheduling does not read these objects of the trace: {kinds}")
    if totals["busyInstants"]:
        found.append(f"the scheduler went on without end at {totals['busyInstants']:,} instants: time was moved on")
    return found


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    if seconds < 7200:
        return f"{seconds / 60:.3g} min"
    return f"{seconds / 3600:.3g} h" if seconds < 172_800 else f"{seconds / 86_400:.3g} days"
