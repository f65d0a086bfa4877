"""Time, chance and tasks have one source each: what makes a failing run replayable from its seed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.source_tree import Module, imported_names, modules, parse

_FORBIDDEN = {
    "time": "take a pilotage.clock.Clock",
    "datetime.datetime.now": "take a pilotage.clock.Clock",
    "datetime.datetime.utcnow": "take a pilotage.clock.Clock",
    "datetime.datetime.today": "take a pilotage.clock.Clock",
    "datetime.date.today": "take a pilotage.clock.Clock",
    "asyncio.sleep": "take a pilotage.clock.Clock",
    "asyncio.create_task": "tasks live in an asyncio.TaskGroup",
    "asyncio.ensure_future": "tasks live in an asyncio.TaskGroup",
    "uuid": "use pilotage.rng.random_uid",
    "secrets": "use pilotage.rng",
    "os.urandom": "use pilotage.rng",
    "os.getrandom": "use pilotage.rng",
    "random": "take a random.Random, made in pilotage.rng",
    "numpy.random": "take a random.Random, made in pilotage.rng",
}
_FINE = {"random.Random"}
"""A type to annotate with; calling it is found all the same."""
_SOURCES = {"clock.py", "rng.py"}


def uses(module: Module) -> list[str]:
    """Every use of something forbidden, as `file:line: what (way out)`."""
    aliases = _aliases(module)
    found = []
    for node, name in _references(module.tree, aliases):
        rule = _rule(name)
        if rule is not None:
            found.append(f"{module.path}:{node.lineno}: {name} ({_FORBIDDEN[rule]})")
    return found


def _aliases(module: Module) -> dict[str, str]:
    """Local name -> full name, for `import x as y` and `from x import y as z`."""
    known: dict[str, str] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            known.update({alias.asname or alias.name.partition(".")[0]: _imported(alias) for alias in node.names})
        elif isinstance(node, ast.ImportFrom) and not node.level:
            known.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return known


def _imported(alias: ast.alias) -> str:
    return alias.name if alias.asname else alias.name.partition(".")[0]


def _references(tree: ast.Module, aliases: dict[str, str]) -> Iterator[tuple[ast.expr, str]]:
    """The outermost dotted names that lead to something imported, and calls of `random.Random`."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Name, ast.Attribute)) or id(node) in inner:
            continue
        name = _dotted(node, aliases)
        if name is not None and (name not in _FINE or id(node) in called):
            yield node, name


def _dotted(node: ast.expr, aliases: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return aliases.get(node.id)
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value, aliases)
        return None if base is None else f"{base}.{node.attr}"
    return None


def _rule(name: str) -> str | None:
    return next((rule for rule in _FORBIDDEN if f"{name}.".startswith(f"{rule}.")), None)


def test_only_clock_and_rng_read_time_and_make_chance() -> None:
    assert [use for module in modules() if module.path not in _SOURCES for use in uses(module)] == []


def test_time_is_imported_nowhere_else_at_all() -> None:
    found = [
        f"{module.path}:{line}: {name}"
        for module in modules()
        if module.path not in _SOURCES
        for line, name in imported_names(module)
        if name.partition(".")[0] in ("time", "uuid", "secrets")
    ]
    assert found == []


def test_tasks_are_made_by_task_groups_only() -> None:
    """`asyncio.create_task` is found by name; `loop.create_task` by its receiver."""
    found = [
        f"{module.path}:{node.lineno}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and node.attr == "create_task" and _is_a_loop(node.value)
    ]
    assert found == []


def _is_a_loop(node: ast.expr) -> bool:
    """`loop.create_task`, `self._loop.create_task`, `asyncio.get_running_loop().create_task`."""
    if isinstance(node, ast.Call):
        node = node.func
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return "loop" in name


@pytest.mark.parametrize(
    "source",
    [
        "import time\nnow = time.time()",
        "from time import monotonic as now\nstart = now()",
        "import asyncio\n\nasync def wait():\n    await asyncio.sleep(1)",
        "from datetime import datetime\nat = datetime.now()",
        "import datetime\nat = datetime.datetime.now(datetime.UTC)",
        "import uuid\nname = uuid.uuid4()",
        "import random\nshuffle = random.shuffle",
        "import random\nsource = random.Random(7)",
        "import numpy as np\nsource = np.random.default_rng()",
        "import os\nseed = os.urandom(8)",
        "import asyncio\nasyncio.create_task(None)",
    ],
)
def test_a_forbidden_use_is_found(source: str) -> None:
    assert len(uses(parse("queue/pool.py", source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import random\n\ndef pick(rng: random.Random) -> float:\n    return rng.random()",
        "import asyncio\n\nasync def both(tasks: asyncio.TaskGroup) -> None:\n    tasks.create_task(None)",
        "from datetime import UTC, datetime\nat = datetime.fromtimestamp(0, UTC)",
    ],
)
def test_a_permitted_use_is_left_alone(source: str) -> None:
    assert uses(parse("queue/pool.py", source)) == []
