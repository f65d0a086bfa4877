"""What kubectl wrote becomes a trace: arrivals, bindings and ends as the objects remember them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.lab.trace.content import OBSERVED_BOUND_AT, OBSERVED_NODE, Redaction
from pilotage.lab.trace.dump import DumpError, trace_of_dump

from .making import node, pod, told


def at(second: int) -> str:
    return f"2026-11-16T00:00:{second:02}Z"


def remembered(
    name: str, created: int, bound: int | None = None, ended: int | None = None, **fields: Any
) -> dict[str, Any]:
    obj = pod(name, on="a" if bound is not None else "", creationTimestamp=at(created), **fields)
    status: dict[str, Any] = {"phase": "Pending"}
    if bound is not None:
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at(bound)}
        status = {"phase": "Running", "conditions": [scheduled]}
    if ended is not None:
        status |= {"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"finishedAt": at(ended)}}}]}
    return {**obj, "status": status}


def dumped(path: Path, *objects: dict[str, Any]) -> Path:
    text = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    path.write_text(json.dumps(text) if path.suffix == ".json" else yaml.safe_dump(text))
    return path


@pytest.mark.parametrize("name", ["all.json", "all.yaml"])
def test_objects_say_what_happened(tmp_path: Path, name: str) -> None:
    file = dumped(
        tmp_path / name,
        {**node("a"), "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}},
        remembered("done", 10, 12, 42),
        remembered("runs", 20, 25),
        remembered("waits", 15),
    )
    dump = trace_of_dump([file], Redaction())
    records = list(dump.records())
    assert told(records) == [(0, "a", None), (0, "done", 30), (5, "waits", None), (10, "runs", None)]
    assert dump.header.start.startswith("2026-11-16T00:00:10")
    annotations = records[-1].put_object()["metadata"]["annotations"]
    assert annotations == {OBSERVED_NODE: "a", OBSERVED_BOUND_AT: "15.000"}


def test_events_know_better_when_a_pod_was_bound(tmp_path: Path) -> None:
    event = {
        "kind": "Event",
        "apiVersion": "v1",
        "reason": "Scheduled",
        "eventTime": "2026-11-16T00:00:11.5Z",
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "done"},
    }
    gone = {**event, "involvedObject": {"kind": "Pod", "namespace": "default", "name": "gone"}}
    files = [dumped(tmp_path / "p.json", remembered("done", 10, 12, 42)), dumped(tmp_path / "e.json", event, gone)]
    dump = trace_of_dump(files, Redaction())
    assert told(dump.records()) == [(0, "done", 30.5)]
    assert "1 Scheduled events are of pods that the files do not have" in dump.summary


def test_what_is_no_part_of_a_trace_is_counted(tmp_path: Path) -> None:
    over = {**remembered("over", 1, 2), "status": {"phase": "Failed"}}
    file = dumped(tmp_path / "all.json", node("a"), {"kind": "Secret", "apiVersion": "v1"}, over)
    assert (
        "left out, scheduling does not read it or it is over: 1 Secret, 1 Pod"
        in trace_of_dump([file], Redaction()).summary
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("{", "is no list of objects"),
        ("\x00\x01", "is it what `kubectl get -o json` or `-o yaml` wrote"),
        ('{"kind": "List", "items": []}', "there is nothing in these files"),
        ('{"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": 7}}', "containers"),
        ("NAME READY\nweb 1/1\n", "is no list of objects"),
    ],
)
def test_what_is_no_dump_is_said_with_the_way_out(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "dump"
    file.write_text(text)
    with pytest.raises(DumpError, match=problem.replace("(", r"\(")):
        trace_of_dump([file], Redaction())


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match=r"no.json: cannot be read: No such file"):
        trace_of_dump([tmp_path / "no.json"], Redaction())
