"""The source as the rule tests see it: parsed modules and the imports between packages."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pilotage

ROOT = Path(pilotage.__file__).parent


@dataclass(frozen=True, slots=True)
class Module:
    """One parsed file; `part` is the package of the architecture page that it belongs to."""

    path: str
    part: str
    tree: ast.Module


def modules(root: Path = ROOT) -> Iterator[Module]:
    for file in sorted(root.rglob("*.py")):
        yield parse(str(file.relative_to(root)), file.read_text())


def parse(path: str, source: str) -> Module:
    """A module at `path` below `pilotage/`."""
    return Module(path, Path(path).parts[0].removesuffix(".py"), ast.parse(source, path))


def imported_names(module: Module) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that the module imports, wherever in the file it does so."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = _base(module, node)
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def _base(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = ["pilotage", *Path(module.path).parts[:-1]]
    above = package[: len(package) - node.level + 1]
    return ".".join([*above, node.module] if node.module else above)
