"""Short ways to the records that the tests are about."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from pilotage.lab.trace.content import OBSERVED_BOUND_AT, OBSERVED_NODE
from pilotage.lab.trace.finishing import open_trace
from pilotage.lab.trace.format import Gap, ObjectName, TraceHeader, TraceRecord, Writer

START = "2026-11-16T00:00:00Z"


def header(**fields: Any) -> TraceHeader:
    return TraceHeader(pilotage_trace=1, start=START, **fields)


def node(name: str, **labels: str) -> dict[str, Any]:
    status = {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def pod(
    name: str, *, on: str = "", namespace: str = "default", cpu: str = "1", uid: str = "", **metadata: Any
) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}
    if on:
        spec["nodeName"] = on
    own = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}", **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": own, "spec": spec}


def observed(name: str, on: str, bound_at: float, **fields: Any) -> dict[str, Any]:
    return pod(name, annotations={OBSERVED_NODE: on, OBSERVED_BOUND_AT: f"{bound_at:.3f}"}, **fields)


def put(at: float, obj: dict[str, Any], runs: float | None = None) -> TraceRecord:
    return TraceRecord(at, put=msgspec.Raw(msgspec.json.encode(obj)), runs=runs)


def gone(at: float, name: str, namespace: str = "default", kind: str = "Pod") -> TraceRecord:
    return TraceRecord(at, delete=ObjectName("v1", kind, name, namespace if kind == "Pod" else ""))


def gap(at: float, seconds: float, reason: str = "") -> TraceRecord:
    return TraceRecord(at, gap=Gap(seconds, reason))


def write(path: Path, records: Iterable[TraceRecord], **fields: Any) -> Path:
    with Writer(path, header(**fields)) as out:
        for record in records:
            out.write(record)
    return path


def told(records: Iterable[TraceRecord]) -> list[tuple[Any, ...]]:
    """What records say, for comparison: time, name with node, lifetime."""
    found: list[tuple[Any, ...]] = []
    for record in records:
        if record.gap is not None:
            found.append((record.at, "gap", record.gap.seconds))
        elif record.delete is not None:
            found.append((record.at, "gone", record.delete.name))
        else:
            obj = record.put_object()
            on = (obj.get("spec") or {}).get("nodeName", "")
            found.append((record.at, obj["metadata"]["name"] + (f"@{on}" if on else ""), record.runs))
    return found


def read_all(path: Path, *, allow_cut: bool = False) -> list[TraceRecord]:
    return list(open_trace(path, allow_cut=allow_cut)[1])
