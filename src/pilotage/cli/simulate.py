"""`pilotage simulate`: replay a trace of a cluster in virtual time, and leave a result."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import click
import msgspec

from pilotage.assembly import SchedulerOptions
from pilotage.cli.errors import CommandError, ExitCode, bad_input
from pilotage.cli.logs import is_verbose
from pilotage.cli.options import common_options
from pilotage.cli.output import show, show_json
from pilotage.cli.queueing_flags import queueing_configuration
from pilotage.cli.scheduler_flags import SchedulerFlags, scheduler_flags
from pilotage.cli.simulation_view import SimulationProgress, summary
from pilotage.clock import SystemClock
from pilotage.framework.errors import ProfileError
from pilotage.lab.case import (
    INSTANT,
    Case,
    CaseError,
    Decision,
    changed_plugins,
    check_plugins,
    decision_about,
    decision_text,
    is_case,
    opened,
)
from pilotage.lab.checkpoint import CHECKPOINT
from pilotage.lab.comparison import Group, compare
from pilotage.lab.replay import TIES, ReplaySettings
from pilotage.lab.report import write_report
from pilotage.lab.results import SERIES, Result, ResultError
from pilotage.lab.simulation import TraceInput
from pilotage.lab.simulation import simulate as replay
from pilotage.lab.trace.format import TraceError
from pilotage.model.durations import parse_duration
from pilotage.sandbox.manifests import ManifestError, read_manifests

_EPILOG = """\b
Examples:
  pilotage simulate monday.jsonl.gz -o monday.result
  pilotage simulate monday.jsonl.gz --config packing.yaml --seed 3 --until 6h
  pilotage simulate monday.jsonl.gz --nodes twenty-nodes.yaml --ties random
"""
_FILE = click.Path(path_type=Path)


@click.command(epilog=_EPILOG)
@click.argument("trace", type=_FILE, metavar="TRACE")
@scheduler_flags
@click.option("-o", "--output", type=_FILE, metavar="DIR", help="Where the result goes.  [default: NAME.result]")
@click.option("--nodes", type=_FILE, metavar="F", help="Manifests of nodes, instead of those of the trace.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="What chance is drawn from.")
@click.option("--until", default="", metavar="D", help="End so long after the start of the trace, such as 6h.")
@click.option("--every", default="1m", show_default=True, metavar="D", help="Time between two rows of the series.")
@click.option(
    "--ties",
    type=click.Choice(TIES),
    default=TIES[0],
    show_default=True,
    help="Of equally good nodes take the scheduler's choice, a random one, or the first in an order drawn once.",
)
@click.option(
    "--evicted",
    type=click.Choice(["restart", "resume"]),
    default="restart",
    show_default=True,
    help="What an evicted pod's replacement runs for: all of its lifetime, or what was left.",
)
@click.option("--queueing-config", type=_FILE, metavar="F", help="Kueue's Configuration for workloads that queue.")
@click.option("--allow-cut", is_flag=True, help="Take the whole lines of a trace that is cut off.")
@click.option("--resume", is_flag=True, help="Keep a complete result of the same inputs; go on with an unfinished one.")
@click.option("--report", "page", type=_FILE, metavar="F", help="Write a page with pictures.")
@click.option("--json", "as_json", is_flag=True, help="Show the totals as JSON.")
@common_options
def simulate(
    trace: Path,
    flags: SchedulerFlags,
    output: Path | None,
    nodes: Path | None,
    seed: int,
    until: str,
    every: str,
    ties: str,
    evicted: str,
    queueing_config: Path | None,
    allow_cut: bool,
    resume: bool,
    page: Path | None,
    as_json: bool,
) -> None:
    """Replay a trace in virtual time with the real scheduler.

    The trace says what comes and how long it runs; queue, placement, waiting and eviction are the scheduler's. Leaves a
    directory with what became of every pod (decisions.jsonl), a series over time (series.csv) and totals (totals.json):
    the same bytes for the same inputs and seed. Ctrl-C leaves what was computed. Exits with 2 if a file cannot be used.
    """
    end = INSTANT if is_case(trace) else math.inf
    settings = ReplaySettings(
        seed=seed,
        until=_seconds("--until", until) if until else end,
        every=_seconds("--every", every),
        ties=ties,
        resumes_evicted=evicted == "resume",
    )
    name = trace.name.removesuffix(".gz").removesuffix(".tgz").removesuffix(".jsonl").removesuffix(".tar")
    directory = output or trace.with_name(f"{name}.result")
    others = None if nodes is None else _manifests(nodes)
    with _opened(trace, flags) as (trace, flags, case):
        options = flags.options()
        inputs = _inputs(flags, options, nodes, until, every, evicted)
        if queueing_config is not None:
            options = replace(options, queueing=queueing_configuration(queueing_config))
            inputs["queueing"] = _digest(queueing_config)
        _check_plugins(case, options)
        result = _usable(directory, resume=resume, inputs=inputs, settings=settings, trace=trace)
        if result is None:
            given = TraceInput(trace, others, allow_cut)
            result = _simulated(given, options, settings, directory, inputs, resume=resume)
    if page is not None:
        _write_page(page, result)
    if as_json:
        show_json(result.totals, indent=2)
    else:
        show(summary(result))
        if case is not None:
            show(_case_text(case, decision_about(case.pod, result)))


@contextmanager
def _opened(trace: Path, flags: SchedulerFlags) -> Iterator[tuple[Path, SchedulerFlags, Case | None]]:
    """The trace, and of a case its configuration too, unless the command line has another one."""
    if not is_case(trace):
        yield trace, flags, None
        return
    try:
        with opened(trace) as one:
            config = flags.config or one.config
            gates = flags.feature_gates or one.case.feature_gates
            yield one.trace, msgspec.structs.replace(flags, config=config, feature_gates=gates), one.case
    except CaseError as error:
        raise bad_input(str(error)) from error


def _check_plugins(case: Case | None, options: SchedulerOptions) -> None:
    if case is not None:
        check_plugins(case, options)
        for name in changed_plugins(case, options):
            show(f"{name} is not the code that took part in the decision", err=True)


def _case_text(case: Case, now: Decision | None) -> str:
    before, text = decision_text(case.decision), "nothing was decided" if now is None else decision_text(now)
    if now == case.decision:
        return f"\n{case.pod}: {text}, as when the case was made"
    return f"\n{case.pod}: {text}; when the case was made: {before}"


def _simulated(
    given: TraceInput,
    options: SchedulerOptions,
    settings: ReplaySettings,
    directory: Path,
    inputs: dict[str, Any],
    *,
    resume: bool,
) -> Result:
    if not is_verbose():
        # What the scheduler would log of pods that wait is in the result.
        logging.getLogger("pilotage").setLevel(logging.ERROR)
    progress = SimulationProgress(SystemClock())
    try:
        facts = {"inputs": inputs}
        result = replay(given, options, settings, directory, facts=facts, on_progress=progress.show, resume=resume)
    except (TraceError, ResultError, ProfileError) as error:
        raise bad_input(str(error)) from error
    except KeyboardInterrupt:
        progress.finish()
        way_on = "goes on with it" if (directory / CHECKPOINT).exists() else "begins anew, as it was not far"
        show(f"interrupted; what was computed is in {directory}; --resume {way_on}", err=True)
        raise CommandError(ExitCode.FAILED) from None
    progress.finish()
    return result


def _write_page(page: Path, result: Result) -> None:
    try:
        write_report(page, compare([Group(result.directory.name.removesuffix(".result"), [result])]))
    except ResultError as error:
        raise bad_input(str(error)) from error


def _seconds(option: str, text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise bad_input(f"{option}: {error}") from error
    if seconds <= 0:
        raise bad_input(f"{option}: {text} is not longer than nothing")
    return seconds


def _manifests(path: Path) -> list[dict[str, Any]]:
    try:
        found = [manifest.obj for manifest in read_manifests([path])]
    except ManifestError as error:
        raise bad_input(str(error)) from error
    if not any(obj.get("kind") == "Node" for obj in found):
        raise bad_input(f"{path}: there is no Node in it")
    return found


def _inputs(
    flags: SchedulerFlags, options: SchedulerOptions, nodes: Path | None, until: str, every: str, evicted: str
) -> dict[str, Any]:
    """What a result was made from, beside the trace and the seed."""
    return {
        "config": _digest(flags.config),
        "plugins": {one.name: one.sha256 for one in options.origins},
        "featureGates": flags.feature_gates,
        "maxWait": flags.max_wait,
        "nodes": _digest(nodes),
        "until": until,
        "every": every,
        "evicted": evicted,
    }


def _digest(path: Path | None) -> str:
    return "" if path is None else sha256(path.read_bytes()).hexdigest()


def _usable(
    directory: Path, *, resume: bool, inputs: dict[str, Any], settings: ReplaySettings, trace: Path
) -> Result | None:
    """The result that is there already, if it is to be kept; CommandError if something else is in the way."""
    try:
        known = Result(directory)
    except ResultError:
        if directory.exists() and any(directory.iterdir()) and not (directory / SERIES).exists():
            raise bad_input(f"{directory}: is not empty, and holds no result; choose another with -o") from None
        return None
    totals = known.totals
    if not resume or not totals["complete"]:
        return None
    same = {"seed": settings.seed, "ties": settings.ties, "inputs": inputs}
    differ = [name for name, value in same.items() if totals.get(name) != value]
    if totals["trace"]["sha256"] != _digest(trace):
        differ.append("trace")
    if differ:
        text = f"{directory}: --resume: the result there has another {' and '.join(differ)}; choose another with -o"
        raise bad_input(text)
    return known
