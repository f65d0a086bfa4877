"""A trial of a plan: what is to run is played on so many nodes of each shape, with the real scheduler."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import msgspec

from pilotage.assembly import SchedulerOptions
from pilotage.lab.plan.search import Counts
from pilotage.lab.plan.workloads import Manifests
from pilotage.lab.replay import ReplaySettings
from pilotage.lab.simulation import OnProgress, TraceInput, simulate
from pilotage.lab.trace.format import TraceHeader, Writer, is_built_in
from pilotage.simulate.memory_api import Json

_START: Final = "2026-01-01T00:00:00Z"
_MOST_SECONDS: Final = 600.0
"""How long pods of manifests, which all come at once, may take to find a node."""


class Goals(msgspec.Struct, frozen=True):
    """When nodes are enough."""

    waiting_p99: float | None = None
    """Seconds. All pods have to be placed in any case."""


class TrialOutcome(msgspec.Struct, frozen=True, rename="camel"):
    """What came of a trial that met its goals."""

    pods: int
    waited: dict[str, float]
    used: dict[str, float]
    """By resource: the mean over time."""


class Trials:
    """Plays one trace, or the pods of manifests, on nodes."""

    def __init__(
        self,
        work: Path | Manifests,
        shapes: Sequence[Json],
        options: SchedulerOptions,
        goals: Goals,
        settings: ReplaySettings,
    ) -> None:
        self._work = work
        self._shapes = shapes
        self._options = options
        self._goals = goals
        self._settings = settings

    def attempt(self, counts: Counts, on_progress: OnProgress | None = None) -> TrialOutcome | None:
        """None if the goals are not met; TraceError, ProfileError if it cannot be tried."""
        nodes = [node for shape, count in zip(self._shapes, counts, strict=True) for node in like(shape, count)]
        with tempfile.TemporaryDirectory(prefix="pilotage-plan-") as folder:
            if isinstance(self._work, Path):
                given, settings = TraceInput(self._work, nodes), self._settings
            else:
                given = TraceInput(_trace(self._work, nodes, Path(folder) / "trace.jsonl"), nodes)
                settings = msgspec.structs.replace(self._settings, until=_MOST_SECONDS)
            directory = Path(folder) / "result"
            totals = simulate(given, self._options, settings, directory, on_progress=on_progress).totals
        return self._judged(totals)

    def _judged(self, totals: dict[str, Any]) -> TrialOutcome | None:
        pods, waited = totals["pods"], totals["waited"]
        if pods["bound"] < pods["pods"]:
            return None
        if self._goals.waiting_p99 is not None and waited and waited["p99"] > self._goals.waiting_p99:
            return None
        used = {name.removeprefix("used_"): mean for name, mean in totals["mean"].items() if name.startswith("used_")}
        return TrialOutcome(pods["pods"], waited, used)


def like(shape: Json, count: int) -> list[Json]:
    """So many nodes of a shape; their names and their hostname labels differ."""
    found = []
    for number in range(count):
        node = deepcopy(shape)
        name = f"{shape['metadata']['name']}-{number}"
        labels = {**(node["metadata"].get("labels") or {}), "kubernetes.io/hostname": name}
        node["metadata"] |= {"name": name, "labels": labels}
        node["metadata"].pop("uid", None)
        found.append(node)
    return found


def _trace(work: Manifests, nodes: Sequence[Json], path: Path) -> Path:
    """All pods at once: those of DaemonSets first, as they come with their node."""
    with Writer(path, TraceHeader(pilotage_trace=1, start=_START, source="manifests")) as trace:
        for obj in (*work.others(), *work.daemons(nodes), *work.pods()):
            if is_built_in(str(obj.get("apiVersion")), str(obj.get("kind"))):
                trace.put(0.0, obj)
    return path
