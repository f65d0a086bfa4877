"""Two checkouts of the project, measured in turn: is this change faster, on a machine where nothing else stands still?

Another version is unpacked beside the one that runs and measures the same workload in processes of its own. The
checkouts take turns, and in every round the one that began comes second: what disturbs the machine for a while disturbs
both. What counts is the ratio within a round, and how far the rounds agree.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import msgspec

import pilotage

FIGURES: Final = {
    "schedulerMicrosPerPod": "scheduler's own CPU per pod",
    "cpuSecondsPer1000Pods": "CPU per 1,000 pods",
    "podsPerSecond": "pods/s",
    "peakMemoryMiB": "peak memory",
}
"""What is compared, by its key in the JSON of a run; of workloads with goals, what they say in `_UNITS`."""
_UNITS: Final = frozenset(("s", "ms", "us", "MiB", "kB", "kB/s", "events/s"))
"""Of figures that say how much something took; others are ratios themselves, or counts."""


class CheckoutFailed(Exception):
    """There is no such version, or it could not measure; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A version of the project that can be run."""

    name: str
    source: Path

    def measure(self, arguments: Sequence[str]) -> dict[str, Any]:
        """What `pilotage bench ARGUMENTS -o json` of this version prints."""
        command = [sys.executable, "-P", "-m", "pilotage", "bench", *arguments, "-o", "json"]
        environment = {**os.environ, "PYTHONPATH": str(self.source)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        said = (done.stdout.splitlines() or [""])[-1]
        # A run that has measured, and missed a goal, exits with an error too.
        if done.returncode and not said.startswith("{"):
            raise CheckoutFailed(f"{self.name} could not measure: {_last_line(done.stderr)}")
        figures: dict[str, Any] = msgspec.json.decode(said)
        return figures


def own_checkout() -> Checkout:
    """The one that is running, with everything in it that was not committed."""
    return Checkout("here", Path(pilotage.__file__).parents[1])


def unpack(ref: str, folder: Path) -> Checkout:
    """A committed version of the project, put into this folder; its dependencies are those that are installed."""
    root = own_checkout().source.parent
    if not (root / ".git").exists():
        raise CheckoutFailed("versions can be compared in a checkout of the repository only")
    found = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if found.returncode:
        raise CheckoutFailed(f'there is no version "{ref}" in {root}')
    packed = _git(root, "archive", found.stdout.decode().strip(), "src")
    if packed.returncode:
        raise CheckoutFailed(f'"{ref}" cannot be unpacked: {_last_line(packed.stderr.decode())}')
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return Checkout(ref, folder / "src")


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", root, *arguments], capture_output=True, check=False)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1]


@dataclass(frozen=True)
class ComparedRound:
    """What both said, one right after the other."""

    ours: dict[str, Any]
    theirs: dict[str, Any]

    @cached_property
    def measured(self) -> tuple[dict[str, float], dict[str, float]]:
        """Ours and theirs, by figure."""
        return _measured(self.ours), _measured(self.theirs)

    def ratio(self, figure: str) -> float | None:
        """Ours divided by theirs; None if one of them did not measure it."""
        ours, theirs = (one.get(figure) for one in self.measured)
        return ours / theirs if ours is not None and theirs else None


def _measured(said: Mapping[str, Any]) -> dict[str, float]:
    """What the JSON of a run says, by figure; rows of `Scaling` are a figure for each size."""
    found = {key: said[key] for key in FIGURES if said.get(key) is not None}
    found.update((one["name"], one["value"]) for one in said.get("figures", ()) if one["unit"] in _UNITS)
    for row in said.get("micros", ()):
        found.update(
            (f"{row['name']}, {nodes:,} nodes", us) for nodes, us in zip(said["nodes"], row["micros"], strict=True)
        )
    return found


def in_turn(
    ours: Callable[[], dict[str, Any]], theirs: Callable[[], dict[str, Any]], rounds: int
) -> Iterator[ComparedRound]:
    """One round after the other; who comes first changes."""
    for number in range(rounds):
        if number % 2:
            behind = theirs()
            yield ComparedRound(ours(), behind)
        else:
            ahead = ours()
            yield ComparedRound(ahead, theirs())


@dataclass(frozen=True, slots=True)
class Ratio:
    """One figure of two versions: the medians of each, and the ratios of the single rounds."""

    figure: str
    ours: float
    theirs: float
    median: float
    least: float
    most: float

    def as_json(self) -> dict[str, float]:
        return {name: round(getattr(self, name), 4) for name in ("ours", "theirs", "median", "least", "most")}


def ratios_of(rounds: Sequence[ComparedRound]) -> list[Ratio]:
    """The figures that both have measured in every round."""
    found = []
    for figure in rounds[0].measured[0] if rounds else ():
        ratios = [ratio for one in rounds if (ratio := one.ratio(figure)) is not None]
        if ratios and len(ratios) == len(rounds):
            ours, theirs = (statistics.median(one.measured[side][figure] for one in rounds) for side in (0, 1))
            found.append(Ratio(figure, ours, theirs, statistics.median(ratios), min(ratios), max(ratios)))
    return found
