"""Links lead somewhere, and files that the pages name are there."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator

import pytest

from tests.docs.pages import DOCS, PAGES, ROOT, Page, page

_TOP = "src|tests|docs|deploy|examples|tools|benchmarks|requirements|changes"
_FROM_ROOT = re.compile(rf"(?<![\w/.-])(?:{_TOP})/[\w./*<>-]*")
_OBJECTS = {"deploy/web", "deploy/NAME"}
"""Deployments, as kubectl names them."""
_SOURCE = re.compile(r"[\w/]+\.py")
_BARE = re.compile(r"\w+\.py")
_MODULE = re.compile(r"python -m (tests[\w.]*)")


def _is_there(pattern: str) -> bool:
    """Does the path exist? `<name>`, `*` and `...` stand for anything."""
    return any(ROOT.glob(re.sub(r"<\w+>|\.\.\.", "*", pattern).rstrip("/.")))


def _paths(one: Page) -> Iterator[str]:
    """Paths from the root of the repository, in text and in blocks."""
    for text in (*one.spans(), *one.command_lines()):
        yield from (path for path in _FROM_ROOT.findall(text) if path not in _OBJECTS)


def _sources(one: Page) -> Iterator[str]:
    """Source files that a page names from its package on, such as `kube/client.py`."""
    for span in one.spans():
        if _SOURCE.fullmatch(span) and "/" in span and not re.match(rf"(?:{_TOP})/", span):
            yield span


@pytest.mark.parametrize("one", PAGES, ids=str)
def test_every_link_leads_to_a_file_and_a_heading(one: Page) -> None:
    lost = []
    for link in one.links():
        target, _, anchor = link.partition("#")
        if "://" in link:
            continue
        file = (one.path.parent / target).resolve() if target else one.path
        if not file.exists() or (anchor and anchor not in page(file).headings()):
            lost.append(link)
    assert lost == []


@pytest.mark.parametrize("one", PAGES, ids=str)
def test_every_path_exists(one: Page) -> None:
    assert [path for path in _paths(one) if not _is_there(path)] == []
    assert [name for name in _sources(one) if not _is_there(f"src/pilotage/**/{name}")] == []


@pytest.mark.parametrize("one", [one for one in PAGES if "contributing" in str(one)], ids=str)
def test_every_file_that_a_guide_names_without_its_folder_exists(one: Page) -> None:
    names = {path.name for folder in ("src", "tests", "tools", "benchmarks") for path in (ROOT / folder).rglob("*.py")}
    assert [span for span in one.spans() if _BARE.fullmatch(span) and span not in names] == []


@pytest.mark.parametrize("one", PAGES, ids=str)
def test_every_module_that_is_run_exists(one: Page) -> None:
    named = {module for text in (*one.spans(), *one.command_lines()) for module in _MODULE.findall(text)}
    assert [module for module in named if importlib.util.find_spec(module) is None] == []


def test_every_page_is_in_the_index() -> None:
    """docs/README.md lists every page below docs, but for the decisions, which have an index of their own."""
    indexes = [page(ROOT / "docs/README.md"), page(ROOT / "docs/decisions/README.md")]
    listed = {(index.path.parent / link.partition("#")[0]).resolve() for index in indexes for link in index.links()}
    assert [str(one) for one in DOCS if one.path not in listed and one.path != indexes[0].path] == []


def test_every_package_in_the_picture_exists() -> None:
    named = re.findall(r"(\w+)/(?= |<)", (ROOT / "docs/architecture.svg").read_text())
    assert len(named) > 10 and [name for name in named if not _is_there(f"src/pilotage/{name}/__init__.py")] == []


def test_a_wrong_path_is_found() -> None:
    text = (
        "See `src/pilotage/no.py`, `kube/no.py`, [x](no.md) and `docs/commands/<name>.md`.\n\n    python tools/no.py\n"
    )
    one = Page(ROOT / "docs/sample.md", text)
    assert [path for path in _paths(one) if not _is_there(path)] == ["src/pilotage/no.py", "tools/no.py"]
    assert list(_sources(one)) == ["kube/no.py"] and one.links() == ["no.md"]
