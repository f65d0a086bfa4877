"""Imports point one way: each package may import only what the table allows, and the table has no cycles."""

from __future__ import annotations

from graphlib import TopologicalSorter

import pytest

from tests.source_tree import Module, imported_names, modules, parse

_GROUND = {"certificates", "change_log", "clock", "escaping", "kube_yaml", "rng", "tasks"}
_MODEL = {"model"} | _GROUND
_API = {"api"} | _MODEL
_STATE = {"calls", "cluster", "framework", "observe", "queue"}
_RUNNING = {"assembly", "workload_queueing", "config", "cycle", "extenders", "jobs", "kube", "plugins", "sandbox"}
_TOOLS = {"bench", "conformance", "explain", "simulate"}

ALLOWED: dict[str, set[str]] = {
    "__init__": set(),
    "certificates": set(),
    "change_log": set(),
    "clock": set(),
    "escaping": set(),
    "kube_yaml": set(),
    "rng": set(),
    "tasks": set(),
    "model": _GROUND,
    "api": _MODEL,
    "observe": _API,
    "calls": _API | {"observe"},
    "cluster": _API | {"observe"},
    "queue": _API | {"observe"},
    "framework": _API | {"cluster", "config", "observe"},
    "cel": _MODEL,
    "plugins": _API | {"cel"},
    "cycle": _API | _STATE | {"extenders"},
    "extenders": _API | {"config", "kube", "observe"},
    "config": _MODEL,
    "kube": _MODEL | {"observe"},
    "sandbox": _MODEL | {"cel"},
    "jobs": _API | _STATE | {"config", "cycle"},
    "testing": _API | {"cluster", "framework", "observe"},
    "workload_queueing": _API | _STATE | {"config", "jobs", "kube"},
    "assembly": _API | _STATE | {"config", "cycle", "extenders", "jobs", "kube", "plugins", "workload_queueing"},
    "simulate": _API | _STATE | _RUNNING | {"testing"},
    "bench": _API | _STATE | _RUNNING | {"testing"},
    "conformance": _API | _STATE | _RUNNING,
    "explain": _API | _STATE | _RUNNING,
    "library": _API | _STATE | _RUNNING | {"explain", "serve"},
    "serve": _API | _STATE | _RUNNING | {"explain"},
    "supervise": _API | _STATE | {"cycle", "kube", "serve"},
    "cli": _API | _STATE | _RUNNING | _TOOLS | {"serve", "supervise", "testing"},
    "__main__": {"cli"},
}

EXCEPTIONS = {
    # The protocol types of the seam between client and wire: what lets the sandbox be called without a socket.
    ("sandbox", "pilotage.kube.transport"),
    # What a vectorised plugin is handed.
    ("plugins", "pilotage.cluster.columns"),
    # Calls that only one plugin makes.
    ("plugins", "pilotage.calls.volumes"),
}

_THIRD_PARTY_AT_THE_EDGE = {
    "aiohttp": set(),
    "click": {"cli"},
    "rich": {"cli"},
    "cel_expr_python": {"cel"},
    "re2": {"cel"},
    "uvicorn": {"sandbox"},
}


def violations(module: Module) -> list[str]:
    found = []
    for line, name in imported_names(module):
        root, _, rest = name.partition(".")
        part = rest.partition(".")[0]
        if root != "pilotage" or part in ("", "__version__", module.part) or part in ALLOWED[module.part]:
            continue
        if not any(module.part == who and f"{name}.".startswith(f"{what}.") for who, what in EXCEPTIONS):
            found.append(f"{module.path}:{line}: {module.part} must not import {name}")
    return found


def test_every_import_points_down_the_layers() -> None:
    assert [problem for module in modules() for problem in violations(module)] == []


def test_the_table_of_layers_has_no_cycle() -> None:
    order = list(TopologicalSorter(ALLOWED).static_order())
    assert (
        order.index("model") < order.index("api") < order.index("cycle") < order.index("assembly") < order.index("cli")
    )


def test_heavy_third_party_packages_stay_at_their_edge() -> None:
    found = [
        f"{module.path}:{line}: {name}"
        for module in modules()
        for line, name in imported_names(module)
        if module.part not in _THIRD_PARTY_AT_THE_EDGE.get(name.partition(".")[0], {module.part})
    ]
    assert found == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("model/pod.py", "from pilotage.api import Plugin"),
        ("sandbox/api.py", "from pilotage.kube.client import KubeClient"),
        ("sandbox/api.py", "from pilotage.kube import transport, client"),
        ("kube/client.py", "import pilotage.sandbox.api"),
        ("queue/pool.py", "def late():\n    from ..cycle import scheduler"),
        ("plugins/node_name.py", "from pilotage.cluster.state import Cluster"),
    ],
)
def test_an_import_against_the_direction_is_found(path: str, source: str) -> None:
    assert len(violations(parse(path, source))) == 1


def test_the_protocol_of_the_transport_is_open_to_the_sandbox() -> None:
    source = "from pilotage.kube.transport import Transport\nfrom pilotage.kube import transport"
    assert violations(parse("sandbox/inprocess.py", source)) == []
