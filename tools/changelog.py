"""Puts CHANGELOG.md together from the fragments in changes/.

python tools/changelog.py              # rewrites the section "Unreleased" (make changelog)
python tools/changelog.py 0.2.0        # a release: the section gets this name and today's date, the fragments go
python tools/changelog.py --check      # exits with 1 if the section is not up to date

A fragment is `changes/NUMBER.TYPE.md`: a few sentences for users. NUMBER sorts the fragments and is that of an issue or
of a batch of work; TYPE is one of feature, fix, removal, docs. A blank line begins a new entry of the list.
"""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TITLES = {"removal": "Removed", "feature": "Added and changed", "fix": "Fixed", "docs": "Documentation"}
"""Types of fragments in the order of the page: first what a reader has to act on."""
_NAME = re.compile(r"(\d+)\.(\w+)\.md")
_HEAD = """# Changelog

What users notice, newest first. `make changelog` puts it together from `changes/`, where newer changes may wait. How
versions are numbered and how something is removed: [API stability](docs/api-stability.md).
"""


class Fragment(NamedTuple):
    """One file of changes/."""

    number: int
    type: str
    text: str


class BadFragmentError(ValueError):
    """A file in changes/ that has no place in the changelog; the text names it and says why."""


def fragments(folder: Path) -> list[Fragment]:
    """The fragments, newest first."""
    return sorted(map(_read, folder.glob("*.md")), reverse=True)


def _read(file: Path) -> Fragment:
    name, text = _NAME.fullmatch(file.name), file.read_text().strip()
    if name is None or name[2] not in TITLES:
        raise BadFragmentError(f"{file.name}: call it NUMBER.TYPE.md with one of the types {', '.join(TITLES)}")
    if not text:
        raise BadFragmentError(f"{file.name}: is empty")
    return Fragment(int(name[1]), name[2], text)


def section(title: str, given: list[Fragment]) -> str:
    """One version: a heading for each type, an entry for each paragraph."""
    parts = [f"## {title}\n"]
    for kind, heading in TITLES.items():
        entries = [entry for one in given if one.type == kind for entry in _entries(one.text)]
        if entries:
            parts.append(f"### {heading}\n\n" + "\n".join(entries) + "\n")
    return "\n".join(parts)


def _entries(text: str) -> Iterator[str]:
    """Paragraphs as items of a list; links lead from the root of the repository instead of from changes/."""
    for paragraph in re.split(r"\n\s*\n", text.replace("](../", "](")):
        yield "- " + paragraph.strip().replace("\n", "\n  ")


def renewed(page: str, title: str, given: list[Fragment]) -> str:
    """The page with the section of what is not released yet replaced; sections of releases stay."""
    released = re.search(r"^## (?!Unreleased)", page, flags=re.MULTILINE)
    after = "\n" + page[released.start() :] if released else ""
    return f"{_HEAD}\n{section(title, given)}{after}" if given else f"{_HEAD}{after}"


def main(arguments: list[str], root: Path = ROOT) -> int:
    page, folder = root / "CHANGELOG.md", root / "changes"
    version = next((word for word in arguments if not word.startswith("-")), "")
    title = f"{version} ({datetime.date.today().isoformat()})" if version else "Unreleased"
    try:
        wanted = renewed(page.read_text() if page.exists() else "", title, fragments(folder))
    except BadFragmentError as error:
        print(f"error: changes/{error}", file=sys.stderr)
        return 2
    if "--check" in arguments:
        return int(page.read_text() != wanted)
    page.write_text(wanted)
    for file in folder.glob("*.md") if version else ():
        file.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
