"""Write the tables of docs/kubectl.md anew: commands that are tried, kinds that are served, Kubernetes' own suite.

    make kubectl-page

A table stands between `<!-- NAME: make kubectl-page -->` and `<!-- end -->`; everything else on the page is written by
hand. `tests/docs/test_kubectl_page.py` fails when a table is not what this program would write.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from tools.kubernetes_suite import FAILED, LIST, NOT_APPLICABLE, PASSED, read_list

from pilotage.sandbox.kinds.builtin_kinds import builtin_registry
from pilotage.sandbox.kinds.resources import ResourceType

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "kubectl.md"
COMMANDS = ROOT / "tests" / "data" / "kubectl_commands.yaml"
_TABLE = re.compile(r"(<!-- (\w+): make kubectl-page -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TriedCommand:
    """A command that a test runs, and a part of what it prints."""

    run: str
    shows: str = ""


def main() -> int:
    PAGE.write_text(page_with_tables(PAGE.read_text()))
    return 0


def tried_commands() -> dict[str, list[TriedCommand]]:
    """By what a user wants to do."""
    groups = yaml.safe_load(COMMANDS.read_text())
    return {about: [TriedCommand(**command) for command in commands] for about, commands in groups.items()}


def page_with_tables(text: str) -> str:
    """The page with its tables as they should be."""
    return _TABLE.sub(lambda found: f"{found[1]}\n{_TABLES[found[2]]()}\n{found[3]}", text)


def _commands() -> str:
    rows = ((about, ", ".join(_shown(commands))) for about, commands in tried_commands().items())
    return _table("to", "command (`kubectl ...`)", rows)


def _shown(commands: list[TriedCommand]) -> Iterator[str]:
    for run in dict.fromkeys(command.run.removeprefix("kubectl ").replace("|", "\\|") for command in commands):
        yield f"`{run}`"


def _kinds() -> str:
    groups = builtin_registry().groups()
    rows = ((f"{group or 'core'} {version}", kinds) for (group, version), kinds in _by_version(groups).items())
    return _table("group", "kinds (and what hangs below them)", rows)


def _by_version(groups: Mapping[str, list[str]]) -> dict[tuple[str, str], str]:
    registry = builtin_registry()
    found = {}
    for group in sorted(groups):
        for version in groups[group]:
            kinds = sorted(registry.in_group_version(group, version), key=lambda one: one.kind)
            found[group, version] = ", ".join(_kind(one) for one in kinds)
    return found


def _kind(resource_type: ResourceType) -> str:
    below = f" ({', '.join(sorted(resource_type.subresources))})" if resource_type.subresources else ""
    return f"{resource_type.kind}{below}"


def _effects() -> str:
    registry = builtin_registry()
    silent: dict[str, set[str]] = {}
    for group, versions in registry.groups().items():
        for version in versions:
            for one in registry.in_group_version(group, version):
                if one.no_effect:
                    silent.setdefault(one.no_effect, set()).add(one.kind)
    rows = ((", ".join(sorted(kinds)), why) for why, kinds in silent.items())
    return _table("kind", "why it is stored without effect", sorted(rows))


def _suite() -> str:
    specs = read_list(LIST).values()
    states = Counter(one.state for one in specs)
    lines = [
        f"Of {len(specs)} specs {states[PASSED]} pass, {states[FAILED]} fail, and {states[NOT_APPLICABLE]} cannot be "
        "passed by simulated pods:\n"
    ]
    reasons = Counter(one.reason for one in specs if one.state == NOT_APPLICABLE)
    lines.append(_table("reason", "specs", ((reason, str(count)) for reason, count in sorted(reasons.items()))))
    return "\n".join(lines)


def _table(left: str, right: str, rows: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> str:
    return "\n".join([f"| {left} | {right} |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows)]) + "\n"


_TABLES: Mapping[str, Callable[[], str]] = {
    "commands": _commands,
    "kinds": _kinds,
    "effects": _effects,
    "suite": _suite,
}

if __name__ == "__main__":
    sys.exit(main())
