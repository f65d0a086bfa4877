"""`pilotage bench --server real`: against a real API server, and beside kube-scheduler where it is there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import click
import uvloop
from rich.table import Table

from pilotage.bench.child_process import ChildFailed
from pilotage.bench.cluster_assets import AssetsMissing, ClusterAssets, PodGroupRelease, find_assets, pod_group_release
from pilotage.bench.comparison import Summary, ratios, schedulers_of, summary_of
from pilotage.bench.contenders import Contender, KubeScheduler, Pilotage
from pilotage.bench.measure import Figures
from pilotage.bench.over_real import OverRealBench
from pilotage.bench.program import ProgramFailed
from pilotage.bench.stage import Stalled
from pilotage.bench.workloads import BenchWorkload
from pilotage.cli.errors import bad_input
from pilotage.cli.output import show, show_json
from pilotage.cli.scheduler_flags import SchedulerFlags
from pilotage.cli.terminal import PlainConsole
from pilotage.clock import SystemClock
from pilotage.rng import seeded


def bench_real(workload: BenchWorkload, flags: SchedulerFlags, *, rounds: int, seed: int, output: str) -> None:
    """Measure and print; the JSON object is the last line of stdout."""
    if workload.controllers:
        raise click.UsageError(f"{workload.name} needs controllers, which a bare API server does not have")
    flags.options()
    try:
        assets = find_assets()
    except AssetsMissing as missing:
        raise bad_input(str(missing)) from missing
    groups = _pod_groups(assets) if workload.has_pod_groups else None
    contenders = _contenders(assets, flags, () if groups is None else groups.gates)
    server_flags = () if groups is None else groups.server_flags()
    bench = OverRealBench(workload, SystemClock(), lambda: seeded(seed), assets, contenders, server_flags)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
            runs = loop.run(bench.run(rounds))
    except (Stalled, ChildFailed, ProgramFailed) as error:
        raise click.ClickException(str(error)) from error
    summaries = [summary_of(runs, name) for name in schedulers_of(runs)]
    if output == "json":
        show_json(document_of(workload, runs, summaries))
    else:
        print_table(workload, runs, summaries)


def _pod_groups(assets: ClusterAssets) -> PodGroupRelease:
    found = pod_group_release(assets)
    if found is None:
        raise bad_input(f"the kube-apiserver in {assets.folder} has no pod groups: it must be 1.36 or newer")
    return found


def _contenders(assets: ClusterAssets, flags: SchedulerFlags, gates: Sequence[str]) -> list[Contender]:
    ours = Pilotage(flags.arguments())
    theirs = assets.kube_scheduler
    return [ours] if theirs is None else [ours, KubeScheduler(theirs, gates)]


def document_of(workload: BenchWorkload, runs: Sequence[Figures], summaries: Sequence[Summary]) -> dict[str, Any]:
    document: dict[str, Any] = {
        "workload": workload.name,
        "server": "real",
        "runs": [run.as_json() for run in runs],
        "medians": {summary.scheduler: summary.as_json() for summary in summaries},
    }
    if len(summaries) > 1:
        document["ratios"] = ratios(*summaries)
    return document


def print_table(workload: BenchWorkload, runs: Sequence[Figures], summaries: Sequence[Summary]) -> None:
    sizes = f"{workload.nodes:,} nodes, {workload.init_pods:,} pods before, {workload.pods:,} measured"
    table = Table(title=f"{workload.name} (real API server): {sizes}", title_justify="left")
    for heading in ("SCHEDULER", "PODS/S", "CPU", "PEAK MEMORY", "CREATE TO BIND P50", "P99", "EVENTS", "ALL CPU"):
        table.add_column(heading, justify="left" if heading == "SCHEDULER" else "right", no_wrap=heading == "SCHEDULER")
    for run in runs:
        latency = run.as_json()["latencySeconds"]
        table.add_row(
            run.scheduler,
            f"{run.pods_per_second:,.0f}",
            f"{run.cpu_seconds:.1f} s",
            f"{run.peak_memory_mib:,.0f} MiB",
            f"{latency['p50']:.2f} s",
            f"{latency['p99']:.2f} s",
            f"{run.events or 0:,}",
            f"{run.all_cpu_seconds:.1f} s",
        )
    PlainConsole().print(table)
    if len(summaries) > 1:
        found = ratios(*summaries)
        show(
            f"Of {summaries[1].scheduler}'s: throughput x {found['throughput']:.2f} "
            f"(x {found['throughputByCpu']:.2f} by the CPU that everything took), "
            f"scheduler CPU x {found['cpu']:.2f}, peak memory x {found['memory']:.2f}."
        )
    else:
        show("No kube-scheduler among the assets to compare with.")
