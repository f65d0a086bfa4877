"""Each package says in a README what it is for, where to begin, what it imports, and what it never does."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.docs.pages import PACKAGES, page
from tests.source_tree import imported_names, modules
from tests.test_layers import ALLOWED, EXCEPTIONS

_NAME_IN_FILE = re.compile(r"`(\w+)`(?: and `(\w+)`)?\s+in\s+`([\w/]+\.py)`")
_PARTS = re.compile(r"\*\*(Begin with|Imports|Imported by|Never)\*\*")

_PACKAGES = {package.name for package in PACKAGES}
_IMPORTS: defaultdict[str, set[str]] = defaultdict(set)
for _module in modules():
    for _, _name in imported_names(_module):
        _root, _, _rest = _name.partition(".")
        _part = _rest.partition(".")[0]
        if _root == "pilotage" and _part in _PACKAGES - {_module.part}:
            _IMPORTS[_module.part].add(_part)


def _may_import(part: str) -> set[str]:
    return ALLOWED[part] | {name.split(".")[1] for who, name in EXCEPTIONS if who == part}


def _section(package: Path, title: str) -> str:
    """What stands after one of the bold words, up to the next one."""
    pieces = _PARTS.split(" ".join(page(package / "README.md").text.split()))
    return pieces[pieces.index(title) + 1]


def _named_packages(text: str) -> set[str]:
    return {name for name in re.findall(r"`(\w+)`", text) if name in ALLOWED}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_every_package_has_a_readme_with_the_same_parts(package: Path) -> None:
    text = (package / "README.md").read_text()
    assert text.startswith(f"# pilotage.{package.name}\n")
    assert _PARTS.findall(" ".join(text.split())) == ["Begin with", "Imports", "Imported by", "Never"]
    assert len(text.splitlines()) <= 20, "about ten lines; the rest belongs into docstrings and docs/"


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_the_files_and_names_that_it_mentions_exist(package: Path) -> None:
    one = page(package / "README.md")
    files = [span for span in one.spans() if span.endswith(".py") and not span.startswith(("tests/", "tools/"))]
    assert [name for name in files if not list(package.glob(name))] == []
    mentioned = [(name, file) for *names, file in _NAME_IN_FILE.findall(one.prose) for name in names if name]
    assert mentioned, "say where to begin: `Name` in `file.py`"
    assert [f"{name} in {file}" for name, file in mentioned if name not in _defined(package / file)] == []


def _defined(file: Path) -> set[str]:
    """The names that a module gives a value at its top."""
    tree = ast.parse(file.read_text())
    named = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    targets += [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
    return named | {target.id for target in targets if isinstance(target, ast.Name)}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_it_names_what_the_package_imports_and_no_more_than_it_may(package: Path) -> None:
    part, text = package.name, _section(package, "Imports")
    named = _IMPORTS[part] if "everything" in text else _named_packages(text)
    assert named - _may_import(part) == set()
    assert _IMPORTS[part] - named == set(), "add them to the line that begins with **Imports**"


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_it_names_who_imports_the_package(package: Path) -> None:
    part, text = package.name, _section(package, "Imported by")
    users = {user for user, names in _IMPORTS.items() if part in names and user in _PACKAGES}
    named = users if "nearly everything" in text else _named_packages(text)
    assert [user for user in named if part not in _may_import(user)] == []
    assert users - named == set(), "add them after **Imported by**"
