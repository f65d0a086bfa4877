"""`pilotage compare`: simulations side by side, and what makes the difference."""

from __future__ import annotations

import logging
import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

from pilotage.cli.comparison_view import csv_text, difference_text, table
from pilotage.cli.errors import CommandError, ExitCode, bad_input
from pilotage.cli.logs import is_verbose
from pilotage.cli.options import common_options
from pilotage.cli.output import show, show_json
from pilotage.cli.scheduler_flags import SchedulerFlags
from pilotage.cli.simulation_view import SimulationProgress
from pilotage.clock import SystemClock
from pilotage.framework.errors import ProfileError
from pilotage.lab.comparison import Comparison, Group, as_document, compare, grouped
from pilotage.lab.divergence import Divergence, divergence
from pilotage.lab.prices import PriceError, Prices, read_prices
from pilotage.lab.replay import TIES, ReplaySettings
from pilotage.lab.report import write_report
from pilotage.lab.results import Result, ResultError
from pilotage.lab.significance import TEST
from pilotage.lab.simulation import TraceInput
from pilotage.lab.simulation import simulate as replay
from pilotage.lab.trace.format import TraceError
from pilotage.model.durations import parse_duration

_EPILOG = """\b
Examples:
  pilotage compare today.result packing.result --diff
  pilotage compare today-*.result packing-*.result --prices prices.yaml --report out.html
  pilotage compare --trace monday.jsonl.gz --config default --config packing.yaml --seeds 5
"""
_FILE = click.Path(path_type=Path)
_DEFAULT = "default"


@click.command("compare", epilog=_EPILOG)
@click.argument("results", nargs=-1, type=_FILE, metavar="[RESULT]...")
@click.option("--trace", type=_FILE, metavar="T", help="Simulate this trace with every --config and seed.")
@click.option(
    "--config", "configs", multiple=True, metavar="F", help='A configuration to run, or "default"; repeatable.'
)
@click.option("--plugin", "plugins", multiple=True, type=_FILE, metavar="F", help="A Python file with plugins.")
@click.option("--seeds", type=click.IntRange(1, 1000), default=5, show_default=True, help="Runs of each --config.")
@click.option("--ties", type=click.Choice(TIES), default="random", show_default=True, help="As for simulate.")
@click.option("--until", default="", metavar="D", help="End so long after the start of the trace, such as 6h.")
@click.option("--keep", type=_FILE, metavar="DIR", help="Keep the results of --trace here.  [default: not kept]")
@click.option("--prices", "price_file", type=_FILE, metavar="F", help="What nodes cost per hour.")
@click.option("--diff", "with_diff", is_flag=True, help="Which pods went elsewhere, and where the runs part.")
@click.option("--most", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Pods that --diff shows.")
@click.option("--report", "page", type=_FILE, metavar="F", help="Write a page with pictures.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
@common_options
def compare_results(
    results: tuple[Path, ...],
    trace: Path | None,
    configs: tuple[str, ...],
    plugins: tuple[Path, ...],
    seeds: int,
    ties: str,
    until: str,
    keep: Path | None,
    price_file: Path | None,
    with_diff: bool,
    most: int,
    page: Path | None,
    output: str,
) -> None:
    """Compare simulations: directories that simulate left, or configurations that are run now.

    Results that differ in their seed alone are a group; each group is compared with the first, and the table says how
    often chance alone makes such a difference. Exits with 2 if a file cannot be used.
    """
    _check(results, trace, configs, keep)
    try:
        prices = None if price_file is None else read_prices(price_file)
        with _groups(results, _Runs(trace, configs, plugins, seeds, ties, until, keep)) as groups:
            comparison, differences = _compared(groups, prices, most if with_diff else 0)
            _show(comparison, differences, output)
            if page is not None:
                write_report(page, comparison, differences)
    except (PriceError, ResultError, TraceError, ProfileError) as error:
        raise bad_input(str(error)) from error


def _check(results: Sequence[Path], trace: Path | None, configs: Sequence[str], keep: Path | None) -> None:
    if trace is None and (configs or keep):
        raise bad_input("--config and --keep go with --trace T: say what is to be simulated")
    if trace is not None and results:
        raise bad_input("give results, or --trace with configurations to run; not both")
    if trace is None and len(results) < 2:
        raise bad_input("give two results or more, or --trace T --config default --config F")
    if trace is not None and len(configs) < 2:
        raise bad_input('give two configurations or more; "default" is the one without a file')
    again = sorted({config for config in configs if configs.count(config) > 1})
    if again:
        raise bad_input(f"--config {again[0]} is given twice: there would be nothing to compare")


@dataclass(frozen=True)
class _Runs:
    """What is to be simulated."""

    trace: Path | None
    configs: tuple[str, ...]
    plugins: tuple[Path, ...]
    seeds: int
    ties: str
    until: str
    keep: Path | None


@contextmanager
def _groups(results: Sequence[Path], runs: _Runs) -> Iterator[list[Group]]:
    if runs.trace is None:
        yield grouped([Result(path) for path in results])
    elif runs.keep is not None:
        yield _simulated(runs.trace, runs, runs.keep)
    else:
        with tempfile.TemporaryDirectory(prefix="pilotage-compare-") as folder:
            yield _simulated(runs.trace, runs, Path(folder))


def _simulated(trace: Path, runs: _Runs, folder: Path) -> list[Group]:
    """A group per configuration."""
    if not is_verbose():
        logging.getLogger("pilotage").setLevel(logging.ERROR)
    until = _seconds(runs.until) if runs.until else math.inf
    names = _names(runs.configs)
    schedulers = [
        SchedulerFlags(None if config == _DEFAULT else Path(config), runs.plugins).options() for config in runs.configs
    ]
    groups = []
    for name, config, options in zip(names, runs.configs, schedulers, strict=True):
        found = []
        for seed in range(runs.seeds):
            progress = SimulationProgress(SystemClock())
            settings = ReplaySettings(seed=seed, ties=runs.ties, until=until)
            try:
                facts: dict[str, Any] = {"inputs": {"config": config, "until": runs.until}}
                directory = folder / f"{name}-{seed}.result"
                found.append(
                    replay(TraceInput(trace), options, settings, directory, facts=facts, on_progress=progress.show)
                )
            except KeyboardInterrupt:
                kept = f"; what was computed is in {folder}" if runs.keep else ""
                show(f"interrupted at {name}, seed {seed}{kept}", err=True)
                raise CommandError(ExitCode.FAILED) from None
            finally:
                progress.finish()
        groups.append(Group(name, found))
    return groups


def _names(configs: Sequence[str]) -> list[str]:
    """What the configurations are called: their files' names, with a number if that is not enough."""
    stems = [Path(config).stem for config in configs]
    return [stem if stems.count(stem) == 1 else f"{stem}-{at}" for at, stem in enumerate(stems, 1)]


def _seconds(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise bad_input(f"--until: {error}") from error
    if seconds <= 0:
        raise bad_input(f"--until: {text} is not longer than nothing")
    return seconds


def _compared(
    groups: Sequence[Group], prices: Prices | None, most: int
) -> tuple[Comparison, list[tuple[str, Divergence]]]:
    comparison = compare(groups, prices)
    if not most:
        return comparison, []
    first = groups[0]
    others = [(group.name, group.results[0]) for group in groups[1:]]
    if not others:
        # One group alone: its seeds are compared.
        others = [(f"seed {result.totals['seed']}", result) for result in first.results[1:2]]
    return comparison, [
        (f"{first.name}, {name}", divergence(first.results[0], other, most=most)) for name, other in others
    ]


def _show(comparison: Comparison, differences: Sequence[tuple[str, Divergence]], output: str) -> None:
    if output == "json":
        found = {name: msgspec.to_builtins(one) for name, one in differences}
        show_json({"test": TEST, **as_document(comparison), **({"pods": found} if found else {})}, indent=2)
    elif output == "csv":
        show(csv_text(comparison).rstrip("\n"))
    else:
        show(table(comparison))
        for name, one in differences:
            show(difference_text(name, one))
