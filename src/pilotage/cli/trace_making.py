"""`pilotage trace generate` and `pilotage trace import`: traces of something else than a recording."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

import click

from pilotage.cli.durations import DURATION
from pilotage.cli.errors import bad_input
from pilotage.cli.logs import say
from pilotage.cli.options import common_options
from pilotage.cli.trace_writing import ALLOW_CUT, FILE, OUTPUT, check_name, explained, write_trace
from pilotage.lab.trace.content import Redaction
from pilotage.lab.trace.distributions import DistributionError, arrivals, lifetime
from pilotage.lab.trace.finishing import open_trace
from pilotage.lab.trace.fitting import FitError, WorkloadFit
from pilotage.lab.trace.generating import NodePool, WorkloadModel, generated, generated_header, parse_pool, parse_shape
from pilotage.lab.trace.openb import ImportProblem, openb_header, openb_records
from pilotage.lab.trace.scheduler_simulator import import_simulator
from pilotage.lab.trace.simkube import SimKubeTrace
from pilotage.rng import seeded

_DAY: Final = 86_400.0
_POOL: Final = "count=10,cpu=16,memory=64Gi"
_SHAPE: Final = "cpu=1,memory=2Gi"


@click.command()
@OUTPUT
@click.option("--pool", "pools", multiple=True, metavar="P", help=f"Equal nodes; may be repeated.  [default: {_POOL}]")
@click.option(
    "--shape", "shapes", multiple=True, metavar="S", help=f"Equal pods; may be repeated.  [default: {_SHAPE}]"
)
@click.option(
    "--arrivals", "coming", default="poisson:rate=60/h", show_default=True, metavar="D", help="When pods come."
)
@click.option(
    "--lifetimes", "running", default="exponential:mean=30m", show_default=True, metavar="D", help="How long they run."
)
@click.option("--until", type=DURATION, metavar="T", help="End after this time.  [default: 1d, or that of --like]")
@click.option("--pods", type=click.IntRange(min=0), metavar="N", help="End after so many pods.")
@click.option("--like", type=FILE, metavar="TRACE", help="Nodes, shapes, arrivals and lifetimes as in this trace.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of everything that is left to chance.")
@ALLOW_CUT
@common_options
@click.pass_context
def generate(
    context: click.Context,
    output: Path,
    pools: tuple[str, ...],
    shapes: tuple[str, ...],
    coming: str,
    running: str,
    until: float | None,
    pods: int | None,
    like: Path | None,
    seed: int,
    allow_cut: bool,
) -> None:
    """Make a trace: nodes of some pools, pods of some shapes that come and run by named distributions.

    Arrivals: poisson:rate=100/h, fixed:every=30s, diurnal:rate=100/h,peak=1.8,at=14h, burst:size=50,every=10m.
    Lifetimes: exponential:mean=10m, lognormal:median=10m,sigma=1.5, pareto:min=1m,shape=1.5, fixed:10m, none.
    A shape may have weight=3, gang=8, priority=100, namespace=batch and a lifetime of its own (lifetime=fixed:10m).
    """
    span = _DAY
    sources = [like] if like is not None else []
    if like is None:
        workload = _workload(pools or (_POOL,), shapes or (_SHAPE,), coming, running)
    else:
        workload, span = _like(context, like, seed, pools, allow_cut)
    end = until if until is not None else math.inf if pods is not None and like is None else span
    records = generated(workload, seeded(seed), end, pods if pods is not None else 2**62)
    with explained(output) as reading:
        write_trace(output, sources, generated_header(), reading.watched(records))


def _workload(pools: tuple[str, ...], shapes: tuple[str, ...], coming: str, running: str) -> WorkloadModel:
    try:
        parsed = [parse_shape(text) for text in shapes]
        lifetimes = [lifetime(own or running) for _, own in parsed]
        nodes = _distinct([parse_pool(text) for text in pools])
        return WorkloadModel(nodes, [shape for shape, _ in parsed], arrivals(coming), lifetimes)
    except DistributionError as error:
        raise bad_input(str(error)) from error


def _distinct(pools: list[NodePool]) -> list[NodePool]:
    names = [pool.name for pool in pools]
    if len(pools) > 1 and len(set(names)) < len(names):
        raise DistributionError("--pool: several pools need a name each, such as name=large,count=10")
    return pools


def _like(
    context: click.Context, path: Path, seed: int, pools: tuple[str, ...], allow_cut: bool
) -> tuple[WorkloadModel, float]:
    """Everything from another trace, except nodes if they are given."""
    for name in ("shapes", "coming", "running"):
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError("--like takes shapes, arrivals and lifetimes from the trace; leave the options out")
    fit = WorkloadFit(seeded(seed))
    with explained(path) as reading:
        fit.observe(reading.watched(open_trace(path, allow_cut=allow_cut)[1]))
    try:
        workload = fit.workload()
        nodes = _distinct([parse_pool(text) for text in pools]) if pools else workload.pools
    except (FitError, DistributionError) as error:
        raise bad_input(f"{path}: {error}") from error
    return WorkloadModel(nodes, workload.shapes, workload.arrivals, workload.lifetimes), fit.span


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@OUTPUT
@click.option(
    "--format",
    "form",
    required=True,
    type=click.Choice(["openb", "kube-scheduler-simulator", "simkube"]),
    help="Who wrote the files.",
)
@click.option("--workload", default="", metavar="LIST", help="Which list of an openb file that has several.")
@click.option("--hash-images", is_flag=True, help="Write hashes instead of the names of images.")
@common_options
def import_traces(files: tuple[Path, ...], output: Path, form: str, workload: str, hash_images: bool) -> None:
    """Make a trace of files of others: openb CSV, kube-scheduler-simulator (export or record), SimKube."""
    check_name(output)
    redaction = Redaction(hash_images=hash_images)
    if form != "openb" and len(files) > 1:
        raise click.UsageError(f"{files[1]}: of {form}, one file makes a trace; `pilotage trace merge` joins several")
    if workload and form != "openb":
        raise click.UsageError("--workload needs --format openb")
    try:
        with explained(files[0]) as reading:
            if form == "openb":
                write_trace(output, files, openb_header(), reading.watched(openb_records(files, workload)))
            elif form == "simkube":
                _import_simkube(files[0], output, redaction)
            else:
                _import_simulator(files[0], output, redaction)
    except ImportProblem as error:
        raise bad_input(str(error)) from error


def _import_simkube(file: Path, output: Path, redaction: Redaction) -> None:
    found = SimKubeTrace(file, redaction)
    write_trace(output, [file], found.header, found.records())
    for kind, count in found.left_out.items():
        say(f"left out: {count:,} {kind}")
    say("SimKube traces have no nodes: give them to simulate with --nodes, or merge a trace that has some")


def _import_simulator(file: Path, output: Path, redaction: Redaction) -> None:
    if output.exists() and file.exists() and output.samefile(file):
        raise bad_input(f"{output}: is what is being read; choose another name")
    if note := import_simulator(file, output, redaction):
        say(note)
    say(f"{output}: written")
