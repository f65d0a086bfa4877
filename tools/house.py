"""Figures of the source tree: how large it is, and how much of it a reader meets on the way.

    .venv/bin/python tools/house.py [FOLDER OF A CHECKOUT]

Hops are counted on the walks in docs/, which the tests named test_walk.py follow; a checkout that has none shows "-".
To compare with an older commit: `git worktree add ../older COMMIT`, and give its folder.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median

SMALL, MANY = 60, 7
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
WALKS = {
    "a pod, from watch event to binding": ("docs/architecture.md", "## A pod's walk"),
    "a Job in a queue": ("docs/workload-queueing.md", "**The walk of a Job**"),
    "a POST in the sandbox": ("docs/architecture.md", "**The walk of a POST**"),
}


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    source = root / "src" / "pilotage"
    texts = {path: path.read_text() for path in sorted(source.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    lines = {path: text.count("\n") for path, text in texts.items()}
    functions = [one for tree in trees.values() for one in ast.walk(tree) if isinstance(one, FUNCTION)]
    lengths = [(one.end_lineno or one.lineno) - one.lineno + 1 for one in functions]
    print(f"files {len(texts):,}, lines {sum(lines.values()):,}")
    print(f"median file {median(lines.values()):g} lines, longest {max(lines.values())}")
    print(f"median function {median(lengths):g} lines, longer than 50: {sum(length > 50 for length in lengths)}")
    long = [path.relative_to(source) for path, count in lines.items() if count > 450]
    print(f"files of more than 450 lines: {len(long)}", *long)
    twice = sorted(name for name, count in class_names(trees, source).items() if count > 1)
    print(f"class names that stand twice, outside model: {len(twice)} {' '.join(twice)}".rstrip())
    lonely = [path for path, count in importers(trees, source).items() if count == 1 and lines[path] < SMALL]
    print(
        f"modules under {SMALL} lines with one importer: {len(lonely)}", *(path.relative_to(source) for path in lonely)
    )
    wide = sum(arguments(one) > MANY for one in functions)
    print(f"functions with more than {MANY} arguments: {wide}")
    for walk, (page, heading) in WALKS.items():
        print(f"files on the walk of {walk}: {hops(root / page, heading) or '-'}")
    locked = re.findall(r"^[\w.-]+==", (root / "requirements" / "runtime.lock").read_text(), re.MULTILINE)
    print(f"packages locked for run time: {len(locked)}")


def class_names(trees: dict[Path, ast.Module], source: Path) -> Counter[str]:
    outside = [tree for path, tree in trees.items() if source / "model" not in path.parents]
    return Counter(
        one.name for tree in outside for one in tree.body if isinstance(one, ast.ClassDef) and one.name[0] != "_"
    )


def importers(trees: dict[Path, ast.Module], source: Path) -> Counter[Path]:
    """How many files import each file."""
    files = {dotted(path, source): path for path in trees if path.stem not in ("__init__", "__main__")}
    return Counter(files[name] for tree in trees.values() for name in set(imported(tree)) if name in files)


def imported(tree: ast.Module) -> Iterator[str]:
    for one in ast.walk(tree):
        if isinstance(one, ast.ImportFrom) and one.module:
            yield one.module
            yield from (f"{one.module}.{part.name}" for part in one.names)
        elif isinstance(one, ast.Import):
            yield from (part.name for part in one.names)


def dotted(path: Path, source: Path) -> str:
    return ".".join((source.name, *path.relative_to(source).with_suffix("").parts))


def arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def hops(page: Path, heading: str) -> int:
    section = page.read_text().partition(heading)[2].partition("\n## ")[0]
    return len(set(re.findall(r"`([\w/]+\.py): \w+`", section)))


if __name__ == "__main__":
    main()
