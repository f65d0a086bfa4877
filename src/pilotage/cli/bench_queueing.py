"""`pilotage bench --workload WorkloadQueueing`: what queueing costs, as a table with goals."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import click

from pilotage.bench import put_aside
from pilotage.bench.event_handling import Figure
from pilotage.bench.workload_queueing import NAME, WORKLOADS, NeverFinished, QueueingBench, QueueingFigures
from pilotage.cli.bench_events import print_figures
from pilotage.cli.errors import ExitCode
from pilotage.cli.output import show, show_json

_CPU_SECONDS_EACH = 120 / WORKLOADS


def bench_queueing(workloads: int | None, seed: int, output: str) -> int:
    """Measure and show; FAILED if a goal is missed."""
    count = workloads or WORKLOADS
    show(f"{count:,} workloads in the sandbox, in virtual time", err=True)
    try:
        # Virtual time needs the loop of the standard library: it can tell whether anybody still has something to do.
        run = asyncio.run(QueueingBench(count, seed).run())
    except NeverFinished as error:
        raise click.ClickException(str(error)) from error
    show(f"{put_aside.PUT_ASIDE:,} workloads that cannot be admitted", err=True)
    figures = [*_figures(run), *put_aside.measure(put_aside.PUT_ASIDE)]
    if output == "json":
        show_json({"workload": NAME, "workloads": count, "figures": figures})
    else:
        print_figures(f"{NAME} ({count:,} workloads, {run.virtual_seconds:,.0f} s of virtual time)", figures)
    return ExitCode.OK if all(figure.is_met for figure in figures) else ExitCode.FAILED


def _figures(run: QueueingFigures) -> Iterator[Figure]:
    tally, most = run.tally, _CPU_SECONDS_EACH * run.workloads
    yield Figure("CPU time of everything", run.cpu_seconds, "s", f"<= {most:g}", run.cpu_seconds <= most)
    yield Figure("finished", tally.finished, "workloads", f"{run.workloads:,}", tally.finished == run.workloads)
    yield Figure("writes that left a cohort above its quota", tally.excesses, "writes", "0", tally.excesses == 0)
    yield Figure("admissions", tally.admissions, "times", "-", True)
    yield Figure("evictions by preemption", tally.evictions, "times", "-", True)
    yield Figure("versions of workloads stored", tally.writes / run.workloads, "each", "-", True)
    yield Figure("peak memory", run.peak_memory_mib, "MiB", "-", True)
