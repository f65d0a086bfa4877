"""`pilotage record`: what can be wrong before anything is recorded, and traces out of dumps."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from pilotage.cli.main import call
from pilotage.cli.record import _OnceForAllKinds
from pilotage.testing import VirtualClock
from tests.lab.trace.making import node, pod, read_all, told


def test_a_dump_becomes_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pods, nodes = tmp_path / "pods.json", tmp_path / "nodes.json"
    pods.write_text(json.dumps({"kind": "List", "items": [pod("p", on="a", creationTimestamp="2026-11-16T00:00:00Z")]}))
    nodes.write_text(json.dumps(node("a")))
    assert call(["record", "--from-dump", str(pods), str(nodes), "-o", str(tmp_path / "t.jsonl.gz")]) == 0
    assert "2 objects (1 Pod, 1 Node)" in capsys.readouterr().err
    assert told(read_all(tmp_path / "t.jsonl.gz")) == [(0, "p", None), (0, "a", None)]
    assert call(["record", "--from-dump", str(pods), "-o", str(tmp_path / "t.jsonl.gz")]) == 2
    assert "is there already; choose another name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["-o", "out.json"], "out.json: a trace is called *.jsonl.gz (compressed) or *.jsonl"),
        (["x.json", "-o", "t.jsonl"], "x.json: files are read with --from-dump only"),
        (["--from-dump", "-o", "t.jsonl"], "--from-dump: give the files that kubectl wrote"),
        (["--from-dump", "x.json", "-o", "t.jsonl"], "x.json: cannot be read: No such file"),
        (["--without", "podz", "-o", "t.jsonl"], '--without podz: no such kind is recorded (did you mean "pods"?)'),
        (["--without", "frobnicate", "-o", "t.jsonl"], "no such kind is recorded; there are: namespaces,"),
        (["--kubeconfig", "no.yaml", "-o", "t.jsonl"], "kubeconfig no.yaml: no such file"),
        (["--for", "soon", "-o", "t.jsonl"], '"soon" is not a duration'),
        ([], "Missing option '-o' / '--output'"),
    ],
)
def test_what_is_wrong_is_one_line(
    arguments: list[str],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(["record", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1 and problem in err
    assert list(tmp_path.iterdir()) == []


async def test_what_all_kinds_lost_is_said_once_in_a_while() -> None:
    clock = VirtualClock()
    once = _OnceForAllKinds(clock)

    def is_shown(text: str) -> bool:
        return once.filter(logging.LogRecord("x", logging.WARNING, "x", 1, "%s", (text,), None))

    assert [is_shown(f"{kind}: connection refused") for kind in ("pods", "nodes", "jobs")] == [True, False, False]
    assert is_shown("pods: forbidden")
    await clock.advance(100)
    assert is_shown("nodes: connection refused")
