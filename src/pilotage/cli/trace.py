"""`pilotage trace`: look at traces, take parts of them, change them, make them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from pilotage.cli.durations import DURATION
from pilotage.cli.errors import ExitCode
from pilotage.cli.logs import say
from pilotage.cli.options import common_options
from pilotage.cli.output import show, show_json
from pilotage.cli.trace_agree import agree
from pilotage.cli.trace_info import info_text
from pilotage.cli.trace_making import generate, import_traces
from pilotage.cli.trace_starts import starts
from pilotage.cli.trace_writing import ALLOW_CUT, FILE, OUTPUT, explained, write_trace
from pilotage.lab.trace.anonymising import anonymised
from pilotage.lab.trace.cutting import TracePart, cut
from pilotage.lab.trace.external_sort import in_order
from pilotage.lab.trace.finishing import open_trace
from pilotage.lab.trace.format import any_kind, read
from pilotage.lab.trace.merging import Merge
from pilotage.lab.trace.scaling import Factors, Scaling
from pilotage.lab.trace.summary import summed
from pilotage.lab.trace.validation import problems
from pilotage.rng import fresh_seed, seeded

_EPILOG: Final = """\b
Examples:
  pilotage trace info monday.jsonl.gz
  pilotage trace cut monday.jsonl.gz --from 8h --to 20h -n batch -o day.jsonl.gz
  pilotage trace scale day.jsonl.gz --pods 2 -o twice.jsonl.gz
  pilotage trace merge day.jsonl.gz night.jsonl.gz -o both.jsonl.gz
  pilotage trace anonymise day.jsonl.gz --seed 7 -o public.jsonl.gz
  pilotage trace generate --pool count=100,cpu=64,memory=256Gi --arrivals poisson:rate=100/h -o made.jsonl.gz
  pilotage trace agree monday.jsonl.gz --config scheduler.yaml
  pilotage trace starts monday.jsonl.gz
  pilotage trace import --format openb nodes.csv.gz pods.csv.gz -o openb.jsonl.gz
"""


@click.group(epilog=_EPILOG)
@common_options
def trace() -> None:
    """Look at traces of clusters, take parts of them, change them, make them.

    A trace says what came, changed and went in a cluster, and when; `pilotage record` writes one. All commands read and
    write line by line, so that a trace may be larger than memory; the same trace, options and seed give the same bytes.
    """


trace.add_command(generate)
trace.add_command(import_traces)
trace.add_command(agree)
trace.add_command(starts)
_TRACE: Final = click.argument("path", type=FILE, metavar="TRACE")


@trace.command()
@_TRACE
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Rows of each table.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@ALLOW_CUT
@common_options
def info(path: Path, top: int, output: str, allow_cut: bool) -> None:
    """Show what is in a trace: span, kinds, pods by owner and shape, arrivals per hour, lifetimes, gaps."""
    with explained(path) as reading:
        header, records = open_trace(path, allow_cut=allow_cut)
        is_finished = not read(path, known=any_kind)[0].recording
        summing = summed(reading.watched(records), seeded(0))
    summary = summing.summary(header, is_finished, top)
    if output == "json":
        show_json(summary, indent=2)
    else:
        show(info_text(path, summary))


@trace.command()
@_TRACE
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Problems that are shown.")
@common_options
def validate(path: Path, limit: int) -> int:
    """Check every line of a trace: form, order, kinds, objects, references. Exits with 1 if there are errors."""
    counts = {"error": 0, "warning": 0}
    with explained(path) as reading:
        for problem in problems(path):
            counts[problem.severity] += 1
            if sum(counts.values()) <= limit:
                reading.clear()
                show(f"{path}:{problem.line}: {problem.severity}: {problem.text}")
    hidden = sum(counts.values()) - limit
    more = f" ({hidden:,} are not shown: --limit)" if hidden > 0 else ""
    show(f"{path}: {counts['error']:,} errors, {counts['warning']:,} warnings{more}")
    return ExitCode.FAILED if counts["error"] else ExitCode.OK


@trace.command("cut")
@_TRACE
@OUTPUT
@click.option("--from", "begin", type=DURATION, default=0.0, metavar="T", help="Begin so long after the start.")
@click.option("--to", "end", type=DURATION, metavar="T", help="End so long after the start.")
@click.option("-n", "--namespace", "namespaces", multiple=True, metavar="N", help="Only these; may be repeated.")
@click.option(
    "--without", multiple=True, metavar="KIND", help="Without objects of a kind, such as Job; may be repeated."
)
@click.option("--every", type=click.IntRange(min=1), default=1, metavar="N", help="Every Nth pod; groups stay whole.")
@click.option("--every-node", type=click.IntRange(min=1), default=1, metavar="N", help="Every Nth node.")
@ALLOW_CUT
@common_options
def cut_command(
    path: Path,
    output: Path,
    begin: float,
    end: float | None,
    namespaces: tuple[str, ...],
    without: tuple[str, ...],
    every: int,
    every_node: int,
    allow_cut: bool,
) -> None:
    """Take a part of a trace: a span of time, namespaces, every Nth pod.

    What there is at the beginning of the span is the state that the part begins with; pods that run then are put on
    the node where they were seen, with what is left of their lifetime.
    """
    if end is not None and end <= begin:
        raise click.UsageError(f"--to {end:g}s is not after --from {begin:g}s")
    part = TracePart(
        begin=begin,
        end=float("inf") if end is None else end,
        namespaces=frozenset(namespaces),
        without_kinds=frozenset(without),
        every_pod=every,
        every_node=every_node,
    )
    with explained(path) as reading:
        header, records = open_trace(path, allow_cut=allow_cut)
        write_trace(output, [path], part.header(header), cut(reading.watched(records), part))


@trace.command()
@_TRACE
@OUTPUT
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), default=1.0, metavar="K", help="K times as fast.")
@click.option(
    "--lifetimes",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    metavar="K",
    help="Pods run K times as long.",
)
@click.option("--pods", type=click.FloatRange(min=0), default=1.0, metavar="K", help="K pods for each one, by copies.")
@click.option("--spread", type=DURATION, default=0.0, metavar="T", help="Copies come up to T later, by chance.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of what is left to chance.")
@ALLOW_CUT
@common_options
def scale(
    path: Path, output: Path, rate: float, lifetimes: float, pods: float, spread: float, seed: int, allow_cut: bool
) -> None:
    """Change how many pods come, how fast, and how long they run.

    Groups and Jobs are copied with all of their pods. Pods with volume or device claims of their own are not copied.
    """
    scaling = Scaling(Factors(rate=rate, lifetimes=lifetimes, pods=pods, spread=spread, seed=seed))
    with explained(path) as reading:
        header, records = open_trace(path, allow_cut=allow_cut)
        write_trace(output, [path], header, scaling.records(reading.watched(records)))
    if scaling.not_copied:
        say(f"{scaling.not_copied:,} pods use claims of their own, and are not copied")


@trace.command()
@click.argument("paths", nargs=-1, required=True, type=FILE, metavar="TRACE...")
@OUTPUT
@click.option("--by-clock", is_flag=True, help="Keep each trace at its time of day.  [default: all begin together]")
@click.option("--shared-nodes", is_flag=True, help="All pods on the nodes of the first trace; others are left out.")
@ALLOW_CUT
@common_options
def merge(paths: tuple[Path, ...], output: Path, by_clock: bool, shared_nodes: bool, allow_cut: bool) -> None:
    """Put traces side by side in one. Namespaces and other names that clash get a prefix: t2-, t3-, ..."""
    with explained(paths[0]) as reading:
        merging = Merge(paths, "clock" if by_clock else "start", shares_nodes=shared_nodes, allow_cut=allow_cut)
        write_trace(output, paths, merging.header, reading.watched(merging.records()))
    if merging.renamed:
        say(f"{merging.renamed:,} names were in two traces, and have a prefix in the later one")


@trace.command()
@_TRACE
@OUTPUT
@click.option("--seed", type=int, help="The same seed gives the same names.  [default: another one each time]")
@ALLOW_CUT
@common_options
def anonymise(path: Path, output: Path, seed: int | None, allow_cut: bool) -> None:
    """Give everything other names: namespaces, objects, labels, images. Selectors select what they did before.

    Keep the seed to yourself: who has it can find out whether a guessed name is right.
    """
    with explained(path) as reading:
        header, records = open_trace(path, allow_cut=allow_cut)
        chosen = fresh_seed() if seed is None else seed
        write_trace(output, [path], header, anonymised(reading.watched(records), chosen))


@trace.command()
@_TRACE
@OUTPUT
@common_options
def sort(path: Path, output: Path) -> None:
    """Put the records of a trace in the order of time."""
    with explained(path) as reading:
        header, records = read(path, known=any_kind, in_any_order=True)
        write_trace(output, [path], header, in_order(reading.watched(records)))
