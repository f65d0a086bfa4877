"""From a trace to a result: read, replay, write."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from pilotage import __version__
from pilotage.assembly import SchedulerOptions, watched_kinds
from pilotage.lab.checkpoint import CHECKPOINT, Checkpoint, read_checkpoint, write_checkpoint
from pilotage.lab.replay import Probe, Replay, ReplaySettings
from pilotage.lab.results import Result, ResultWriter
from pilotage.lab.trace.finishing import FoldedRecords, open_trace
from pilotage.lab.trace.format import Records, TraceError, TraceHeader, TraceRecord, is_built_in
from pilotage.model import DecodeError
from pilotage.simulate.memory_api import Json

_EVENTS_PER_LOOK = 256


class Progress(msgspec.Struct):
    """How far a simulation has come."""

    fraction: float
    """Of the trace that was read."""
    seconds: float
    """In the trace."""
    pods: int
    """Bound so far."""


OnProgress = Callable[[Progress], None]


class TraceInput(msgspec.Struct, frozen=True):
    """What is replayed."""

    trace: Path
    nodes: Sequence[Json] | None = None
    """Instead of those of the trace."""
    allow_cut: bool = False


def simulate(
    given: TraceInput,
    options: SchedulerOptions,
    settings: ReplaySettings,
    directory: Path,
    *,
    facts: Mapping[str, Any] | None = None,
    probe: Probe | None = None,
    on_progress: OnProgress | None = None,
    resume: bool = False,
) -> Result:
    """Replay a trace and leave the result in a directory; `facts` are written into its totals.

    TraceError if the trace cannot be read, ResultError if the result cannot be written, ProfileError if the scheduler
    cannot be made. What was computed is left there, also when it is interrupted or the trace turns out to be broken;
    with `resume`, the same simulation goes on from the last of its checkpoints.
    """
    kinds = watched_kinds(options)

    def is_known(api_version: str, kind: str) -> bool:
        return is_built_in(api_version, kind) or bool(kinds.of_manifest({"apiVersion": api_version, "kind": kind}))

    header, records = open_trace(given.trace, known=is_known, allow_cut=given.allow_cut)
    trace = {"source": header.source, "start": header.start, "sha256": _digest(given.trace)}
    inputs = {"version": __version__, "trace": trace["sha256"], **_chosen(settings), **(facts or {})}
    inputs = msgspec.json.decode(msgspec.json.encode(inputs))
    checkpoint = read_checkpoint(directory, inputs) if resume else None
    if checkpoint is None:
        (directory / CHECKPOINT).unlink(missing_ok=True)
    writer = ResultWriter(directory, None if checkpoint is None else checkpoint.result)
    legs = _Legs(given, options, settings, writer, probe)
    is_complete = False
    try:
        legs.play(header, _Watched(records, legs, on_progress), checkpoint, inputs)
        is_complete = True
    except DecodeError as error:
        raise TraceError(given.trace, records.line, f"put: {error}") from error
    finally:
        replay = legs.replay
        found = {
            "trace": trace,
            "seed": settings.seed,
            "ties": settings.ties,
            **(facts or {}),
            "seconds": round(replay.clock.monotonic(), 6),
            "events": replay.events,
            "gapSeconds": round(replay.gap_seconds, 6),
            "busyInstants": replay.busy_instants,
            "ignored": dict(sorted(replay.ignored.items())),
        }
        if replay.queued.left_out:
            found["podsOfQueuedJobs"] = replay.queued.left_out
        writer.close(found, complete=is_complete)
    (directory / CHECKPOINT).unlink(missing_ok=True)
    return Result(directory)


def _chosen(settings: ReplaySettings) -> dict[str, Any]:
    return {name: str(value) for name, value in structs.asdict(settings).items()}


class _Legs:
    """The legs of one simulation, one after the other: each but the first goes on from a checkpoint."""

    replay: Replay
    """The one that is played."""

    def __init__(
        self,
        given: TraceInput,
        options: SchedulerOptions,
        settings: ReplaySettings,
        writer: ResultWriter,
        probe: Probe | None,
    ) -> None:
        self._given = given
        self._options = options
        self._settings = settings
        self._writer = writer
        self._probe = probe

    def play(
        self, header: TraceHeader, records: _Watched, checkpoint: Checkpoint | None, inputs: dict[str, Any]
    ) -> None:
        rest: Iterator[TraceRecord] = records
        while True:
            replay = self.replay = Replay(header, self._options, self._settings, self._writer, self._probe)
            if checkpoint is not None:
                replay.restore(checkpoint.replay)
                records.pass_over(checkpoint.records)
                checkpoint = None
            asyncio.run(replay.run(rest, self._given.nodes))
            if replay.paused_at is None:
                return
            rest = chain([replay.paused_at], records)
            checkpoint = Checkpoint(inputs, records.number - 1, replay.saved(), self._writer.saved())
            write_checkpoint(self._writer.directory, checkpoint)
            # Nothing of the scheduler stays but what was written.
            checkpoint = read_checkpoint(self._writer.directory, inputs)
            assert checkpoint is not None, "it was written just now"
            checkpoint.records = 0
            del replay, self.replay
            gc.collect()


class _Watched(Iterator[TraceRecord]):
    """The records, and now and then a look at how far it is."""

    def __init__(self, records: Records | FoldedRecords, legs: _Legs, on_progress: OnProgress | None) -> None:
        self._records = records
        self._legs = legs
        self._on_progress = on_progress
        self.number = 0
        """How many were read."""

    def __next__(self) -> TraceRecord:
        record = next(self._records)
        if self._on_progress is not None and self.number % _EVENTS_PER_LOOK == 0:
            self._on_progress(Progress(self._records.fraction_read, record.at, self._legs.replay.bound))
        self.number += 1
        return record

    def pass_over(self, count: int) -> None:
        """So many were played before."""
        for _ in islice(self._records, count):
            self.number += 1


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        digest = sha256()
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()
