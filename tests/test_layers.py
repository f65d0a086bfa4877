"""The shape of the source, so that a reader finds things by name and does not walk further than needed.

Imports point one way: each package may import only what the table allows, and the table has no cycles. A class has a
name of its own. What is short and used in one place stands in that place.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from graphlib import TopologicalSorter
from pathlib import PurePosixPath

import pytest

from tests.source_tree import ROOT, Module, imported_names, modules, parse

_GROUND = {"certificates", "change_log", "clock", "escaping", "kube_yaml", "rng", "tasks"}
_MODEL = {"model"} | _GROUND
_API = {"api"} | _MODEL
_STATE = {"calls", "cluster", "framework", "observe", "queue"}
_RUNNING = {"assembly", "workload_queueing", "config", "cycle", "extenders", "jobs", "kube", "plugins", "sandbox"}
_TOOLS = {"bench", "conformance", "explain", "lab", "simulate"}

ALLOWED: dict[str, set[str]] = {
    "__init__": set(),
    "certificates": set(),
    "change_log": set(),
    "clock": set(),
    "escaping": set(),
    "kube_yaml": set(),
    "pictures": {"escaping"},
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
    "lab": _API | _STATE | _RUNNING | {"explain", "pictures", "simulate", "testing"},
    "library": _API | _STATE | _RUNNING | {"explain", "lab", "pictures", "serve", "testing"},
    "pytest_plugin": {"library"},
    "serve": _API | _STATE | _RUNNING | {"explain"},
    "console": _API | _STATE | _RUNNING | {"explain", "lab", "pictures", "serve"},
    "supervise": _API | _STATE | {"cycle", "kube", "serve"},
    "cli": _API | _STATE | _RUNNING | _TOOLS | {"console", "pictures", "serve", "supervise", "testing"},
    "__main__": {"cli"},
}

_SMALL = 60

_DIALECT = re.compile(
    r"(?i)\b(told|promise[sd]?|belated|brood|homeless|leftovers?|put_aside|is_aside|rehearse[sd]?|take_news|stir)\b"
)

UNITS_OF_EXTENSION = {
    "plugins/*.py": "a plugin: one file each",
    "sandbox/life/controllers/*.py": "a controller: one file each",
    "sandbox/rules/validation/*.py": "the rules of a kind: one file each",
    "serve/*_pages.py": "a group of pages that are served: one file each",
    "bench/over_*.py": "a place to measure (`pilotage bench --server`): one file each",
    "jobs/adapters/kinds/*.py": "a kind of jobs: one file each",
    "lab/plan/*.py": "a question of `pilotage plan`: one file each",
    "framework/ties.py": "rules for equally good nodes: another rule is another class there",
    "lab/sweep/on_dask.py": "the only one that needs the extra pilotage[dask]",
    "cel/structs.py": "objects that mutations build, apart from the language that all share",
    "console/local.py": "who may look, apart from what is shown: the other door is serve/console_door.py",
}
"""Small modules that stay although only one other imports them, and why."""

EXCEPTIONS = {
    # The protocol types of the seam between client and wire: what lets the sandbox be called without a socket.
    ("sandbox", "pilotage.kube.transport"),
    # And what it calls admission webhooks with.
    *(
        ("sandbox", f"pilotage.kube.{module}")
        for module in ("connection", "credentials", "errors", "http_transport", "source", "tls")
    ),
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
    "jinja2": {"console", "lab"},
    "markupsafe": {"console", "lab", "pictures"},
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


def test_class_names_outside_model_stand_once() -> None:
    """A name names one thing. `model` may repeat a name: it has Kubernetes' types, as Kubernetes calls them."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules():
        if module.part != "model":
            for node in module.tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    files[node.name].append(module.path)
    assert len(files) > 1000
    assert {name: where for name, where in files.items() if len(where) > 1} == {}


def test_small_modules_with_one_importer_are_units_of_extension() -> None:
    """What is short and used in one place stands in that place."""
    importers = Counter(name for module in modules() for name in _imported_modules(module))
    alone = [
        module.path
        for module in modules()
        if importers[_name(module)] == 1 and _lines(module) < _SMALL and not module.path.endswith("__init__.py")
    ]
    assert len(importers) > 500
    assert [path for path in alone if not any(PurePosixPath(path).match(unit) for unit in UNITS_OF_EXTENSION)] == []
    for unit in UNITS_OF_EXTENSION:
        assert any(PurePosixPath(path).match(unit) for path in alone), f"no longer needed: {unit}"


def test_words_of_our_own_stay_out() -> None:
    """Each has a word that a Kubernetes engineer knows: docs/renamed.md."""
    found = [
        f"{module.path}: {word}"
        for module in modules()
        for word in sorted(set(_DIALECT.findall((ROOT / module.path).read_text())))
    ]
    assert found == []


def _name(module: Module) -> str:
    return "pilotage." + module.path.removesuffix(".py").replace("/", ".")


def _imported_modules(module: Module) -> set[str]:
    found = {name for _, name in imported_names(module)}
    return found | {name.rpartition(".")[0] for name in found}


def _lines(module: Module) -> int:
    return max((node.end_lineno or 0 for node in module.tree.body), default=0)
