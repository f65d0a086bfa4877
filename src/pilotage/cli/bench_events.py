"""`pilotage bench --workload EventHandling`: what events cost, as a table with goals."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from pilotage.bench.event_handling import NAME, WAITING_PODS, Figure, measure
from pilotage.cli.console import PlainConsole
from pilotage.cli.errors import ExitCode
from pilotage.cli.output import show, show_json


def bench_events(waiting_pods: int | None, output: str) -> int:
    """Measure and show; FAILED if a goal is missed."""
    pods = waiting_pods or WAITING_PODS
    figures = list(measure(pods, lambda step: show(step, err=True)))
    if output == "json":
        show_json({"workload": NAME, "waitingPods": pods, "figures": figures})
    else:
        print_figures(f"{NAME} ({pods:,} waiting pods, CPU time)", figures)
    return ExitCode.OK if all(figure.is_met for figure in figures) else ExitCode.FAILED


def print_figures(title: str, figures: Sequence[Figure]) -> None:
    """A table of what was measured and whether it is good enough."""
    table = Table(title=title, title_justify="left")
    for heading in ("FIGURE", "MEASURED", "GOAL", "MET"):
        table.add_column(heading, justify="left" if heading in ("FIGURE", "MET") else "right")
    for figure in figures:
        shown = f"{figure.value:,.0f}" if figure.value >= 100 else f"{figure.value:.3g}"
        table.add_row(figure.name, f"{shown} {figure.unit}", figure.goal, "yes" if figure.is_met else "NO")
    PlainConsole().print(table)
