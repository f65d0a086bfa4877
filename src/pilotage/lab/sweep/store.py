"""The directory of a sweep: its runs, and a table of what came of them.

    DIR/sweep.json    the runs, in the order of the spec
    DIR/runs.csv      a line per run: what it was, and its most important numbers
    DIR/results/      see `pilotage.lab.sweep.run`

The table is made of the results alone, so that it does not matter where, in which order or how often interrupted they
were computed.
"""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from pilotage.lab.results import Result, ResultError
from pilotage.lab.sweep.run import is_done, result_path
from pilotage.lab.sweep.spec import Run

RUNS, TABLE = "sweep.json", "runs.csv"
_COUNTS: Final = ("pods", "bound", "waiting", "evicted", "lost")
_WAITS: Final = ("mean", "p50", "p90", "p99", "max")
_MEANS: Final = ("used_cpu", "used_memory", "stranded_cpu", "stranded_memory", "nodes_used")


class PlannedRun(msgspec.Struct, frozen=True):
    """A run as the directory remembers it."""

    digest: str
    label: str
    trace: str
    seed: int
    ties: str


def planned(runs: Iterable[Run]) -> list[PlannedRun]:
    return [PlannedRun(run.digest, run.label, run.trace, run.seed, run.ties) for run in runs]


class SweepStore:
    """A directory of results. Whoever computes puts results in; this writes all else."""

    def __init__(self, directory: Path, runs: Sequence[PlannedRun]) -> None:
        """ResultError if the directory cannot be written, or is that of something else."""
        self.directory = directory
        self._runs = list({run.digest: run for run in runs}.values())
        try:
            if directory.exists() and any(directory.iterdir()) and not (directory / RUNS).exists():
                raise ResultError(f"{directory}: is not empty, and holds no sweep; choose another with -o")
            (directory / "results").mkdir(parents=True, exist_ok=True)
            _write(directory / RUNS, msgspec.json.format(msgspec.json.encode(self._runs), indent=1) + b"\n")
        except OSError as error:
            raise ResultError(f"{directory}: cannot be written: {error.strerror or error}") from error

    @classmethod
    def read(cls, directory: Path) -> list[PlannedRun]:
        """The runs of a directory; ResultError if it is none of a sweep."""
        try:
            return msgspec.json.decode((directory / RUNS).read_bytes(), type=list[PlannedRun])
        except OSError as error:
            raise ResultError(f"{directory}: no sweep: no {RUNS}") from error
        except msgspec.DecodeError as error:
            raise ResultError(f"{directory / RUNS}: {error}") from error

    @property
    def missing(self) -> list[PlannedRun]:
        return [run for run in self._runs if not is_done(self.directory, run.digest)]

    def take(self, other: Path) -> int:
        """Copy the results that are not here yet; returns how many."""
        taken = 0
        for run in self.missing:
            if is_done(other, run.digest):
                target = result_path(self.directory, run.digest)
                partial = target.with_name(f".{run.digest}.copy.{os.getpid()}")
                shutil.copytree(result_path(other, run.digest), partial)
                partial.replace(target)
                taken += 1
        return taken

    def write_table(self) -> Path:
        """The numbers of all results that are there."""
        path = self.directory / TABLE
        partial = path.with_name(f".{TABLE}.{os.getpid()}")
        with partial.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            rows = [run for run in self._runs if is_done(self.directory, run.digest)]
            writer.writerow([*PlannedRun.__struct_fields__, *_COUNTS, *(f"waited_{name}" for name in _WAITS), *_MEANS])
            writer.writerows(self._rows(rows))
        partial.replace(path)
        return path

    def _rows(self, runs: Iterable[PlannedRun]) -> Iterator[list[Any]]:
        for run in runs:
            totals = Result(result_path(self.directory, run.digest)).totals
            yield [
                *msgspec.structs.astuple(run),
                *(totals["pods"][name] for name in _COUNTS),
                *(totals["waited"].get(name, "") for name in _WAITS),
                *(totals["mean"].get(name, "") for name in _MEANS),
            ]


def _write(path: Path, content: bytes) -> None:
    """As a whole: shards may do it at the same time, with the same content."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(content)
    partial.replace(path)
