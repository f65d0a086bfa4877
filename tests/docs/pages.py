"""The pages of the project as text, and what stands in them as code: paths, links, command lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)((?:    .*\n)+)")
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_COMMENT = re.compile(r"\s+# .*$")


@dataclass(frozen=True)
class Page:
    """One Markdown file of the repository."""

    path: Path
    text: str

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cached_property
    def prose(self) -> str:
        """The text without blocks of code."""
        return _INDENTED.sub("\n", _FENCE.sub("", self.text))

    def links(self) -> list[str]:
        return _LINK.findall(_SPAN.sub("code", self.prose))

    def spans(self) -> list[str]:
        """What stands between backticks in a line of text, which may go on in the next line."""
        return [" ".join(span.split()) for span in _SPAN.findall(self.prose)]

    def command_lines(self) -> Iterator[str]:
        """Lines of blocks as typed into a shell: without prompt and comment, continued lines joined."""
        blocks = [body for kind, body in _FENCE.findall(self.text) if kind in ("", "console")]
        synopses = [re.sub(r"\n {8,}", " ", block) for block in _INDENTED.findall(_FENCE.sub("", self.text))]
        for block in (*blocks, *synopses):
            for line in block.replace("\\\n", " ").splitlines():
                yield from _COMMENT.sub("", line.strip().removeprefix("$ ")).split(" && ")

    def headings(self) -> set[str]:
        """The anchors of the page, as GitHub makes them."""
        titles = re.findall(r"^#+ (.*)$", _FENCE.sub("", self.text), flags=re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def page(path: Path) -> Page:
    return Page(path, path.read_text())


PACKAGES = sorted(init.parent for init in ROOT.glob("src/pilotage/*/__init__.py"))
DOCS = [page(path) for path in sorted(ROOT.glob("docs/**/*.md"))]
PAGES = [
    *(page(ROOT / name) for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *DOCS,
    *(page(path) for path in sorted([*ROOT.glob("examples/**/*.md"), *ROOT.glob("src/**/*.md")])),
]
