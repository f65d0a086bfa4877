"""Points at which a simulation can go on after it was interrupted.

A scheduler has more state than anybody would write down: caches, orders, indexes of plugins. So nobody tries. At some
moments in which little goes on, what has to survive is written into a file (objects, who waits since when and for what,
chance, sums), and the simulation goes on with a new scheduler that is made of that file alone, as after a restart.
All simulations do that, interrupted or not. So one that is resumed is the same as one that never stopped, to the byte,
whatever of the old scheduler was forgotten.

When: after `ReplaySettings.leg` events and attempts, but not before four times as many as there are pods and nodes, so
that it costs a few percent; and not while anybody is bound, evicted or nominated, or anything sleeps.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from pilotage.lab.lives import LivePod, NodeStory, PodEnd
from pilotage.lab.measures import Shape
from pilotage.lab.results import ResultError, SavedResult
from pilotage.queue.sub_queues import ExtenderRejection, SubQueue
from pilotage.simulate.memory_api import Key

CHECKPOINT: Final = "checkpoint"
_VERSION: Final = 1


class SavedEntry(msgspec.Struct, array_like=True):
    """A pod that waits: the fields of `QueuedPodInfo` of the same names."""

    timestamp: float
    home: SubQueue
    attempts: int
    unschedulable_count: int
    consecutive_errors: int
    overruns: int
    first_attempt_at: float | None
    rejectors: frozenset[str]
    pending: frozenset[str]
    gated_by: str
    gate_message: str
    backoff_until: float
    must_back_off: bool
    was_flushed: bool
    flushed_at: float
    message: str
    rejected_nodes: tuple[ExtenderRejection, ...]


class SavedChance(msgspec.Struct, frozen=True):
    """Where random numbers and other rotations have come to."""

    rng: tuple[int, tuple[int, ...], float | None]
    ties: tuple[int, tuple[int, ...], float | None]
    drawn: dict[str, float]
    """Of nodes, if ties are broken in an order."""
    walk: int


class SavedCluster(msgspec.Struct):
    """What `LiveCluster` holds."""

    version: int
    bindings: int
    objects: list[bytes]
    pods: list[bytes]


class SavedLives(msgspec.Struct):
    """What `Lives` and `NodeLives` hold."""

    pods: dict[str, LivePod]
    due: list[PodEnd]
    order: int
    nodes: dict[str, NodeStory]


class SavedShapes(msgspec.Struct):
    """What `Shapes` has counted and chosen."""

    counts: list[tuple[Shape, int]]
    chosen_at: int
    chosen: list[tuple[Shape, float]]


class SavedRejections(msgspec.Struct):
    """What `RejectionCounts` has counted."""

    reasons: dict[str, str]
    waiting: dict[str, int]
    attempts: dict[str, int]
    reported: dict[str, int]


class SavedMeasures(msgspec.Struct):
    """What has been counted so far, but is not in a file."""

    samples: int
    events: int
    bound: int
    gap_seconds: float
    busy_instants: int
    ignored: dict[str, int]
    resources: list[str] | None
    shapes: SavedShapes
    rejections: SavedRejections


class SavedReplay(msgspec.Struct):
    """A simulation at one instant."""

    now: float
    last: float
    second: int
    chance: SavedChance
    cluster: SavedCluster
    lives: SavedLives
    heirs: list[tuple[Key, Key]]
    waiting: dict[str, SavedEntry]
    """By UID."""
    groups: dict[str, SavedEntry]
    measures: SavedMeasures


class Checkpoint(msgspec.Struct):
    """What the file holds."""

    inputs: dict[str, Any]
    """What was simulated, and how."""
    records: int
    """How many of the trace were played."""
    replay: SavedReplay
    result: SavedResult


def write_checkpoint(directory: Path, checkpoint: Checkpoint) -> None:
    """Put it into the place of the one before; ResultError if it cannot be written."""
    path = directory / CHECKPOINT
    beside = path.with_suffix(".new")
    try:
        beside.write_bytes(bytes([_VERSION]) + zlib.compress(msgspec.msgpack.encode(checkpoint), 1))
        beside.replace(path)
    except OSError as error:
        raise ResultError(f"{path}: cannot be written: {error.strerror or error}") from error


def read_checkpoint(directory: Path, inputs: Mapping[str, Any]) -> Checkpoint | None:
    """The point at which a simulation of these inputs can go on; None if there is none.

    ResultError if there is one of other inputs.
    """
    path = directory / CHECKPOINT
    try:
        content = path.read_bytes()
    except OSError:
        return None
    with suppress(zlib.error, msgspec.DecodeError, IndexError):
        if content[0] != _VERSION:
            return None
        found = msgspec.msgpack.decode(zlib.decompress(content[1:]), type=Checkpoint)
        differ = sorted(name for name in {*inputs, *found.inputs} if inputs.get(name) != found.inputs.get(name))
        if differ:
            text = f"{directory}: --resume: what is there was computed with another {' and '.join(differ)}"
            raise ResultError(f"{text}; choose another with -o, or do without --resume")
        return found
    return None
