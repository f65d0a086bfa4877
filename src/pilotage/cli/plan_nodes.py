"""`pilotage plan nodes`: how many nodes of which shapes a trace or manifests need."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from pilotage.cli.cluster_source import objects_of
from pilotage.cli.columns import columns
from pilotage.cli.errors import CommandError, ExitCode, bad_input
from pilotage.cli.logs import is_verbose
from pilotage.cli.options import common_options
from pilotage.cli.output import show, show_json
from pilotage.cli.scheduler_flags import SchedulerFlags, scheduler_flags
from pilotage.cli.simulation_view import SimulationProgress, span
from pilotage.clock import SystemClock
from pilotage.framework.errors import ProfileError
from pilotage.lab.plan.search import Counts, Mix, NodeSearch
from pilotage.lab.plan.trials import Goals, TrialOutcome, Trials
from pilotage.lab.plan.workloads import Manifests, TooManyPods
from pilotage.lab.replay import ReplaySettings
from pilotage.lab.results import ResultError
from pilotage.lab.trace.format import TraceError
from pilotage.model.durations import parse_duration

_FILE = click.Path(path_type=Path)
_MOST_SHAPES: Final = 8
_MOST_SHOWN: Final = 10
_EPILOG: Final = """\b
Examples:
  pilotage plan nodes monday.jsonl.gz --shape small.yaml --waiting-p99 30s
  helm template shop | pilotage plan nodes -f - --shape small.yaml --shape large.yaml --prices prices.yaml
"""


@click.command("nodes", epilog=_EPILOG)
@click.argument("trace", required=False, type=_FILE, metavar="[TRACE]")
@click.option("-f", "files", multiple=True, type=_FILE, help="Manifests instead of a trace; - for stdin.")
@click.option("--shape", "shapes", multiple=True, required=True, type=_FILE, metavar="F", help="Manifest of a Node.")
@click.option(
    "--prices", type=_FILE, metavar="F", help="YAML: what a node costs, by the name of its shape.  [default: 1]"
)
@click.option("--waiting-p99", default="", metavar="D", help="At most so long may all but 1 % of the pods wait.")
@click.option("--most-nodes", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="Of one shape.")
@click.option("--most-trials", type=click.IntRange(1, 100_000), default=200, show_default=True, help="Simulations.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="What chance is drawn from.")
@click.option("--until", default="", metavar="D", help="Play only so much of the trace, such as 6h.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@scheduler_flags
@common_options
def plan_nodes(
    trace: Path | None,
    files: tuple[Path, ...],
    shapes: tuple[Path, ...],
    prices: Path | None,
    waiting_p99: str,
    most_nodes: int,
    most_trials: int,
    seed: int,
    until: str,
    output: str,
    flags: SchedulerFlags,
) -> int:
    """Say how many nodes of which shapes are enough, the cheapest first.

    What is to run comes from a trace, or from manifests (-f): pods, and the pods of Deployments, StatefulSets, Jobs,
    DaemonSets and so on. Nodes of the trace or the manifests are left out; a shape is the manifest of a node. Numbers
    are tried out by simulation: all pods have to be placed, and wait no longer than --waiting-p99. Exits with 1 if
    nothing was found.
    """
    if (trace is None) == (not files):
        raise bad_input("give a TRACE, or manifests with -f")
    nodes = _shapes(shapes)
    names = [node["metadata"]["name"] for node in nodes]
    work = trace if trace is not None else _work(files)
    settings = ReplaySettings(seed=seed, until=_seconds("--until", until) or math.inf)
    trials = Trials(work, nodes, flags.options(), Goals(waiting_p99=_seconds("--waiting-p99", waiting_p99)), settings)
    found, search = _searched(trials, names, _prices(prices, names), most_nodes, most_trials)
    if output == "json":
        mixes = [{"cost": one.cost, "nodes": dict(zip(names, one.counts, strict=True)), **_built(one)} for one in found]
        show_json({"mixes": mixes, "trials": search.trials, "exhausted": search.is_exhausted}, indent=2)
    else:
        show(_text(found, names, search, most_nodes))
    return ExitCode.OK if found else ExitCode.FAILED


def _searched(
    trials: Trials, names: list[str], prices: list[float], most_nodes: int, most_trials: int
) -> tuple[list[Mix[TrialOutcome]], NodeSearch[TrialOutcome]]:
    if not is_verbose():
        logging.getLogger("pilotage").setLevel(logging.ERROR)

    def attempt(counts: Counts) -> TrialOutcome | None:
        progress = SimulationProgress(SystemClock())
        try:
            outcome = trials.attempt(counts, progress.show)
        finally:
            progress.finish()
        mix = ", ".join(f"{count:,} x {name}" for name, count in zip(names, counts, strict=True) if count)
        show(f"{mix}: {'enough' if outcome else 'not enough'}", err=True)
        return outcome

    search = NodeSearch(attempt, prices, most_nodes, most_trials)
    try:
        return search.run(), search
    except (TraceError, ResultError, ProfileError, TooManyPods) as error:
        raise bad_input(str(error)) from error
    except KeyboardInterrupt:
        raise CommandError(ExitCode.FAILED, "interrupted before anything was known for certain") from None


def _shapes(paths: tuple[Path, ...]) -> list[dict[str, Any]]:
    found = objects_of(paths)
    for obj in found:
        if obj.get("kind") != "Node":
            raise bad_input(
                f"--shape: {obj['metadata']['name']} is a {obj.get('kind')}; a shape is the manifest of a Node"
            )
        if not (obj.get("status") or {}).get("allocatable") and not (obj.get("status") or {}).get("capacity"):
            raise bad_input(f"--shape: node {obj['metadata']['name']} has no status.allocatable: nothing would fit")
    names = [obj["metadata"]["name"] for obj in found]
    if len(set(names)) < len(names):
        raise bad_input("--shape: two shapes have the same name")
    if not 1 <= len(found) <= _MOST_SHAPES:
        raise bad_input(f"--shape: {len(found)} nodes in these files; 1 to {_MOST_SHAPES} shapes are taken")
    return found


def _work(files: tuple[Path, ...]) -> Manifests:
    work = Manifests(objects_of(files))
    if not any(True for _ in work.templates()):
        raise bad_input("there is no pod in these files, and nothing that has a template of pods")
    return work


def _prices(path: Path | None, names: list[str]) -> list[float]:
    if path is None:
        return [1.0] * len(names)
    try:
        given = msgspec.yaml.decode(path.read_bytes(), type=dict[str, float])
    except (OSError, msgspec.DecodeError) as error:
        raise bad_input(f"{path}: prices are a number per shape, such as small: 0.04: {error}") from error
    missing = [name for name in names if name not in given]
    if missing:
        raise bad_input(f"{path}: there is no price for {', '.join(missing)}")
    if any(not 0 < given[name] < math.inf for name in names):
        raise bad_input(f"{path}: prices are above 0")
    return [given[name] for name in names]


def _seconds(option: str, text: str) -> float | None:
    try:
        return parse_duration(text) if text else None
    except ValueError as error:
        raise bad_input(f"{option}: {error}") from error


def _built(one: Mix[TrialOutcome]) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(one.outcome)
    return built


def _text(found: list[Mix[TrialOutcome]], names: list[str], search: NodeSearch[TrialOutcome], most_nodes: int) -> str:
    notes = [f"{search.trials:,} simulations"]
    if search.is_exhausted:
        notes.append("the search ended early: --most-trials allows more")
    if not found:
        if search.is_exhausted:
            return f"nothing was found yet ({'; '.join(notes)})"
        return f"nothing up to {most_nodes:,} nodes of each shape is enough ({'; '.join(notes)})"
    rows = [
        [
            f"{one.cost:,.6g}",
            *(str(count) for count in one.counts),
            span(one.outcome.waited.get("p99", 0.0)),
            *(f"{100 * one.outcome.used.get(name, 0.0):.0f} %" for name in ("cpu", "memory")),
        ]
        for one in found[:_MOST_SHOWN]
    ]
    table = columns(["COST", *names, "WAITING P99", "CPU", "MEMORY"], rows)
    return f"{table}\n\n{'; '.join(notes)}"
