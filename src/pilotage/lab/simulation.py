"""From a trace to a result: read, replay, write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from pilotage.assembly import SchedulerOptions, watched_kinds
from pilotage.lab.replay import Probe, Replay, ReplaySettings
from pilotage.lab.results import Result, ResultWriter
from pilotage.lab.trace.finishing import FoldedRecords, open_trace
from pilotage.lab.trace.format import Records, TraceError, TraceRecord, is_built_in
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
) -> Result:
    """Replay a trace and leave the result in a directory; `facts` are written into its totals.

    TraceError if the trace cannot be read, ResultError if the result cannot be written, ProfileError if the scheduler
    cannot be made. What was computed is left there, also when it is interrupted or the trace turns out to be broken.
    """
    kinds = watched_kinds(options)

    def is_known(api_version: str, kind: str) -> bool:
        return is_built_in(api_version, kind) or bool(kinds.of_manifest({"apiVersion": api_version, "kind": kind}))

    header, records = open_trace(given.trace, known=is_known, allow_cut=given.allow_cut)
    writer = ResultWriter(directory)
    replay = Replay(header, options, settings, writer, probe)
    is_complete = False
    try:
        asyncio.run(replay.run(_watched(records, replay, on_progress), given.nodes))
        is_complete = True
    except DecodeError as error:
        raise TraceError(given.trace, records.line, f"put: {error}") from error
    finally:
        found = {
            "trace": {"source": header.source, "start": header.start, "sha256": _digest(given.trace)},
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
    return Result(directory)


def _watched(records: Records | FoldedRecords, replay: Replay, on_progress: OnProgress | None) -> Iterator[TraceRecord]:
    """The records, and now and then a look at how far it is."""
    for number, record in enumerate(records):
        if on_progress is not None and number % _EVENTS_PER_LOOK == 0:
            on_progress(Progress(records.fraction_read, record.at, replay.bound))
        yield record


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        digest = sha256()
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()
