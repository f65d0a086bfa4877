"""The walk of a Job in the docs is true: every file and function exists, and it does not get longer unnoticed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.source_tree import ROOT

DOCS = Path(__file__).parents[2] / "docs" / "workload-queueing.md"
MOST_FILES = 25


def walk() -> list[tuple[str, str]]:
    """File and function of every stop, in order."""
    text = DOCS.read_text().partition("**The walk of a Job**")[2]
    return re.findall(r"`([\w/]+\.py): (\w+)`", text)


@pytest.mark.parametrize(("path", "function"), walk())
def test_a_stop_of_the_walk_exists(path: str, function: str) -> None:
    tree = ast.parse((ROOT / path).read_text())
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert function in defined


def test_the_walk_of_a_job_needs_few_files() -> None:
    files = dict.fromkeys(path for path, _ in walk())
    assert 20 <= len(files) <= MOST_FILES, f"{len(files)} files"
