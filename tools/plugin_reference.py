"""Writes the tables of docs/plugin-reference.md from the source of the classes that plugins see.

python tools/plugin_reference.py            # rewrites what stands between the marks
python tools/plugin_reference.py --check    # exits with 1 if that would change anything
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pilotage.api import Handle, HypotheticalNode, Node, NodeTable, NodeView, Pod, PodSpec, PodStatus, QueuedPod, WhatIf
from pilotage.model.meta import ApiObject
from pilotage.model.node import NodeSpec, NodeStatus
from pilotage.model.pod_spec import PodSpecFields

PAGE = Path(__file__).parents[1] / "docs" / "plugin-reference.md"
_MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_SPELT = {"provider_id": "providerID"}
_LEFT_OUT = frozenset({"memo", "column(name)"})
"""Of no use to plugins."""
_IN_METADATA = frozenset({
    "name", "namespace", "uid", "resource_version", "generation", "labels", "annotations", "owner_references",
    "creation_timestamp", "deletion_timestamp", "finalizers",
})  # fmt: skip


class Member(NamedTuple):
    """One row of a table."""

    name: str
    type: str
    meaning: str


def members(cls: type) -> Iterator[Member]:
    """The public attributes, properties and methods of a class, in the order of its source."""
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    for at, item in enumerate(tree.body):
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            if not item.target.id.startswith("_"):
                yield Member(item.target.id, ast.unparse(item.annotation), _doc_after(tree.body, at))
        elif isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and not item.name.startswith("_"):
            answer = ast.unparse(item.returns) if item.returns else ""
            yield Member(_call(item), answer, _first(ast.get_docstring(item)))


def _doc_after(body: list[ast.stmt], at: int) -> str:
    after = body[at + 1] if at + 1 < len(body) else None
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
        return _first(after.value.value)
    return ""


def _call(item: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    if any(isinstance(one, ast.Name) and one.id in ("property", "cached_property") for one in item.decorator_list):
        return item.name
    given = [argument.arg for argument in item.args.args][1:]
    if item.args.vararg is not None:
        given.append(f"*{item.args.vararg.arg}")
    given += [f"{argument.arg}=" for argument in item.args.kwonlyargs]
    waiting = "await " if isinstance(item, ast.AsyncFunctionDef) else ""
    return f"{waiting}{item.name}({', '.join(given)})"


def _first(text: str | None) -> str:
    """The first paragraph, on one line."""
    return " ".join((text or "").strip().split("\n\n")[0].split())


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


def _of_pod(member: Member) -> str:
    if member.name == "node_name":
        return "`spec.nodeName`; of a pod that is being bound, the node that was chosen"
    if member.name in ("spec", "status"):
        return f"see below (`{member.name}`)"
    return f"`metadata.{_camel(member.name)}`" if member.name in _IN_METADATA else member.meaning


def _in(part: str) -> Callable[[Member], str]:
    return lambda member: member.meaning or f"`{part}.{_SPELT.get(member.name, _camel(member.name))}`"


def rows(cls: type, meaning: Callable[[Member], str] = lambda member: member.meaning) -> list[Member]:
    return [member._replace(meaning=meaning(member)) for member in members(cls) if member.name not in _LEFT_OUT]


def _node() -> list[Member]:
    own = [member._replace(meaning=f"see below (`{member.name}`)") for member in members(Node)]
    common = rows(ApiObject, lambda m: m.meaning or f"`metadata.{_camel(m.name)}`")
    return [*(one._replace(meaning="`metadata`") if one.name == "metadata" else one for one in common), *own]


TABLES: dict[str, Callable[[], list[Member]]] = {
    "Pod": lambda: rows(Pod, _of_pod),
    "PodSpec": lambda: [*rows(PodSpecFields, _in("spec")), *rows(PodSpec, _in("spec"))],
    "PodStatus": lambda: rows(PodStatus, _in("status")),
    "Node": _node,
    "NodeSpec": lambda: rows(NodeSpec, _in("spec")),
    "NodeStatus": lambda: rows(NodeStatus, _in("status")),
    "NodeView": lambda: rows(NodeView),
    "NodeTable": lambda: rows(NodeTable),
    "Handle": lambda: rows(Handle),
    "WhatIf": lambda: rows(WhatIf),
    "HypotheticalNode": lambda: rows(HypotheticalNode),
    "QueuedPod": lambda: rows(QueuedPod),
}


def table(name: str) -> str:
    """The rows of a class as Markdown."""
    found = TABLES[name]()
    lines = [f"| `{row.name}` | `{_escaped(row.type)}` | {_escaped(row.meaning)} |" for row in found]
    return "\n".join(["| | type | |", "|---|---|---|", *lines, ""])


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def rendered(page: str) -> str:
    """The page with its tables as they should be."""

    def renew(mark: Any) -> str:
        return f"{mark[1]}{table(mark[2])}{mark[3]}"

    return _MARKED.sub(renew, page)


def main() -> int:
    page = PAGE.read_text()
    wanted = rendered(page)
    if "--check" in sys.argv:
        return int(page != wanted)
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
