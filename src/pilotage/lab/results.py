"""What a simulation leaves: a directory that can be read as columns.

    decisions.jsonl   one line per pod, in the order in which they ended; those who were there to the last come last
    nodes.jsonl       one line per node: from when to when it was there, and what it offered
    workloads.jsonl   one line per workload that was queued; not there if there is none
    series.csv        utilisation, queues and stranded capacity, at equal steps of time
    rejections.csv      at the same steps, why attempts were in vain and what pods wait for; if anything was rejected
    totals.json       everything in a few numbers, and what they were made from

The same inputs and the same seed give the same bytes. A simulation that was interrupted leaves what it had; its totals
say that they are not complete.
"""

from __future__ import annotations

import csv
import os
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from pilotage.lab.lives import NodeStory, PodStory
from pilotage.lab.measures import RejectedFor
from pilotage.lab.queued_workloads import WorkloadStory

VERSION: Final = 1
DECISIONS, NODES, SERIES, TOTALS = "decisions.jsonl", "nodes.jsonl", "series.csv", "totals.json"
WORKLOADS, REJECTIONS = "workloads.jsonl", "rejections.csv"
_FILES: Final = (DECISIONS, NODES, SERIES, WORKLOADS, REJECTIONS)
_BUFFER: Final = 2**20
_COUNTS: Final = (
    *(
        "pods",
        "bound",
        "attempts",
        "ended",
        "running",
        "waiting",
        "evicted",
        "lost",
        "stopped",
        "deleted",
        "replacements",
    ),
)
_WORKLOAD_COUNTS: Final = ("workloads", "admitted", "finished", "failed", "running", "waiting", "deleted", "evictions")


class ResultError(Exception):
    """A directory that holds no result, or none that this program can read."""


class SavedResult(msgspec.Struct):
    """What is needed to go on with a result that was begun."""

    sizes: dict[str, int]
    """In bytes, of the files; what is behind that is thrown away."""
    samples: int
    sums: dict[str, float]
    most: dict[str, float]


class ResultWriter:
    """Writes a result as it comes about."""

    def __init__(self, directory: Path, saved: SavedResult | None = None) -> None:
        """ResultError if the directory cannot be made. With `saved`, what was written until then stays."""
        self.directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
            for name in (TOTALS, *_FILES):
                self._cut(name, 0 if saved is None else saved.sizes.get(name, 0))
            self._decisions = (directory / DECISIONS).open("ab", _BUFFER)
            self._nodes = (directory / NODES).open("ab", _BUFFER)
            self._series = (directory / SERIES).open("a", _BUFFER, newline="")
        except OSError as error:
            raise ResultError(f"{directory}: cannot be written: {error.strerror or error}") from error
        self._encode = msgspec.json.Encoder().encode
        self._rows = csv.writer(self._series, lineterminator="\n")
        self._has_header = False
        self._samples = 0
        self._sums: Counter[str] = Counter()
        self._most: dict[str, float] = {}
        self._waits = array("d")
        self._counts: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._rejections: IO[str] | None = None
        self._workloads: IO[bytes] | None = None
        self._workload_counts: Counter[str] = Counter()
        self._workload_waits = array("d")
        if saved is not None:
            self._go_on(saved)

    def _cut(self, name: str, size: int) -> None:
        """Leave so much of a file; without anything in it, it goes."""
        path = self.directory / name
        if size:
            os.truncate(path, size)
        else:
            path.unlink(missing_ok=True)

    def _go_on(self, saved: SavedResult) -> None:
        self._has_header, self._samples = saved.samples > 0, saved.samples
        self._sums, self._most = Counter(saved.sums), saved.most
        if REJECTIONS in saved.sizes:
            self._rejections = (self.directory / REJECTIONS).open("a", _BUFFER, newline="")
        decode = msgspec.json.Decoder(PodStory).decode
        with (self.directory / DECISIONS).open("rb") as lines:
            for line in lines:
                self._count(decode(line))

    def saved(self) -> SavedResult:
        """Write out what is still in memory, and say what is needed to go on from here."""
        opened: dict[str, IO[Any] | None] = {DECISIONS: self._decisions, NODES: self._nodes, SERIES: self._series}
        opened[REJECTIONS] = self._rejections
        for file in filter(None, opened.values()):
            file.flush()
        sizes = {name: (self.directory / name).stat().st_size for name, file in opened.items() if file is not None}
        return SavedResult(sizes, self._samples, dict(self._sums), dict(self._most))

    def decision(self, story: PodStory) -> None:
        self._decisions.write(self._encode(story) + b"\n")
        self._count(story)

    def _count(self, story: PodStory) -> None:
        counts = self._counts
        counts["pods"] += 1
        counts["attempts"] += story.attempts
        counts[story.end or ("running" if story.bound is not None else "waiting")] += 1
        if story.replaces is not None:
            counts["replacements"] += 1
        if story.bound is not None:
            counts["bound"] += 1
            self._waits.append(story.bound - story.arrived)
        elif story.reason is not None:
            self._reasons[story.reason] += 1

    def node(self, story: NodeStory) -> None:
        self._nodes.write(self._encode(story) + b"\n")

    def workload(self, story: WorkloadStory) -> None:
        if self._workloads is None:
            self._workloads = (self.directory / WORKLOADS).open("wb", _BUFFER)
        self._workloads.write(self._encode(story) + b"\n")
        counts = self._workload_counts
        counts["workloads"] += 1
        counts["evictions"] += story.evictions
        counts[story.end or ("running" if story.admitted is not None else "waiting")] += 1
        if story.admitted is not None:
            counts["admitted"] += 1
            self._workload_waits.append(story.admitted - story.arrived)

    def sample(self, time: float, values: Mapping[str, float], rejections: Sequence[RejectedFor] = ()) -> None:
        if rejections:
            self._reject(time, rejections)
        if not self._has_header:
            self._has_header = True
            self._rows.writerow(["time", *values])
        self._rows.writerow([_short(time), *map(_short, values.values())])
        self._samples += 1
        for name, value in values.items():
            self._sums[name] += value  # type: ignore[assignment]
            if value > self._most.get(name, -np.inf):
                self._most[name] = value

    def _reject(self, time: float, rejections: Sequence[RejectedFor]) -> None:
        if self._rejections is None:
            self._rejections = (self.directory / REJECTIONS).open("w", _BUFFER, newline="")
            csv.writer(self._rejections, lineterminator="\n").writerow(["time", *RejectedFor._fields])
        csv.writer(self._rejections, lineterminator="\n").writerows([_short(time), *row] for row in rejections)

    def close(self, facts: Mapping[str, Any], *, complete: bool) -> dict[str, Any]:
        """Write the totals; returns them."""
        self._decisions.close()
        self._nodes.close()
        self._series.close()
        if self._rejections is not None:
            self._rejections.close()
        if self._workloads is not None:
            self._workloads.close()
            counts = {name: self._workload_counts[name] for name in _WORKLOAD_COUNTS}
            facts = {**facts, "workloads": {**counts, "waited": waiting(np.array(self._workload_waits))}}
        totals: dict[str, Any] = {
            "pilotageResult": VERSION,
            "complete": complete,
            **facts,
            "pods": {name: self._counts[name] for name in _COUNTS},
            "waited": waiting(np.frombuffer(self._waits) if self._waits else np.zeros(0)),
            "mean": {name: _rounded(total / self._samples) for name, total in self._sums.items()},
            "most": {name: _rounded(value) for name, value in self._most.items()},
            "reasons": dict(sorted(self._reasons.items(), key=lambda one: (-one[1], one[0]))[:20]),
        }
        body = msgspec.json.format(msgspec.json.encode(totals), indent=2)
        (self.directory / TOTALS).write_bytes(body + b"\n")
        return totals


def waiting(waits: NDArray[np.float64]) -> dict[str, float]:
    """Seconds from arrival to binding, of the pods that were bound."""
    if not len(waits):
        return {}
    p50, p90, p99 = np.percentile(waits, (50, 90, 99), method="inverted_cdf").tolist()
    found = {"mean": float(waits.mean()), "p50": p50, "p90": p90, "p99": p99, "max": float(waits.max())}
    return {name: _rounded(value) for name, value in found.items()}


def _rounded(value: float) -> float:
    return round(value, 6)


def _short(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")


class Result:
    """A result, as columns.

    result = Result("monday.result")
    waited = result.pods["bound"] - result.pods["arrived"]      # NaN where a pod was never bound
    result.series["used_cpu"].max()
    """

    def __init__(self, directory: Path | str) -> None:
        """ResultError if there is none."""
        self.directory = Path(directory)
        try:
            totals = msgspec.json.decode((self.directory / TOTALS).read_bytes())
        except OSError as error:
            raise ResultError(f"{self.directory}: no result of a simulation: no {TOTALS}") from error
        except msgspec.DecodeError as error:
            raise ResultError(f"{self.directory / TOTALS}: {error}") from error
        version = totals.get("pilotageResult") if isinstance(totals, dict) else None
        if version != VERSION:
            raise ResultError(f"{self.directory / TOTALS}: is of version {version}; this program reads {VERSION}")
        self.totals: dict[str, Any] = totals

    @cached_property
    def pods(self) -> dict[str, NDArray[Any]]:
        """A column per field of a decision, and of each resource that is requested: `requests_cpu` and so on.

        NaN or "" where there is nothing.
        """
        lines = (self.directory / DECISIONS).read_bytes()
        stories: Sequence[PodStory] = msgspec.json.Decoder(PodStory).decode_lines(lines)
        columns: dict[str, NDArray[Any]] = {}
        for name in (name for name in PodStory.__struct_fields__ if name != "requests"):
            values = [getattr(story, name) for story in stories]
            if name in ("priority", "attempts"):
                columns[name] = np.array(values, dtype=np.int64)
            elif name in ("arrived", "bound", "ended"):
                columns[name] = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
            else:
                columns[name] = np.array([value or "" for value in values], dtype=np.str_)
        for resource in sorted({resource for story in stories for resource in story.requests}):
            amounts = [story.requests.get(resource, 0) for story in stories]
            columns[f"requests_{resource}"] = np.array(amounts, dtype=np.float64)
        return columns

    @cached_property
    def nodes(self) -> Sequence[NodeStory]:
        """Every node that was there, in the order of their names and times."""
        lines = (self.directory / NODES).read_bytes()
        found: Sequence[NodeStory] = msgspec.json.Decoder(NodeStory).decode_lines(lines)
        return sorted(found, key=lambda one: (one.node, one.since))

    @cached_property
    def workloads(self) -> Sequence[WorkloadStory]:
        """Every workload that was queued, in the order in which they ended; empty if none was."""
        path = self.directory / WORKLOADS
        return msgspec.json.Decoder(WorkloadStory).decode_lines(path.read_bytes()) if path.exists() else []

    @cached_property
    def series(self) -> dict[str, NDArray[np.float64]]:
        """A column per measure; `time` is seconds since the start."""
        with (self.directory / SERIES).open(newline="") as file:
            lines = list(csv.reader(file))
        header, rows = (lines[0], lines[1:]) if lines else ([], [])
        table = np.array(rows, dtype=np.float64).reshape(len(rows), len(header))
        return {name: table[:, at] for at, name in enumerate(header)}

    @cached_property
    def rejections(self) -> dict[str, NDArray[Any]]:
        """Columns `time`, `reason`, `attempts` (in vain since the sample before) and `waiting` (pods, from then on)."""
        path = self.directory / REJECTIONS
        if not path.exists():
            rows: list[list[str]] = []
        else:
            with path.open(newline="") as file:
                rows = list(csv.reader(file))[1:]
        types = {"time": np.float64, "reason": np.str_, "attempts": np.int64, "waiting": np.int64}
        columns = list(zip(*rows, strict=True)) or [()] * len(types)
        return {name: np.array(column, dtype=kind) for (name, kind), column in zip(types.items(), columns, strict=True)}
