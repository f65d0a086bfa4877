"""Exports and records of kube-scheduler-simulator become traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pilotage.lab.trace.content import Redaction
from pilotage.lab.trace.openb import ImportProblem
from pilotage.lab.trace.scheduler_simulator import import_simulator

from .making import node, pod, read_all, told


def bare(obj: dict[str, Any]) -> dict[str, Any]:
    """As in an export: the section says what it is."""
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


def event(second: float, what: str, obj: dict[str, Any]) -> str:
    return json.dumps({"time": f"2026-11-16T00:00:{second:05.2f}Z", "event": what, "resource": obj}) + "\n"


def test_an_export_is_one_moment(tmp_path: Path) -> None:
    sections = {
        "pods": [bare(pod("runs", on="a")), bare(pod("waits"))],
        "nodes": [bare(node("a"))],
        "pvs": [],
        "pvcs": None,
        "priorityClasses": [{"metadata": {"name": "high"}, "value": 5}],
        "schedulerConfig": {"kind": "KubeSchedulerConfiguration"},
    }
    (tmp_path / "e.json").write_text(json.dumps(sections, indent=1))
    note = import_simulator(tmp_path / "e.json", tmp_path / "t.jsonl.gz", Redaction())
    assert told(read_all(tmp_path / "t.jsonl.gz")) == [(0, name, None) for name in ("high", "a", "runs@a", "waits")]
    assert "--config" in note


def test_a_record_is_finished(tmp_path: Path) -> None:
    old = {**node("a"), "metadata": {"name": "a", "creationTimestamp": "2026-11-15T00:00:00Z"}}
    gone = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}}
    events = [
        event(1.0, "Add", old),
        event(3.0, "Add", pod("p")),
        event(3.5, "Update", pod("p", on="a")),
        event(4.0, "Add", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}),
        event(9.5, "Delete", gone),
    ]
    (tmp_path / "r.jsonl").write_text("".join(events))
    note = import_simulator(tmp_path / "r.jsonl", tmp_path / "t.jsonl.gz", Redaction())
    assert told(read_all(tmp_path / "t.jsonl.gz")) == [(0, "a", None), (2, "p", 6)]
    assert note == "1 events of kinds that scheduling does not read are left out"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is no export of kube-scheduler-simulator"),
        ("[]", "is no export of kube-scheduler-simulator"),
        ("{}", "it has none of namespaces"),
        ('{"pods": 7}', "pods: "),
        ('{"pods": [{"metadata": {}}]}', "pods: "),
        (event(1, "Add", node("a")) + "garbage\n", ":2: is no event of a record"),
        (event(1, "Add", node("a")) + event(2, "Add", {"x": 1}), ":2: resource: "),
        (event(1, "Add", {**pod("p"), "spec": {"containers": 7}}), ":1: resource: "),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "e.json").write_text(text)
    with pytest.raises(ImportProblem) as error:
        import_simulator(tmp_path / "e.json", tmp_path / "t.jsonl", Redaction())
    assert problem in str(error.value)
