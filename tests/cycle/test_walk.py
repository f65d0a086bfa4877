"""A pod's walk in the docs is true: its functions exist, it stays short, and nothing else runs for an ordinary pod."""

from __future__ import annotations

import ast
import asyncio
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pilotage.assembly import SchedulerProcess, options_from_configuration
from pilotage.config.load import default_configuration
from pilotage.kube.client import KubeClient
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.testing import VirtualClock
from tests.source_tree import ROOT

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
MOST_FILES = 28
GROUND = ("model/", "api/", "observe/", "plugins/", "change_log.py", "clock.py", "rng.py", "escaping.py")
ONLY_LOOKS_ON = {
    "assembly.py": "counts moves in the queue",
    "calls/event.py": "the Event about the binding",
    "calls/recorder.py": "the Event about the binding",
    "calls/report.py": "metrics of calls",
    "cycle/attempts.py": "metrics and log of attempts",
    "cycle/cycle_budget.py": "CPU time of a cycle",
    "cycle/observer.py": "who supervises or simulates",
    "cycle/slow_plugins.py": "CPU time of plugins",
    "cycle/unserved_pods.py": "Event and log of fields without effect",
    "cycle/consultation.py": "says that there are no extenders",
    "extenders/extenders.py": "says that there are no extenders",
    "framework/plugin_meter.py": "metrics of plugins",
}
"""What runs and is not counted, with what it is for: a pod would have the same place without it."""
OUTSIDE = ("sandbox/", "testing/")
"""The other side of the wire, and the clock of this test."""


def section() -> str:
    return PAGE.read_text().partition("## A pod's walk")[2].partition("\n## ")[0]


def walk() -> list[tuple[str, str]]:
    """File and function of every step, in order."""
    return re.findall(r"`([\w/]+\.py): (\w+)`", section())


def beside() -> set[str]:
    """Files that run and are not counted."""
    return set(re.findall(r"`([\w/]+\.py)`", section().partition("Not counted")[2]))


@pytest.mark.parametrize(("path", "function"), walk())
def test_a_step_of_the_walk_exists(path: str, function: str) -> None:
    tree = ast.parse((ROOT / path).read_text())
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert function in defined


def test_a_pod_needs_few_files() -> None:
    files = dict.fromkeys(path for path, _ in walk())
    assert 20 <= len(files) <= MOST_FILES, f"{len(files)} files"


def test_only_what_looks_on_is_not_counted() -> None:
    assert beside() == ONLY_LOOKS_ON.keys()


async def test_no_other_file_runs_for_an_ordinary_pod() -> None:
    run = await files_that_run()
    ours = {path for path in run if not path.startswith((*GROUND, *OUTSIDE))}
    named = {path for path, _ in walk()} | beside()
    assert ours - named == set(), "they run, and are not on the page"
    assert {path for path in named if not path.startswith(GROUND)} - ours == set(), (
        "they are on the page, and never run"
    )


def a_pod(name: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [container]}}


async def files_that_run() -> set[str]:
    """Files with a function that is called while a pod is scheduled and bound, the second of its kind."""
    found: set[str] = set()
    root = f"{ROOT}/"

    def note(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(root):
            found.add(path.removeprefix(root))

    clock, rng = VirtualClock(), seeded(1)
    options = options_from_configuration(default_configuration())
    async with EmbeddedCluster.running(EmbeddedOptions(nodes=3, port=None), clock, rng) as cluster:
        process = SchedulerProcess(KubeClient(cluster.transport()), clock, rng, options)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(process.run())
            await clock.advance(5)
            cluster.api.create("pods", "default", a_pod("first"))
            await clock.advance(2)
            cluster.api.create("pods", "default", a_pod("second"))
            before = sys.getprofile()
            sys.setprofile(note)
            try:
                await clock.settle()
            finally:
                sys.setprofile(before)
            assert cluster.api.get("pods", "default", "second")["spec"]["nodeName"]
            running.cancel()
    return found
