"""Writes tests/api/public_surface.txt: everything that plugins and other programs may rely on, one line each.

python tools/api_surface.py            # rewrites the file (make api-surface)
python tools/api_surface.py --check    # exits with 1 if that would change anything

The lines are taken from the source, not from live objects, so that they do not depend on the versions of Python and
NumPy. What a class inherits from another class of Pilotage counts as its own.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType

import msgspec

SNAPSHOT = Path(__file__).parents[1] / "tests" / "api" / "public_surface.txt"
MODULES = ("pilotage.api", "pilotage.library", "pilotage.testing")
_NOT_CALLED_BY_USERS = frozenset({
    "__slots__", "__repr__", "__str__", "__hash__", "__eq__", "__post_init__", "__init_subclass__", "__set_name__",
    "__class_getitem__", "__match_args__",
})  # fmt: skip
_SHOWN_DECORATORS = frozenset({"property", "classmethod", "staticmethod", "abstractmethod", "cached_property"})


def surface() -> str:
    """The whole file."""
    return "\n".join(line for name in MODULES for line in _module(importlib.import_module(name))) + "\n"


def _module(module: ModuleType) -> Iterator[str]:
    for name in sorted(module.__all__):
        found = getattr(module, name)
        title = f"{module.__name__}.{name}"
        if inspect.isclass(found):
            yield f"{title}: {_class_line(_source(found))}"
            yield from sorted(f"{title}.{line}" for line in (*_order_of_fields(found), *_members(found)))
        elif inspect.isfunction(found):
            yield f"{title}: {_function(_source(found))}"
        else:
            yield f"{title}: {_assigned(module, name)}"


def _source(found: type | FunctionType) -> ast.stmt:
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(found))).body
    return tree


def _class_line(tree: ast.stmt) -> str:
    assert isinstance(tree, ast.ClassDef)
    bases = [ast.unparse(one) for one in (*tree.bases, *tree.keywords)]
    decorators = [f"@{ast.unparse(one)} " for one in tree.decorator_list]
    return f"{''.join(decorators)}class({', '.join(bases)})"


def _order_of_fields(cls: type) -> list[str]:
    """The fields that a dataclass or a struct is made from, in the order in which they may be given."""
    if dataclasses.is_dataclass(cls):
        return [f"__init__: ({', '.join(field.name for field in dataclasses.fields(cls) if field.init)})"]
    return [f"__init__: ({', '.join(cls.__struct_fields__)})"] if issubclass(cls, msgspec.Struct) else []


def _members(cls: type) -> Iterator[str]:
    """Public members of the class and of its bases in Pilotage; what a class overrides is said once."""
    seen: set[str] = set()
    for owner in cls.__mro__:
        if owner.__module__.startswith("pilotage."):
            fresh = {name: line for name, line in _own_members(_source(owner)) if name not in seen}
            seen |= fresh.keys()
            yield from fresh.values()


def _own_members(tree: ast.stmt) -> Iterator[tuple[str, str]]:
    assert isinstance(tree, ast.ClassDef)
    for item in tree.body:
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            if _is_public(item.name):
                yield item.name, f"{item.name}: {_function(item)}"
            if item.name == "__init__":
                yield from _set_in(item)
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and _is_public(item.target.id):
            default = f" = {ast.unparse(item.value)}" if item.value else ""
            yield item.target.id, f"{item.target.id}: {ast.unparse(item.annotation)}{default}"
        elif isinstance(item, ast.Assign):
            for target in item.targets:
                for name in _names(target):
                    yield name, f"{name} = {ast.unparse(item.value)}"


def _names(target: ast.expr) -> Iterator[str]:
    """Public names that an assignment gives a value, `a, b = ...` included."""
    for one in target.elts if isinstance(target, ast.Tuple) else [target]:
        if isinstance(one, ast.Name) and _is_public(one.id):
            yield one.id


def _set_in(init: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, str]]:
    """Public attributes that a constructor sets."""
    for node in ast.walk(init):
        for target in node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self" and _is_public(target.attr):
                yield target.attr, f"{target.attr}: attribute"


def _is_public(name: str) -> bool:
    return name not in _NOT_CALLED_BY_USERS and (name.startswith("__") or not name.startswith("_"))


def _function(tree: ast.stmt) -> str:
    assert isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef)
    decorators = [f"@{name} " for one in tree.decorator_list if (name := ast.unparse(one)) in _SHOWN_DECORATORS]
    kind = "async def" if isinstance(tree, ast.AsyncFunctionDef) else "def"
    answer = f" -> {ast.unparse(tree.returns)}" if tree.returns else ""
    return f"{''.join(decorators)}{kind}({ast.unparse(tree.args)}){answer}"


def _assigned(module: ModuleType, name: str) -> str:
    """What an alias or a constant stands for, from the module that defines it; of a table only that it is one."""
    for item in ast.parse(inspect.getsource(module)).body:
        if isinstance(item, ast.ImportFrom) and item.module and any(name in (a.asname, a.name) for a in item.names):
            return _assigned(importlib.import_module(item.module), name)
        if isinstance(item, ast.AnnAssign) and ast.unparse(item.target) == name and item.value:
            return f"{ast.unparse(item.annotation)} = {_shortened(item.value)}"
        if isinstance(item, ast.Assign) and name in [ast.unparse(target) for target in item.targets]:
            return f"= {_shortened(item.value)}"
    raise LookupError(f"{module.__name__} does not define {name}")


def _shortened(value: ast.expr) -> str:
    return type(value).__name__ if isinstance(value, ast.Dict | ast.DictComp) else ast.unparse(value)


def main() -> int:
    wanted = surface()
    if "--check" in sys.argv:
        return int(SNAPSHOT.read_text() != wanted)
    SNAPSHOT.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
