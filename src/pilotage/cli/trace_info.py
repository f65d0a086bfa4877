"""The text of `pilotage trace info`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pilotage.cli.columns import columns
from pilotage.cli.durations import short_duration
from pilotage.escaping import visible
from pilotage.lab.trace.summary import PodSummary, TraceSummary, sparkline

_BARS: Final = 72
_MOST_GAPS: Final = 10


def info_text(path: Path, summary: TraceSummary) -> str:
    """What a trace is in the first line, then its tables."""
    return "\n\n".join(_parts(path, summary))


def _parts(path: Path, summary: TraceSummary) -> Iterator[str]:
    source = f" of {summary.source}" if summary.source else ""
    pods = summary.pods
    head = f"{path}: {short_duration(summary.seconds)} from {summary.start}{source}"
    yield visible(f"{head}, {summary.records:,} records, {pods.came:,} pods, {len(summary.gaps):,} gaps")
    if not summary.is_finished:
        yield "This recording was not finished; lifetimes were worked out while it was read."
    rows = [
        (one.kind, f"{one.at_start:,}", f"{one.came:,}", f"{one.changed:,}", f"{one.went:,}") for one in summary.kinds
    ]
    yield columns(("KIND", "AT START", "CAME", "CHANGED", "WENT"), rows)
    if pods.came:
        yield from _pods(pods)
    if summary.gaps:
        yield _gaps(summary)


def _pods(pods: PodSummary) -> Iterator[str]:
    facts = [
        f"{pods.with_lifetime:,} with a lifetime",
        f"{pods.until_deleted:,} until they are deleted",
        f"{pods.running_at_start:,} on a node at the start",
        f"{pods.in_groups:,} in groups",
    ]
    lines = [f"pods: {', '.join(facts)}"]
    for what, quantiles in (("run", pods.lifetimes), ("waited when they were observed", pods.waits)):
        if quantiles:
            shown = ", ".join(f"{name} {short_duration(seconds)}" for name, seconds in quantiles.items())
            lines.append(f"they {what}: {shown}")
    if pods.arrivals_per_hour:
        hours = pods.arrivals_per_hour
        lines.append(f"arrivals per hour: {sum(hours) / len(hours):,.1f} on average, {max(hours):,} at most")
        lines.append(f"|{sparkline(hours, _BARS)}|")
    yield "\n".join(lines)
    yield _table("OWNER", pods.by_owner, pods.came)
    yield _table("SHAPE", pods.by_shape, pods.came)
    yield _table("NAMESPACE", pods.by_namespace, pods.came)


def _table(heading: str, counts: Sequence[tuple[str, int]], total: int) -> str:
    rows = [(name, f"{count:,}", f"{count / total:.1%}") for name, count in counts]
    return columns((heading, "PODS", "SHARE"), rows)


def _gaps(summary: TraceSummary) -> str:
    rows = [(short_duration(gap.at), short_duration(gap.seconds), gap.reason) for gap in summary.gaps[:_MOST_GAPS]]
    text = columns(("UNTIL", "GAP", "REASON"), rows)
    more = len(summary.gaps) - _MOST_GAPS
    return f"{text}\nand {more:,} more; {short_duration(summary.gap_seconds)} in all" if more > 0 else text
