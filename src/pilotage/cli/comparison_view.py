"""What `pilotage compare` shows: a table of differences, small pictures, and pods that fared otherwise."""

from __future__ import annotations

import csv
import io
from typing import Any

from pilotage.cli.columns import columns
from pilotage.cli.simulation_view import sparkline
from pilotage.escaping import visible
from pilotage.lab.comparison import Comparison
from pilotage.lab.divergence import Divergence, PodInRun
from pilotage.lab.report import shown_difference, shown_p, shown_value
from pilotage.lab.significance import TEST
from pilotage.pictures import duration

_PICTURES = ("used_cpu", "used_memory", "stranded_cpu", "waiting")


def table(comparison: Comparison) -> str:
    """Measures, differences to the first group, and how they went over time."""
    headings = ["MEASURE"]
    for at, group in enumerate(comparison.groups):
        headings += [f"{visible(group.name)} (n={len(group.results)})", *(["DIFFERENCE", "P"] if at else [])]
    rows = []
    for row in comparison.rows:
        cells = [row.measure]
        for at, cell in enumerate(row.cells):
            cells.append(shown_value(row.measure, cell))
            if at:
                cells += [shown_difference(row.measure, cell), shown_p(cell)]
        rows.append(cells)
    lines = [columns(headings, rows), "", _pictures(comparison), ""]
    if len(comparison.groups) > 1:
        lines.append(f"p: {TEST}")
    return "\n".join([*lines, *map(visible, comparison.remarks)])


def _pictures(comparison: Comparison) -> str:
    series = [(group.name, group.results[0].series) for group in comparison.groups]
    rows = [
        [name, group, sparkline(columns_of[name].tolist())]
        for name in _PICTURES
        for group, columns_of in series
        if name in columns_of and columns_of[name].any()
    ]
    return columns(["SERIES", "RUN", "OVER TIME"], rows)


def difference_text(name: str, found: Divergence) -> str:
    """Two runs, pod by pod."""
    lines = ["", f"Pod by pod: {visible(name)}"]
    lines.append(columns(["WHAT DIFFERS", "PODS"], [[kind, f"{count:,}"] for kind, count in found.counts.items()]))
    if found.first is None:
        return "\n".join([*lines, "every pod fared the same"])
    lines += ["", f"the runs part at {duration(found.first.at)}, with {visible(found.first.pod)}", ""]
    rows = [
        [
            pod.pod,
            duration(pod.arrived),
            pod.kind,
            _place(pod.first),
            _place(pod.second),
            pod.second.reason or pod.first.reason or "",
        ]
        for pod in found.pods
    ]
    lines.append(columns(["POD", "CAME AT", "WHAT DIFFERS", "FIRST RUN", "SECOND RUN", "WHY IT WAITED"], rows))
    if found.left_out:
        lines.append(f"and {found.left_out:,} more (--most shows more)")
    for reason, count in found.reasons.items():
        lines.append(f"waited in the second run: {count:,} pods: {visible(reason)}")
    return "\n".join(lines)


def _place(placed: PodInRun) -> str:
    if placed.bound is None:
        return "never" if placed.attempts else "-"
    return f"{placed.node} at {duration(placed.bound)}"


def csv_text(comparison: Comparison) -> str:
    """A row per measure and group."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["measure", "group", "n", "mean", "deviation", "difference", "p"])
    for row in comparison.rows:
        for group, cell in zip(comparison.groups, row.cells, strict=True):
            if cell is not None:
                numbers: list[Any] = [len(cell.values), cell.mean, cell.deviation, cell.difference, cell.p]
                writer.writerow([row.measure, _plain(group.name), *("" if n is None else n for n in numbers)])
    return file.getvalue()


def _plain(name: str) -> str:
    """Nothing that a spreadsheet takes for a formula."""
    return f"'{name}" if name[:1] in "=+-@" else name
