"""The walk of a POST in the docs is true: a pod that is created goes through these functions, in this order."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from pilotage.clock import SystemClock
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.sandbox.http.asgi import AsgiApp
from pilotage.sandbox.http.exchange import Request
from pilotage.sandbox.http.watch import Watch
from tests.sandbox.api_world import PODS, pod
from tests.source_tree import ROOT

MOST_FILES = 20


def stops() -> list[tuple[str, str]]:
    """File and function of every stop, in order."""
    text = (ROOT.parents[1] / "docs" / "architecture.md").read_text()
    section = text.partition("**The walk of a POST**")[2].partition("\n## ")[0]
    found = []
    for line in section.splitlines():
        path = ""
        for file, function in re.findall(r"`(?:([\w/]+\.py): )?(\w+)`", line):
            path = file or path
            if path:
                found.append((path, function))
    return found


def test_the_walk_of_a_post_needs_few_files() -> None:
    files = dict.fromkeys(path for path, _ in stops())
    assert 15 <= len(files) <= MOST_FILES, f"{len(files)} files"


async def test_a_pod_that_is_created_takes_the_walk(tmp_path: Path) -> None:
    options = EmbeddedOptions(data_dir=tmp_path / "data", token="t")
    async with EmbeddedCluster.running(options, SystemClock(), seeded(1)) as cluster:
        watch = cluster.server.dispatch(Request("GET", PODS, {"watch": "true"}, {}, b""))
        assert isinstance(watch, Watch)
        calls = await calls_of_post(cluster, pod())
        watch.close()
    assert [stop for stop in stops() if stop not in calls] == []
    first_of_each_file = {path: calls.index((path, function)) for path, function in reversed(stops())}
    assert list(first_of_each_file.values()) == sorted(first_of_each_file.values(), reverse=True)


async def calls_of_post(cluster: EmbeddedCluster, obj: dict[str, Any]) -> list[tuple[str, str]]:
    """File and function of all calls of ours, each once, in order."""
    calls: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(ROOT):
            calls.setdefault((str(file.relative_to(ROOT)), frame.f_code.co_name))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(obj).encode(), "more_body": False}

    async def send(message: Any) -> None:
        assert message.get("status", 201) == 201

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"authorization", b"Bearer t")]
    scope = {
        "type": "http",
        "scheme": "http",
        "method": "POST",
        "path": PODS,
        "query_string": b"fieldValidation=Strict",
    }
    sys.setprofile(note)
    try:
        await AsgiApp(cluster.server)({**scope, "headers": headers}, receive, send)
    finally:
        sys.setprofile(None)
    return list(calls)
