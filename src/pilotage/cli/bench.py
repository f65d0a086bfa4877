"""`pilotage bench`: how fast, at what cost."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import sys

import click
import msgspec
import uvloop
from rich.console import Console
from rich.table import Table

from pilotage.assembly import SchedulerOptions
from pilotage.bench.catalog import WORKLOADS
from pilotage.bench.child_process import ChildFailed
from pilotage.bench.in_process import InProcessBench, Stalled
from pilotage.bench.measure import Figures
from pilotage.bench.over_http import OverHttpBench
from pilotage.bench.workloads import Workload
from pilotage.cli.errors import bad_input
from pilotage.cli.scheduler_flags import SchedulerFlags, scheduler_flags
from pilotage.clock import Clock, SystemClock
from pilotage.config.suggestions import suggestion
from pilotage.framework.errors import ProfileError
from pilotage.rng import seeded

_EPILOG = """\b
Examples:
  pilotage bench --workload SchedulingBasic
  pilotage bench --nodes 500 --init-pods 500 --pods 1000 --server http -o json
"""


@click.command(epilog=_EPILOG)
@click.option("--workload", "workload_name", default="SchedulingBasic", show_default=True, help="What to schedule.")
@click.option("--nodes", type=click.IntRange(min=1), help="Number of nodes.")
@click.option("--init-pods", type=click.IntRange(min=0), help="Pods that are scheduled before the measured ones.")
@click.option("--pods", type=click.IntRange(min=1), help="Pods that are measured.")
@click.option(
    "--server",
    type=click.Choice(["in-process", "http"]),
    default="in-process",
    show_default=True,
    help="Sandbox in this process without HTTP, or in one of its own.",
)
@click.option("--latency-ms", type=click.FloatRange(min=0), default=0.0, help="Let every write take this much longer.")
@scheduler_flags
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of everything random.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def bench(
    workload_name: str,
    nodes: int | None,
    init_pods: int | None,
    pods: int | None,
    server: str,
    latency_ms: float,
    seed: int,
    output: str,
    flags: SchedulerFlags,
) -> None:
    """Measure pods per second, latency, CPU and memory of a workload in the sandbox."""
    workload = _sized(_workload(workload_name), nodes, init_pods, pods)
    options = flags.options()
    clock, rng = SystemClock(), seeded(seed)
    if server == "http":
        if latency_ms:
            raise click.UsageError("--latency-ms needs --server in-process")
        runner: InProcessBench | OverHttpBench = OverHttpBench(workload, clock, rng, flags.arguments())
    else:
        runner = _in_process(workload, clock, rng, options, latency_ms / 1000)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
            figures = loop.run(runner.run())
    except (Stalled, ChildFailed) as error:
        raise click.ClickException(str(error)) from error
    if output == "json":
        click.echo(msgspec.json.encode(figures.as_json()).decode())
    else:
        _print_table(figures)


def _in_process(
    workload: Workload, clock: Clock, rng: random.Random, options: SchedulerOptions, latency_seconds: float
) -> InProcessBench:
    try:
        return InProcessBench(workload, clock, rng, options, latency_seconds)
    except ProfileError as error:
        raise bad_input(str(error)) from error


def _workload(name: str) -> Workload:
    workload = WORKLOADS.get(name)
    if workload is None:
        known = ", ".join(WORKLOADS)
        raise click.UsageError(f'unknown workload "{name}"{suggestion(name, WORKLOADS)}; there are: {known}')
    return workload


def _sized(workload: Workload, nodes: int | None, init_pods: int | None, pods: int | None) -> Workload:
    return dataclasses.replace(
        workload,
        nodes=workload.nodes if nodes is None else nodes,
        init_pods=workload.init_pods if init_pods is None else init_pods,
        pods=workload.pods if pods is None else pods,
    )


def _print_table(figures: Figures) -> None:
    facts = figures.as_json()
    table = Table(title=f"{figures.workload} ({figures.server})", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(justify="right")
    windows, latency = facts["podsPerSecondWindows"], facts["latencySeconds"]
    own = facts["schedulerMicrosPerPod"]
    rows = [
        ("nodes / init pods / pods", f"{figures.nodes:,} / {figures.init_pods:,} / {figures.pods:,}"),
        ("time", f"{facts['seconds']:.2f} s"),
        ("pods/s, mean", f"{facts['podsPerSecond']:,.0f}"),
        ("pods/s, windows of 1 s (p50 / p90 / p99)", " / ".join(f"{v:,.0f}" for v in windows.values())),
        ("create to bind (p50 / p90 / p99)", " / ".join(f"{v:.3f} s" for v in latency.values())),
        ("CPU per 1,000 pods", f"{facts['cpuSecondsPer1000Pods']:.3f} s"),
        ("scheduler's own CPU per pod", "-" if own is None else f"{own:,.0f} us"),
        ("peak memory", f"{facts['peakMemoryMiB']:,.0f} MiB"),
    ]
    for name, value in rows:
        table.add_row(name, value)
    Console(file=sys.stdout).print(table)
