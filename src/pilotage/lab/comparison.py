"""Runs side by side: those that differ in their seed alone are a group, and groups are compared with the first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np

from pilotage.lab.prices import Prices
from pilotage.lab.results import Result, ResultError
from pilotage.lab.run_measures import measured
from pilotage.lab.significance import least_p, p_value

_CLEAR: Final = 0.05


class Cell(msgspec.Struct, frozen=True, rename="camel"):
    """A measure of a group of runs."""

    values: list[float]
    mean: float
    deviation: float | None
    """Standard deviation over the runs; None of one run."""
    difference: float | None = None
    """To the first group; None of the first itself, and where one of the two has no such measure."""
    p: float | None = None
    """Of the test; None where it says nothing."""


class Row(msgspec.Struct, frozen=True):
    """A measure, and what each group has; None for a group without it."""

    measure: str
    cells: list[Cell | None]


class Group(msgspec.Struct, frozen=True):
    """Runs of the same inputs."""

    name: str
    results: list[Result]

    @property
    def seeds(self) -> list[int]:
        return [result.totals["seed"] for result in self.results]


class Comparison(msgspec.Struct, frozen=True):
    """Everything that was compared."""

    groups: list[Group]
    rows: list[Row]
    remarks: list[str]
    """What to know before reading the numbers."""

    def row(self, measure: str) -> Row:
        """KeyError if nothing of this name was measured."""
        for row in self.rows:
            if row.measure == measure:
                return row
        raise KeyError(measure)


def grouped(results: Sequence[Result]) -> list[Group]:
    """Results of the same inputs together, in the order in which they are given; ResultError if one is there twice."""
    by_inputs: dict[bytes, list[Result]] = {}
    for result in results:
        totals = result.totals
        inputs = [totals["trace"]["sha256"], totals["ties"], totals.get("inputs")]
        by_inputs.setdefault(msgspec.json.encode(inputs, order="deterministic"), []).append(result)
    for members in by_inputs.values():
        seeds = Counter(member.totals["seed"] for member in members)
        again = [str(seed) for seed, count in seeds.items() if count > 1]
        if again:
            names = ", ".join(str(member.directory) for member in members)
            raise ResultError(f"the same run is given twice (seed {', '.join(again)}): {names}")
    return _named(list(by_inputs.values()))


def _named(members: Sequence[list[Result]]) -> list[Group]:
    groups: list[Group] = []
    taken: Counter[str] = Counter()
    for results in members:
        name = _stem(results[0].directory.name) if len(results) > 1 else results[0].directory.name
        name = name.removesuffix(".result") or "run"
        taken[name] += 1
        groups.append(Group(name if taken[name] == 1 else f"{name} ({taken[name]})", list(results)))
    return groups


def _stem(name: str) -> str:
    """Without the number of the seed at the end."""
    name = name.removesuffix(".result")
    return re.sub(r"[-_.]?(seed)?[-_.]?\d+$", "", name) or name


def compare(groups: Sequence[Group], prices: Prices | None = None) -> Comparison:
    """Measure all runs, and compare each group with the first."""
    tables = [[measured(result, prices) for result in group.results] for group in groups]
    names = dict.fromkeys(name for runs in tables for run in runs for name in run)
    rows = [Row(name, _cells([[run[name] for run in runs if name in run] for runs in tables])) for name in names]
    return Comparison(list(groups), rows, _remarks(groups, rows))


def _cells(values: Sequence[list[float]]) -> list[Cell | None]:
    first = values[0]
    cells: list[Cell | None] = []
    for at, own in enumerate(values):
        if not own:
            cells.append(None)
            continue
        mean = float(np.mean(own))
        deviation = float(np.std(own, ddof=1)) if len(own) > 1 else None
        is_compared = at > 0 and bool(first)
        difference = mean - float(np.mean(first)) if is_compared else None
        cells.append(Cell(own, mean, deviation, difference, p_value(first, own) if is_compared else None))
    return cells


def _remarks(groups: Sequence[Group], rows: Sequence[Row]) -> list[str]:
    found = []
    if len({result.totals["trace"]["sha256"] for group in groups for result in group.results}) > 1:
        found.append("the runs are of different traces: differences are not those of the schedulers alone")
    incomplete = [str(one.directory) for group in groups for one in group.results if not one.totals["complete"]]
    if incomplete:
        found.append(f"not complete: {', '.join(incomplete)}")
    if len(groups) > 1:
        found += _too_few([len(group.results) for group in groups])
    for at, group in enumerate(groups):
        cells = [row.cells[at] for row in rows]
        if len(group.results) > 1 and all(cell is None or cell.deviation == 0 for cell in cells):
            found.append(f"{group.name}: the seed changes nothing (ties: {group.results[0].totals['ties']})")
    unpriced = sum(max(cell.values) for row in rows for cell in row.cells[:1] if cell and _is_unpriced(row))
    if unpriced:
        found.append(f"{unpriced:,.0f} nodes have no price and count as free: the list may give a default")
    return found


def _too_few(counts: Sequence[int]) -> list[str]:
    if min(counts) < 2:
        return ["one run of a group says nothing about chance: give more seeds (and --ties random)"]
    least = max(least_p(counts[0], count) for count in counts[1:])
    return [f"so few runs: p cannot be less than {least:.3f}; with 4 seeds each it can"] if least > _CLEAR else []


def _is_unpriced(row: Row) -> bool:
    return row.measure == "nodes without a price"


def as_document(comparison: Comparison) -> dict[str, Any]:
    """For JSON."""
    groups = [
        {"name": group.name, "results": [str(one.directory) for one in group.results], "seeds": group.seeds}
        for group in comparison.groups
    ]
    measures = {
        row.measure: {
            group.name: None if cell is None else msgspec.to_builtins(cell)
            for group, cell in zip(comparison.groups, row.cells, strict=True)
        }
        for row in comparison.rows
    }
    return {"groups": groups, "measures": measures, "remarks": comparison.remarks}
