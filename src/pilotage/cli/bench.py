"""`pilotage bench`: how fast, at what cost."""

from __future__ import annotations

import asyncio
import random

import click
import msgspec
import uvloop
from rich.table import Table

from pilotage.assembly import SchedulerOptions
from pilotage.bench import event_handling, scaling, workload_queueing
from pilotage.bench.catalog import WORKLOADS
from pilotage.bench.child_process import ChildFailed
from pilotage.bench.measure import Figures
from pilotage.bench.over_http import OverHttpBench
from pilotage.bench.stage import InProcessBench, Stalled
from pilotage.bench.workloads import SCHEDULING_BASIC, BenchWorkload
from pilotage.cli.bench_console import NAME as CONSOLE_PAGES
from pilotage.cli.bench_console import bench_console, console_workload
from pilotage.cli.bench_goals import bench_events, bench_queueing, bench_scaling
from pilotage.cli.bench_real import bench_real
from pilotage.cli.bench_versions import bench_versions
from pilotage.cli.bench_viewer import ROUNDS, bench_viewer
from pilotage.cli.errors import ExitCode, bad_input
from pilotage.cli.output import show, show_json
from pilotage.cli.scheduler_flags import SchedulerFlags, scheduler_flags
from pilotage.cli.terminal import PlainConsole
from pilotage.clock import Clock, SystemClock
from pilotage.framework.errors import ProfileError
from pilotage.model.suggestions import suggestion
from pilotage.rng import seeded

_ROUNDS = 3
_WITH_GOALS = (event_handling.NAME, workload_queueing.NAME, CONSOLE_PAGES, scaling.NAME)
_EPILOG = """\b
Examples:
  pilotage bench --workload SchedulingBasic
  pilotage bench --nodes 500 --init-pods 500 --pods 1000 --server http -o json
  pilotage bench --workload Unschedulable --latency-ms 20 --compare-gate SchedulerAsyncAPICalls
  pilotage bench --server real --rounds 3
  pilotage bench --workload SchedulingDistinct --compare main --rounds 5
  pilotage bench --workload EventHandling
  pilotage bench --workload WorkloadQueueing --nodes 1000
  pilotage bench --viewer
  pilotage bench --workload ConsolePages
  pilotage bench --workload Scaling
"""


@click.command(epilog=_EPILOG)
@click.option("--workload", "workload_name", default="SchedulingBasic", show_default=True, help="What to schedule.")
@click.option("--nodes", type=click.IntRange(min=1), help="Number of nodes.")
@click.option("--init-pods", type=click.IntRange(min=0), help="Pods that are scheduled before the measured ones.")
@click.option("--pods", type=click.IntRange(min=1), help="Pods that are measured.")
@click.option(
    "--server",
    type=click.Choice(["in-process", "http", "real"]),
    default="in-process",
    show_default=True,
    help="Sandbox in this process without HTTP, or in one of its own, or a real API server.",
)
@click.option("--latency-ms", type=click.FloatRange(min=0), default=0.0, help="Let every write take this much longer.")
@click.option(
    "--per-second",
    type=click.IntRange(min=1),
    default=workload_queueing.PER_SECOND,
    show_default=True,
    help="WorkloadQueueing: how many workloads come in a second.",
)
@click.option("--rounds", type=click.IntRange(min=1), help="How often to measure (--server real, --compare, --viewer).")
@click.option("--compare", metavar="REF", default="", help="Measure this version of the project and REF in turn.")
@click.option("--compare-gate", metavar="G", default="", help="Run a second time with this feature gate off.")
@click.option("--no-contrast", is_flag=True, help="Do not run a second time without the feature that is shown.")
@click.option("--viewer", is_flag=True, help="Measure what one viewer of the console takes from scheduling.")
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
    per_second: int,
    rounds: int | None,
    compare: str,
    compare_gate: str,
    no_contrast: bool,
    viewer: bool,
    seed: int,
    output: str,
    flags: SchedulerFlags,
) -> int:
    """Measure pods per second, latency, CPU and memory of a workload.

    In the sandbox or, with --server real, against a real API server (see `make cluster-assets`), there in turn with
    kube-scheduler if it is among the assets. The workload EventHandling measures what events cost while --pods wait
    for something else; WorkloadQueueing what it costs to queue --pods workloads for quota, in virtual time, and with
    --nodes what it costs to admit only those that fit there; ConsolePages what pages of the console cost while --pods
    wait; Scaling what pods and events cost with --nodes, a tenth and a hundredth of them. All four exit with 1 if a
    goal is missed, and so does --viewer.
    """
    if compare and (server == "real" or compare_gate or viewer):
        raise click.UsageError("--compare does not go with --server real, --compare-gate or --viewer")
    if compare and workload_name in _WITH_GOALS:
        chosen = {
            "--nodes": nodes,
            "--init-pods": init_pods,
            "--pods": pods,
            "--per-second": per_second,
            "--seed": seed,
        }
        defaults = {"--per-second": workload_queueing.PER_SECOND, "--seed": 1}
        words = [f"{name}={value}" for name, value in chosen.items() if value != defaults.get(name)]
        named = [f"--workload={workload_name}", *words]
        bench_versions(compare, workload_name, named, rounds=rounds or _ROUNDS, output=output)
        return ExitCode.OK
    if workload_name == event_handling.NAME:
        return bench_events(pods, output)
    if workload_name == workload_queueing.NAME:
        load = workload_queueing.QueueingLoad(pods or workload_queueing.WORKLOADS, per_second, nodes or 0)
        return bench_queueing(load, seed, output)
    if workload_name == scaling.NAME:
        return bench_scaling(nodes, output)
    if workload_name == CONSOLE_PAGES:
        return bench_console(nodes, init_pods, pods, seed, output)
    workload = _workload(workload_name).sized(nodes, init_pods, pods)
    if latency_ms and server != "in-process":
        raise click.UsageError("--latency-ms needs --server in-process")
    if rounds is not None and server != "real" and not compare and not viewer:
        raise click.UsageError("--rounds needs --server real, --compare or --viewer")
    if viewer:
        if server != "in-process" or compare_gate or latency_ms or workload_name != SCHEDULING_BASIC.name:
            raise click.UsageError(
                "--viewer has a cluster of its own, without --workload, --server, --latency-ms and --compare-gate"
            )
        sized = console_workload(nodes, init_pods, pods)
        return bench_viewer(sized, flags.options(), rounds=rounds or ROUNDS, seed=seed, output=output)
    if compare:
        arguments = _arguments(workload, server, latency_ms, seed, flags)
        sizes = f"{workload.nodes:,} nodes, {workload.init_pods:,} pods before, {workload.pods:,} measured"
        bench_versions(compare, workload.name, arguments, rounds=rounds or _ROUNDS, output=output, sizes=sizes)
        return ExitCode.OK
    if server == "real":
        bench_real(workload, flags, rounds=rounds or 1, seed=seed, output=output)
        return ExitCode.OK
    course = _Course(workload, server, latency_ms / 1000, seed)
    figures = course.run(flags)
    gate = compare_gate or ("" if no_contrast else workload.contrast_gate)
    contrast = course.run(_without(flags, gate)) if gate else None
    if output == "json":
        facts = figures.as_json()
        if contrast is not None:
            facts["contrast"] = {"featureGates": f"{gate}=false", **contrast.as_json()}
        show_json(facts)
        return ExitCode.OK
    _print_table(figures)
    if contrast is not None:
        _print_table(contrast, f", {gate}=false")
        _print_ratio(gate, figures, contrast)
    return ExitCode.OK


def _arguments(workload: BenchWorkload, server: str, latency_ms: float, seed: int, flags: SchedulerFlags) -> list[str]:
    """The same run as a command line."""
    sizes = {"--nodes": workload.nodes, "--init-pods": workload.init_pods, "--pods": workload.pods, "--seed": seed}
    options = {"--workload": workload.name, "--server": server, "--latency-ms": latency_ms, **sizes}
    return ["--no-contrast", *(f"{name}={value}" for name, value in options.items()), *flags.arguments()]


class _Course(msgspec.Struct, frozen=True):
    """What is measured and where; it can be run several times, with different schedulers."""

    workload: BenchWorkload
    server: str
    latency_seconds: float
    seed: int

    def run(self, flags: SchedulerFlags) -> Figures:
        clock, rng = SystemClock(), seeded(self.seed)
        options = flags.options()
        if self.server == "http":
            work = OverHttpBench(self.workload, clock, rng, flags.arguments()).run()
        else:
            work = _in_process(self.workload, clock, rng, options, self.latency_seconds).run()
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
                return loop.run(work)
        except (Stalled, ChildFailed) as error:
            raise click.ClickException(str(error)) from error


def _without(flags: SchedulerFlags, gate: str) -> SchedulerFlags:
    """The same scheduler with a feature gate off."""
    chosen = [flags.feature_gates] if flags.feature_gates else []
    return msgspec.structs.replace(flags, feature_gates=",".join([*chosen, f"{gate}=false"]))


def _in_process(
    workload: BenchWorkload, clock: Clock, rng: random.Random, options: SchedulerOptions, latency_seconds: float
) -> InProcessBench:
    try:
        return InProcessBench(workload, clock, rng, options, latency_seconds)
    except ProfileError as error:
        raise bad_input(str(error)) from error


def _workload(name: str) -> BenchWorkload:
    workload = WORKLOADS.get(name)
    if workload is None:
        known = [*WORKLOADS, *_WITH_GOALS]
        raise click.UsageError(f'unknown workload "{name}"{suggestion(name, known)}; there are: {", ".join(known)}')
    return workload


def _print_table(figures: Figures, how: str = "") -> None:
    facts = figures.as_json()
    table = Table(title=f"{figures.workload} ({figures.server}{how})", show_header=False, title_justify="left")
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
    PlainConsole().print(table)


def _print_ratio(gate: str, figures: Figures, contrast: Figures) -> None:
    pods = max(figures.pods, 1)
    with_gate, without = (run.cpu_seconds / pods * 1e3 for run in (figures, contrast))
    ratio = figures.pods_per_second / max(contrast.pods_per_second, 1e-9)
    show(
        f"Without {gate} a pod costs {without:.2f} ms of CPU instead of {with_gate:.2f} ms; "
        f"with it {ratio:.1f} times as many pods per second are dealt with."
    )
