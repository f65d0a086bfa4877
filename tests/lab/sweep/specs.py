"""A small sweep, and plugins that misbehave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from pilotage.lab.sweep.spec import Run, read_spec
from tests.lab.worlds import node, pod, put, write

FAULTY = '''
import os, signal
from pathlib import Path
from pilotage.api import CycleState, Filter, NodeView, Plugin, Pod

class Faulty(Plugin, Filter):
    """Kills its process; the first time only, if there is a file to remember that in."""

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> None:
        mark = Path({mark!r})
        if not mark.exists() or not {once}:
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
'''
PROFILE = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"enabled": [{"name": "Faulty"}]}}}],
}


def fitting(kind: str) -> dict[str, Any]:
    return {"scoringStrategy": {"type": kind, "resources": [{"name": "cpu", "weight": 1}]}}


BOTH = {"name": "fit", "arguments": {"NodeResourcesFit": [fitting("LeastAllocated"), fitting("MostAllocated")]}}


def trace(folder: Path, pods: int = 12) -> Path:
    nodes = [put(0, node(name).cpu("4")) for name in ("a", "b", "c")]
    return write(
        folder / "t.jsonl", [*nodes, *(put(1 + at, pod(f"p{at}").requests(cpu="1"), 60) for at in range(pods))]
    )


def spec(folder: Path, **fields: Any) -> Path:
    folder.mkdir(exist_ok=True)
    trace(folder)
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump({"traces": ["t.jsonl"], **fields}))
    return path


def runs(folder: Path, **fields: Any) -> list[Run]:
    return read_spec(spec(folder, **fields))


def faulty(folder: Path, *, once: bool) -> dict[str, Any]:
    """A configuration whose plugin kills the process."""
    folder.mkdir(exist_ok=True)
    (folder / "faulty.py").write_text(FAULTY.format(mark=str(folder / "mark"), once=once))
    (folder / "faulty.yaml").write_text(yaml.safe_dump(PROFILE))
    return {"name": "faulty", "config": "faulty.yaml", "plugins": ["faulty.py"]}


def content(directory: Path) -> dict[str, bytes]:
    """All files of a directory."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
