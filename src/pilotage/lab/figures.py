"""The pictures of one run, each with the numbers behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from pilotage.lab.results import Result
from pilotage.lab.run_measures import classes, waits
from pilotage.pictures import Span, amount, duration, heat_map, lanes, lines, percent

_POINTS: Final = 240
_TABLE: Final = 48
"""Rows of a table of numbers over time."""
_MOST_LINES: Final = 6
_MOST_NODES: Final = 60
_MOST_LANES: Final = 40
_CELLS: Final = 80

Numbers = NDArray[np.float64]


class Figure(NamedTuple):
    """A picture and its numbers."""

    title: str
    hint: str
    picture: Markup
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def figures(result: Result) -> dict[str, Figure]:
    """All that there is something to show of, by name."""
    made: dict[str, Callable[[Result], Figure | None]] = {
        "utilisation": _utilisation,
        "fragmentation": _fragmentation,
        "queues": _queues,
        "waiting": _waiting,
        "reasons": _reasons,
        "rejections": _rejections,
        "nodes": _nodes,
        "jobs": _jobs,
    }
    found = {name: make(result) for name, make in made.items()}
    return {name: figure for name, figure in found.items() if figure is not None}


# --- over time --------------------------------------------------------------------------------------------------------


def _utilisation(result: Result) -> Figure | None:
    hint = "What pods request, as a part of what the nodes offer."
    return _over_time(result, "Utilisation", hint, "used_", percent)


def _fragmentation(result: Result) -> Figure | None:
    hint = "What is free where the usual pods do not fit, as a part of what the nodes offer."
    return _over_time(result, "Fragmentation: stranded capacity", hint, "stranded_", percent)


def _queues(result: Result) -> Figure | None:
    names: Sequence[str] = ("running", "waiting", "gated")
    chosen = {name: result.series[name] for name in names if name in result.series}
    return _drawn(result, "Pods", "How many run, wait, and wait at a gate.", chosen, amount)


def _over_time(result: Result, title: str, hint: str, prefix: str, form: Callable[[float], str]) -> Figure | None:
    chosen = {n.removeprefix(prefix): column for n, column in result.series.items() if n.startswith(prefix)}
    largest = sorted(chosen, key=lambda name: -float(chosen[name].max(initial=0.0)))[:_MOST_LINES]
    return _drawn(result, title, hint, {name: chosen[name] for name in chosen if name in largest}, form)


def _drawn(
    result: Result, title: str, hint: str, chosen: Mapping[str, Numbers], form: Callable[[float], str]
) -> Figure | None:
    times = result.series["time"]
    if len(times) < 2 or not any(column.any() for column in chosen.values()):
        return None
    series = {name: _means(column, _POINTS).tolist() for name, column in chosen.items()}
    picture = lines(title, _means(times, _POINTS).tolist(), series, ends=_ends(result), form=form)
    rows = [
        [duration(time), *map(form, values)]
        for time, *values in zip(
            _means(times, _TABLE).tolist(), *(_means(column, _TABLE).tolist() for column in chosen.values()),
            strict=True,
        )
    ]  # fmt: skip
    return Figure(title, hint, picture, ["time", *chosen], rows)


def _means(column: Numbers, most: int) -> Numbers:
    """At most so many values: the means of equal parts."""
    if len(column) <= most:
        return column
    return np.array([part.mean() for part in np.array_split(column, most)])


def _ends(result: Result) -> tuple[str, str]:
    return "0 s", duration(result.totals["seconds"])


# --- waiting ----------------------------------------------------------------------------------------------------------


def _waiting(result: Result) -> Figure | None:
    tried, waited = waits(result)
    if not tried.any():
        return None
    groups = {"all pods": tried, **{title.strip(): members for title, members in classes(result, tried)}}
    longest = float(waited[tried].max()) or 1.0
    xs = np.linspace(0, np.log1p(longest), 160)
    at = np.expm1(xs)
    at[-1] = longest
    series: dict[str, list[float]] = {}
    notes, rows = {}, []
    for name, members in groups.items():
        ordered = np.sort(waited[members])
        p50, p90, p99 = np.percentile(ordered, (50, 90, 99), method="inverted_cdf").tolist()
        rows.append([name, f"{len(ordered):,}", *map(duration, (p50, p90, p99, float(ordered[-1])))])
        if len(series) < _MOST_LINES:
            series[name] = (np.searchsorted(ordered, at, side="right") / len(ordered)).tolist()
            notes[name] = f"p50 {duration(p50)}, p90 {duration(p90)}, p99 {duration(p99)}"
    title = "Waiting times"
    picture = lines(title, xs.tolist(), series, ends=("0 s", duration(longest)), form=percent, notes=notes)
    hint = "Which part of the pods had a node after so long (the axis is logarithmic). Who never got one counts too."
    return Figure(title, hint, picture, ["pods", "number", "p50", "p90", "p99", "longest"], rows)


def _reasons(result: Result) -> Figure | None:
    """How many pods waited at each time, by what their last attempt by then had said."""
    rejected = result.rejections
    times = result.series["time"]
    waiting: dict[str, Numbers] = {}
    for name in _frequent(rejected):
        rows = rejected["reason"] == name
        at = np.searchsorted(rejected["time"][rows], times, side="right")
        waiting[name] = np.concatenate([[0.0], rejected["waiting"][rows]])[at]
    hint = "Pods that wait, by what their last attempt until then had said."
    return _drawn(result, "Why pods waited", hint, waiting, amount)


def _rejections(result: Result) -> Figure | None:
    """How many attempts were in vain, by reason."""
    rejected = result.rejections
    times = result.series["time"]
    attempts: dict[str, Numbers] = {}
    for name in _frequent(rejected):
        rows = rejected["reason"] == name
        at = np.searchsorted(times, rejected["time"][rows])
        attempts[name] = np.bincount(at, rejected["attempts"][rows], len(times)).astype(np.float64)
    step = duration(float(times[1] - times[0])) if len(times) > 1 else ""
    hint = f"Attempts in vain, by what each said, in steps of {step}."
    return _drawn(result, "What was rejected", hint, attempts, amount)


def _frequent(rejected: Mapping[str, NDArray[Any]]) -> list[str]:
    """The reasons for which most attempts were in vain."""
    names, inverse = np.unique(rejected["reason"], return_inverse=True)
    counts = np.bincount(inverse, rejected["attempts"], len(names))
    found: list[str] = names[np.argsort(-counts, kind="stable")[:_MOST_LINES]].tolist()
    return found


# --- nodes and jobs ---------------------------------------------------------------------------------------------------


def _nodes(result: Result) -> Figure | None:
    names = [node.node for node in result.nodes]
    if not names or not result.totals["seconds"]:
        return None
    resource = _scarcest(result)
    table = _fullness(result, resource)
    order = list(dict.fromkeys(names))
    bands = [band.tolist() for band in np.array_split(np.arange(len(order)), min(len(order), _MOST_NODES))]
    rows = [
        (order[band[0]] if len(band) == 1 else f"{order[band[0]]} and {len(band) - 1} more", table[band].mean(axis=0))
        for band in bands
    ]
    title = f"Nodes by {resource}"
    hint = "Each row is a node, or the mean of some in the order of names; the darker, the more of it is requested."
    picture = heat_map(title, [(name, row.tolist()) for name, row in rows], ends=_ends(result))
    numbers = [[name, percent(float(row.mean())), percent(float(row.max()))] for name, row in rows]
    return Figure(title, hint, picture, ["node", "mean", "most"], numbers)


def _scarcest(result: Result) -> str:
    """The resource that is used most; pods, if nothing else is."""
    used = {n.removeprefix("used_"): v for n, v in result.totals["mean"].items() if n.startswith("used_")}
    best = max(used, key=lambda name: used[name], default="pods")
    return best if used.get(best) and f"requests_{best}" in result.pods else "pods"


def _fullness(result: Result, resource: str) -> Numbers:
    """How full each node was in each part of the time: a row per name, between 0 and 1."""
    pods, end = result.pods, result.totals["seconds"]
    rows = {name: row for row, name in enumerate(dict.fromkeys(node.node for node in result.nodes))}
    offered = np.zeros(len(rows))
    for node in result.nodes:
        offered[rows[node.node]] = max(offered[rows[node.node]], node.allocatable.get(resource, 0))
    ran = np.flatnonzero(~np.isnan(pods["bound"]) & np.isin(pods["node"], list(rows)))
    at = np.array([rows[name] for name in pods["node"][ran].tolist()], dtype=np.int64)
    amounts = np.ones(len(ran)) if resource == "pods" else pods[f"requests_{resource}"][ran]
    begins = pods["bound"][ran] / end * _CELLS
    ends = np.where(np.isnan(pods["ended"][ran]), end, pods["ended"][ran]) / end * _CELLS
    table = np.zeros((len(rows), _CELLS))
    for cell in range(_CELLS):
        share = np.clip(np.minimum(ends, cell + 1) - np.maximum(begins, cell), 0, 1)
        table[:, cell] = np.bincount(at, weights=share * amounts, minlength=len(rows))
    return np.minimum(table / np.maximum(offered, 1e-9)[:, None], 1.0) * (offered > 0)[:, None]


def _jobs(result: Result) -> Figure | None:
    """Gangs and Jobs: the largest ones, in the order in which they came."""
    pods, end = result.pods, result.totals["seconds"]
    namespaces = [name.partition("/")[0] for name in pods["pod"].tolist()]
    labels = np.array([
        f"{namespace}/{group} (gang)" if group else f"{namespace}/{owner.removeprefix('Job/')}"
        if owner.startswith("Job/") else ""
        for namespace, group, owner in zip(namespaces, pods["group"].tolist(), pods["owner"].tolist(), strict=True)
    ], dtype=np.str_)  # fmt: skip
    names, counts = np.unique(labels[labels != ""], return_counts=True)
    if not len(names):
        return None
    chosen = names[np.argsort(-counts, kind="stable")[:_MOST_LANES]].tolist()
    found = []
    for name in chosen:
        members = np.flatnonzero(labels == name)
        arrived, bound = float(pods["arrived"][members].min()), pods["bound"][members]
        has_run = not bool(np.isnan(bound).all())
        began = float(np.nanmin(bound)) if has_run else end
        done = float(np.where(np.isnan(pods["ended"][members]), end, pods["ended"][members]).max())
        found.append((arrived, name, began if has_run else done, done, len(members), int((~np.isnan(bound)).sum())))
    found.sort()
    drawn = [
        (name, [Span(arrived, began, "waits", f"waits {duration(began - arrived)}"),
                Span(began, done, "runs", f"runs {duration(done - began)}")])
        for arrived, name, began, done, _, _ in found
    ]  # fmt: skip
    rows = [
        [name, f"{count:,}", f"{placed:,}", duration(arrived), duration(began - arrived), duration(done - began)]
        for arrived, name, began, done, count, placed in found
    ]
    title = "Gangs and Jobs"
    hint = "From the arrival of the first pod to the first that has a node, and from there to the end of the last."
    if len(names) > len(chosen):
        hint += f" The {len(chosen)} largest of {len(names):,}."
    picture = lanes(title, drawn, span=(0.0, end), ends=_ends(result))
    return Figure(title, hint, picture, ["name", "pods", "placed", "came at", "waited", "ran"], rows)
