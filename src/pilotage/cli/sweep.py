"""`pilotage sweep`: simulate many configurations, seeds and traces, on one machine or on many."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from pilotage.cli.errors import CommandError, ExitCode, bad_input, unreachable
from pilotage.cli.options import common_options
from pilotage.cli.output import show
from pilotage.cli.simulation_view import span
from pilotage.cli.status_line import StatusLine
from pilotage.clock import Clock, SystemClock
from pilotage.config.problems import ConfigError
from pilotage.lab.results import ResultError
from pilotage.lab.sweep.on_dask import DaskError, perform_on_dask
from pilotage.lab.sweep.processes import perform_in_processes
from pilotage.lab.sweep.run import is_done, options_of
from pilotage.lab.sweep.spec import Run, read_spec
from pilotage.lab.sweep.store import SweepStore, planned

_EPILOG = """\b
Examples:
  pilotage sweep spec.yaml -o sweep --jobs 4
  pilotage sweep spec.yaml -o sweep --shard 2/8
  pilotage sweep merge shard-0 shard-1 -o sweep
  pilotage sweep spec.yaml -o sweep --dask tcp://scheduler:8786
"""
_MERGE: Final = "merge"
_FILE = click.Path(path_type=Path)


@click.command(epilog=_EPILOG)
@click.argument("subject", nargs=-1, required=True, type=_FILE, metavar="SPEC | merge DIR...")
@click.option("-o", "--output", required=True, type=_FILE, metavar="DIR", help="Where the results are, or go.")
@click.option("--jobs", type=click.IntRange(1, 1024), metavar="N", help="Processes.  [default: as many as cores]")
@click.option("--shard", metavar="I/N", help="Compute only the I-th of N parts; I from 0 to N-1.")
@click.option("--dask", "address", metavar="ADDRESS", help="Compute on the Dask cluster of this scheduler.")
@click.option("--dry-run", is_flag=True, help="Say how many runs there are, and how many of them are to be computed.")
@common_options
def sweep(
    subject: tuple[Path, ...], output: Path, jobs: int | None, shard: str | None, address: str | None, dry_run: bool
) -> int:
    """Simulate every trace with every configuration, argument and seed of a spec.

    SPEC is a YAML file (see docs/commands/sweep.md). Results that are there already are not computed again, so that the
    same call goes on after Ctrl-C or a lost machine. A run that fails is reported and the others go on; it is tried
    again the next time. `merge` puts the results of shards together. Exits with 1 if runs failed or are missing.
    """
    try:
        if str(subject[0]) == _MERGE:
            if jobs or shard or address or dry_run:
                raise bad_input("merge computes nothing: it takes directories and -o only")
            return _merge(subject[1:], output)
        if len(subject) > 1:
            raise bad_input("one spec at a time (to put directories together: pilotage sweep merge DIR... -o DIR)")
        if address is not None and jobs is not None:
            raise bad_input("--jobs is for this machine; with --dask the workers of the cluster are used")
        runs = read_spec(subject[0])
        for run in {(run.config, run.plugins): run for run in runs}.values():
            options_of(run)
        return _sweep(runs, output, jobs or os.cpu_count() or 1, shard, address, dry_run)
    except ConfigError as error:
        raise bad_input(error.lines) from error
    except ResultError as error:
        raise bad_input(str(error)) from error
    except DaskError as error:
        raise unreachable(str(error)) from error


def _sweep(runs: list[Run], output: Path, jobs: int, shard: str | None, address: str | None, dry_run: bool) -> int:
    mine = list({run.digest: run for run in _part(runs, shard)}.values())
    todo = [run for run in mine if not is_done(output, run.digest)]
    part = f", {len(mine):,} of them in shard {shard}" if shard else ""
    show(f"{len(runs):,} runs{part}: {len(mine) - len(todo):,} are there, {len(todo):,} to compute", err=not dry_run)
    if dry_run:
        return ExitCode.OK
    store = SweepStore(output, planned(runs))
    progress = SweepProgress(len(todo), SystemClock())
    try:
        if address is not None:
            perform_on_dask(todo, output, address, progress.done)
        else:
            perform_in_processes(todo, output, jobs, progress.done)
    except KeyboardInterrupt:
        store.write_table()
        show(f"interrupted; {progress.made:,} results were made; the same command goes on", err=True)
        raise CommandError(ExitCode.FAILED) from None
    show(f"{store.write_table()}: {len(runs) - len(store.missing):,} of {len(runs):,} runs")
    for run, problem in progress.failed:
        show(f"failed: {run.label}, {run.trace}, seed {run.seed}: {problem}", err=True)
    return ExitCode.FAILED if progress.failed else ExitCode.OK


def _part(runs: list[Run], shard: str | None) -> list[Run]:
    if shard is None:
        return runs
    first, _, count = shard.partition("/")
    if not (first.isdecimal() and count.isdecimal() and len(shard) < 20 and int(first) < int(count)):
        raise bad_input(f"--shard: {shard} is no part such as 0/8, 1/8, up to 7/8")
    return runs[int(first) :: int(count)]


def _merge(directories: Sequence[Path], output: Path) -> int:
    if not directories:
        raise bad_input("merge: say which directories (pilotage sweep merge DIR... -o DIR)")
    runs = [run for directory in directories for run in SweepStore.read(directory)]
    if (output / "sweep.json").exists():
        runs = SweepStore.read(output) + runs
    store = SweepStore(output, runs)
    taken = sum(store.take(directory) for directory in directories)
    table, missing = store.write_table(), store.missing
    show(f"{table}: {taken:,} results were copied, {len(missing):,} are missing")
    for run in missing[:5]:
        show(f"missing: {run.label}, {run.trace}, seed {run.seed}", err=True)
    return ExitCode.FAILED if missing else ExitCode.OK


_LINE_WIDTH: Final = 110


class SweepProgress:
    """A line per run that ended, with the time left."""

    def __init__(self, total: int, clock: Clock) -> None:
        self._total = total
        self._clock = clock
        self._began = clock.monotonic()
        self._ended = 0
        self._line = StatusLine(clock)
        self.failed: list[tuple[Run, str]] = []

    @property
    def made(self) -> int:
        return self._ended - len(self.failed)

    def done(self, run: Run, problem: str | None) -> None:
        self._ended += 1
        if problem is not None:
            self.failed.append((run, problem))
        elapsed = self._clock.monotonic() - self._began
        left = span(elapsed / self._ended * (self._total - self._ended))
        failed = f"  {len(self.failed):,} failed" if self.failed else ""
        text = f"{self._ended:,}/{self._total:,}{failed}  {left} left  {run.label}, {run.trace}, seed {run.seed}"
        if not sys.stderr.isatty():
            show(text, err=True)
            return
        self._line.show(text[:_LINE_WIDTH])
        if self._ended == self._total:
            self._line.clear()
