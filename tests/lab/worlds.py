"""Small traces, and what comes of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pilotage.assembly import SchedulerOptions
from pilotage.lab.replay import ReplaySettings
from pilotage.lab.results import Result
from pilotage.lab.simulation import TraceInput, simulate
from pilotage.lab.trace.format import ObjectName, TraceHeader, Writer
from pilotage.queue.backoff import BackoffPolicy
from pilotage.testing import node, pod
from pilotage.testing.builders import NodeBuilder, PodBuilder

START = "2026-11-16T00:00:00Z"
EAGER = replace(SchedulerOptions(), backoff=BackoffPolicy(max_seconds=0))
"""A scheduler that tries pods again at once: what backoff does to their order is not what a test is about."""

Change = tuple[float, NodeBuilder | PodBuilder | Mapping[str, Any] | ObjectName, float | None]


def put(at: float, obj: NodeBuilder | PodBuilder | Mapping[str, Any], runs: float | None = None) -> Change:
    return at, obj, runs


def delete(at: float, kind: str, name: str, namespace: str = "default") -> Change:
    return at, ObjectName("v1", kind, name, "" if kind == "Node" else namespace), None


def write(path: Path, changes: Iterable[Change]) -> Path:
    with Writer(path, TraceHeader(pilotage_trace=1, start=START, source="test")) as trace:
        for at, what, runs in changes:
            if isinstance(what, ObjectName):
                trace.delete(at, what)
            else:
                trace.put(at, what.json() if isinstance(what, NodeBuilder | PodBuilder) else what, runs)
    return path


def played(
    folder: Path,
    *changes: Change,
    options: SchedulerOptions | None = None,
    every: float = 10.0,
    until: float = math.inf,
    ties: str = "scheduler",
    resumes_evicted: bool = False,
    seed: int = 0,
    nodes: list[NodeBuilder] | None = None,
) -> Result:
    """The result of a trace of these changes."""
    trace = write(folder / "trace.jsonl", changes)
    settings = ReplaySettings(every=every, until=until, ties=ties, resumes_evicted=resumes_evicted, seed=seed)
    given = TraceInput(trace, None if nodes is None else [one.json() for one in nodes])
    return simulate(given, options or SchedulerOptions(), settings, folder / "result")


def story(result: Result, name: str) -> dict[str, Any]:
    """What became of a pod; NaN and "" left out, and what it requests."""
    rows = (result.pods["pod"] == f"default/{name}").nonzero()[0].tolist()
    assert len(rows) == 1, f"{len(rows)} stories of {name}"
    values = {field: column[rows[0]].item() for field, column in result.pods.items() if field != "pod"}
    values = {field: value for field, value in values.items() if not field.startswith("requests_")}
    return {field: value for field, value in values.items() if value == value and value != ""}


__all__ = ["EAGER", "Change", "delete", "node", "played", "pod", "put", "story", "write"]
