"""How much of the core the tests reach, in branches, package by package; exits with 1 below the floor.

    make test COVERAGE=yes        runs this after the tests; pyproject.toml says which packages are measured

Branches, not lines: a line that ran says nothing of the condition that was never false.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

FLOOR = 95.0
WORST_FILES = 10


def main(report: Path) -> int:
    reached: dict[str, int] = defaultdict(int)
    all_of: dict[str, int] = defaultdict(int)
    missing: list[tuple[int, str]] = []
    for name, file in json.loads(report.read_text())["files"].items():
        inside = name.partition("pilotage/")[2]
        package, summary = inside.partition("/")[0], file["summary"]
        reached[package] += summary["covered_branches"]
        all_of[package] += summary["num_branches"]
        missing.append((summary["missing_branches"], inside))
    if not sum(all_of.values()):
        print(f"{report}: no branch was measured", file=sys.stderr)
        return 1
    for package in sorted(all_of):
        print(f"{package:12} {_percent(reached[package], all_of[package])}")
    total = 100 * sum(reached.values()) / sum(all_of.values())
    print(f"{'all':12} {_percent(sum(reached.values()), sum(all_of.values()))}")
    if total >= FLOOR:
        return 0
    print(f"branch coverage is below {FLOOR:g} %; files with the most branches that no test takes:", file=sys.stderr)
    for count, name in sorted(missing, reverse=True)[:WORST_FILES]:
        print(f"  {count:4} {name}", file=sys.stderr)
    return 1


def _percent(reached: int, branches: int) -> str:
    share = 100 * reached / branches if branches else 100.0
    return f"{share:5.1f} % of {branches} branches"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
