"""The overview: what is bound and what waits over time, why, calls on their way, and all nodes at a glance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from pilotage.api.calls import Lane
from pilotage.calls.report import CallsReport
from pilotage.console import pictures
from pilotage.console.fleet import ZONE, Fleet
from pilotage.console.source import ConsoleSource, Sample
from pilotage.console.view import PageView
from pilotage.pictures import duration
from pilotage.serve.console_door import Sight
from pilotage.serve.page import PageRequest

_MOST_REASONS: Final = 12
_WINDOW_SAMPLES: Final = 60
_HALVES: Final = frozenset({"reasons", "calls"})


def overview(source: ConsoleSource, sight: Sight, request: PageRequest) -> PageView:
    resource, group = request.first("resource", "cpu"), request.first("group", ZONE)
    regions: dict[str, tuple[str, Mapping[str, Any]]] = {
        "numbers": ("overview_numbers.html", _numbers(source, sight)),
        "flow": ("overview_flow.html", source.of_samples("flow", lambda: _flow(source))),
        "reasons": ("overview_reasons.html", {"reasons": source.reasons(sight)[:_MOST_REASONS]}),
        "calls": ("overview_calls.html", _calls(source)),
    }
    controls = None
    if sight.nodes:
        fleet = Fleet(source, resource, group)
        regions["fleet"] = ("overview_fleet.html", fleet.names())
        regions["fleet-values"] = ("overview_fleet_values.html", fleet.values())
        choices = {"resources": fleet.resources(), "labels": fleet.labels(), "resource": resource, "group": group}
        controls = ("overview_controls.html", choices)
    return PageView("Overview", regions, controls, "fleet", halves=_HALVES)


def _numbers(source: ConsoleSource, sight: Sight) -> dict[str, Any]:
    p50, p99 = _time_to_bind(source)
    return {
        "counts": source.counts(),
        "bound": source.bound(),
        "decides": source.decides,
        "nodes": len(source.cluster.nodes) if sight.nodes else None,
        "pods": source.cluster.placed_count,
        "p50": p50,
        "p99": p99,
    }


def _time_to_bind(source: ConsoleSource) -> tuple[float | None, float | None]:
    """Of the pods that were bound in the last minutes."""
    if not source.samples:
        return None, None
    samples = list(source.samples)[-_WINDOW_SAMPLES:]
    before = samples[0].durations if len(samples) > 1 else ()
    now = samples[-1].durations
    return pictures.quantile(before, now, 0.5), pictures.quantile(before, now, 0.99)


def _flow(source: ConsoleSource) -> dict[str, Any]:
    samples = list(source.samples)
    times = [sample.time for sample in samples]
    waiting = {part: [float(sample.waiting[part]) for sample in samples] for part in source.counts()}
    bound = pictures.rates(times, [float(sample.bound) for sample in samples]) if len(samples) > 1 else []
    charts = [
        ("Pods bound per second", pictures.lines("Pods bound per second", times, {"bound per second": bound})),
        ("Pods that wait", pictures.lines("Pods that wait", times, waiting)),
    ]
    on_nodes = {"on nodes": [float(sample.on_nodes) for sample in samples]}
    charts.append(("Pods on nodes", pictures.lines("Pods on nodes", times, on_nodes)))
    if source.decides:
        charts.append(("Time to bind", pictures.lines("Time to bind", times, _spans(samples), duration)))
    return {"charts": charts}


def _spans(samples: Sequence[Sample]) -> dict[str, list[float | None]]:
    """How long pods that were bound between two samples had waited; None where none was."""
    pairs = [*pairwise(samples)]
    return {
        name: [None, *(pictures.quantile(before.durations, after.durations, share) for before, after in pairs)]
        for name, share in (("p50", 0.5), ("p99", 0.99))
    }


def _calls(source: ConsoleSource) -> dict[str, Any]:
    """By lane: calls that wait and that are under way, and those that have ended since the start, well or not."""
    dispatcher = source.scheduler.dispatcher
    lane_of = dispatcher.queue.types.lanes()
    done: Counter[str] = Counter()
    failed: dict[str, Counter[str]] = {lane.value: Counter() for lane in Lane}
    for (kind, result), count in source.metrics.async_api_call_execution_total.values().items():
        if kind not in lane_of:
            continue
        done[lane_of[kind].value] += int(count)
        if result != "success":
            failed[lane_of[kind].value][kind] += int(count)
    report: CallsReport = dispatcher.report(0)
    lanes = [(name, one, done[name], failed[name]) for name, one in report.lanes.items()]
    return {"lanes": lanes, "decides": source.decides}
