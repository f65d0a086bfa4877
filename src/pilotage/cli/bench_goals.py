"""Workloads of `pilotage bench` whose figures have goals: what events cost, what queueing costs, what size costs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

import click
from rich.table import Table

from pilotage.bench import event_handling, inadmissible, scaling, workload_queueing
from pilotage.bench.event_handling import MeasuredFigure
from pilotage.bench.scaling import ScalingRow
from pilotage.bench.workload_queueing import NeverFinished, QueueingBench, QueueingFigures, QueueingLoad
from pilotage.cli.errors import ExitCode
from pilotage.cli.output import show, show_json
from pilotage.cli.terminal import PlainConsole

_CPU_SECONDS_EACH = 120 / workload_queueing.WORKLOADS
_TIMES_WITHOUT_NODES = 2.0


def bench_events(waiting_pods: int | None, output: str) -> int:
    """Measure and show; FAILED if a goal is missed."""
    pods = waiting_pods or event_handling.WAITING_PODS
    figures = list(event_handling.measure(pods, lambda step: show(step, err=True)))
    if output == "json":
        show_json({"workload": event_handling.NAME, "waitingPods": pods, "figures": figures})
    else:
        print_figures(f"{event_handling.NAME} ({pods:,} waiting pods, CPU time)", figures)
    return ExitCode.OK if all(figure.is_met for figure in figures) else ExitCode.FAILED


def bench_queueing(load: QueueingLoad, seed: int, output: str) -> int:
    """Measure and show; FAILED if a goal is missed."""
    count = load.workloads
    run = _measured(load, seed, f"{count:,} workloads in the sandbox, in virtual time")
    if load.nodes:
        text = f"the same on {load.nodes:,} nodes without asking whether pods fit on them"
        figures = [*_figures(run), _beside(run, _measured(replace(load, is_node_aware=False), seed, text))]
    else:
        show(f"{inadmissible.WORKLOADS:,} workloads that cannot be admitted", err=True)
        figures = [*_figures(run), *inadmissible.measure(inadmissible.WORKLOADS)]
    if output == "json":
        facts = {"workloads": count, "nodes": load.nodes, "perSecond": load.per_second}
        show_json({"workload": workload_queueing.NAME, **facts, "figures": figures})
    else:
        nodes = f" on {load.nodes:,} nodes" if load.nodes else ""
        title = f"{workload_queueing.NAME} ({count:,} workloads{nodes}, {run.virtual_seconds:,.0f} s of virtual time)"
        print_figures(title, figures)
    return ExitCode.OK if all(figure.is_met for figure in figures) else ExitCode.FAILED


def _measured(load: QueueingLoad, seed: int, text: str) -> QueueingFigures:
    show(text, err=True)
    try:
        # Virtual time needs the loop of the standard library: it knows whether a task still has something to do.
        return asyncio.run(QueueingBench(load, seed).run())
    except NeverFinished as error:
        raise click.ClickException(str(error)) from error


def _beside(run: QueueingFigures, without: QueueingFigures) -> MeasuredFigure:
    times = run.cpu_seconds / max(without.cpu_seconds, 1e-9)
    name = f"CPU time beside that without asking nodes ({without.cpu_seconds:.3g} s)"
    return MeasuredFigure(name, times, "times", f"<= {_TIMES_WITHOUT_NODES:g}", times <= _TIMES_WITHOUT_NODES)


def bench_scaling(largest: int | None, output: str) -> int:
    """Measure and show; FAILED if a ratio is too large."""
    nodes = largest or scaling.LARGEST
    try:
        rows = scaling.measure(nodes, lambda step: show(step, err=True))
    except scaling.DoesNotFit as error:
        raise click.ClickException(str(error)) from error
    figures = list(scaling.figures_of(rows))
    if output == "json":
        show_json({"workload": scaling.NAME, "nodes": scaling.sizes(nodes), "micros": rows, "figures": figures})
    else:
        _print_scaling(scaling.sizes(nodes), rows)
        print_figures("Ratios", figures)
    return ExitCode.OK if all(figure.is_met for figure in figures) else ExitCode.FAILED


def _print_scaling(sizes: Sequence[int], rows: Sequence[ScalingRow]) -> None:
    table = Table(title=f"{scaling.NAME} (us of CPU for each pod or event)", title_justify="left")
    table.add_column("WHAT", no_wrap=True)
    for size in sizes:
        table.add_column(f"{size:,} NODES", justify="right")
    table.add_column("LAST STEP", justify="right")
    for row in rows:
        table.add_row(row.name, *(f"{value:,.0f}" for value in row.micros), f"{row.steepness:.1f} times")
    PlainConsole().print(table)


def print_figures(title: str, figures: Sequence[MeasuredFigure]) -> None:
    """A table of what was measured and whether it is good enough."""
    table = Table(title=title, title_justify="left")
    for heading in ("FIGURE", "MEASURED", "GOAL", "MET"):
        table.add_column(heading, justify="left" if heading in ("FIGURE", "MET") else "right")
    for figure in figures:
        shown = f"{figure.value:,.0f}" if figure.value >= 100 else f"{figure.value:.3g}"
        table.add_row(figure.name, f"{shown} {figure.unit}", figure.goal, "yes" if figure.is_met else "NO")
    PlainConsole().print(table)


def _figures(run: QueueingFigures) -> Iterator[MeasuredFigure]:
    tally, most = run.tally, _CPU_SECONDS_EACH * run.workloads
    yield MeasuredFigure("CPU time of everything", run.cpu_seconds, "s", f"<= {most:g}", run.cpu_seconds <= most)
    yield MeasuredFigure("finished", tally.finished, "workloads", f"{run.workloads:,}", tally.finished == run.workloads)
    yield MeasuredFigure(
        "writes that left a cohort above its quota", tally.excesses, "writes", "0", tally.excesses == 0
    )
    yield MeasuredFigure("admissions", tally.admissions, "times", "-", True)
    yield MeasuredFigure("evictions by preemption", tally.evictions, "times", "-", True)
    yield MeasuredFigure("versions of workloads stored", tally.writes / run.workloads, "each", "-", True)
    yield MeasuredFigure("peak memory", run.peak_memory_mib, "MiB", "-", True)
