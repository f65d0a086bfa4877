"""State has one writer: what a class keeps is assigned in its own module, and private names stay private."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields

from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.queues import LocalQueueState
from pilotage.jobs.record import WorkloadRecord
from tests.source_tree import Module, modules

OWNERS: dict[str, tuple[set[str], set[str]]] = {
    # What is usually called so: its attributes, and the modules that may write them.
    "record": ({one.name for one in fields(WorkloadRecord)}, {"jobs/record.py"}),
    "queue": (set(QueueState.__slots__), {"jobs/cluster_queue.py", "jobs/quota_tree.py"}),
    "local": (set(LocalQueueState.__slots__), {"jobs/queues.py"}),
}
CONTAINER_METHODS = {"add", "append", "clear", "pop", "popitem", "remove", "setdefault", "update"}


def engine_modules() -> list[Module]:
    return [module for module in modules() if module.path.startswith("jobs/") and module.path.count("/") == 1]


def written_attributes(tree: ast.AST) -> Iterator[tuple[int, ast.Attribute]]:
    """Attributes that are assigned or deleted, or whose container is changed."""
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign | ast.Delete):
            targets = list(node.targets)
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call) and (changed := _changed_by(node)) is not None:
            targets = [changed]
        for target in targets:
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                found = part.value if isinstance(part, ast.Subscript) else part
                if isinstance(found, ast.Attribute):
                    yield node.lineno, found


def _changed_by(call: ast.Call) -> ast.expr | None:
    function = call.func
    return function.value if isinstance(function, ast.Attribute) and function.attr in CONTAINER_METHODS else None


def name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def foreign_writes(module: Module) -> Iterator[str]:
    for line, attribute in written_attributes(module.tree):
        for kind, (names, allowed) in OWNERS.items():
            is_of_kind = name_of(attribute.value) in (kind, "other", "one", "head", "victim", "preemptor")
            # `node` is the quota tree itself: dry runs reserve in it and take it back.
            if attribute.attr in names - {"node"} and is_of_kind and module.path not in allowed:
                yield f"{module.path}:{line}: {kind}.{attribute.attr}"


def private_reads(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Attribute) or name_of(node.value) in ("self", "cls"):
            continue
        if node.attr.startswith("_") and not node.attr.startswith("__") and node.attr != "_replace":
            yield f"{module.path}:{node.lineno}: {name_of(node.value)}.{node.attr}"


def test_state_of_the_engine_is_written_by_its_owner_only() -> None:
    assert [problem for module in engine_modules() for problem in foreign_writes(module)] == []


def test_parts_of_workload_queueing_do_not_touch_private_names_of_others() -> None:
    ours = [module for module in modules() if module.path.startswith("jobs/")]
    assert [problem for module in ours for problem in private_reads(module)] == []


def test_a_foreign_write_is_found() -> None:
    source = "record.place = 1\nqueue.reserving.pop('a')\nother.generation += 1\nlocal.members['a'] = 2"
    module = Module("jobs/evictions.py", "jobs", ast.parse(source))
    assert len(list(foreign_writes(module))) == 4
