"""The page: whole, without a script, and with text where a trace has markup."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pilotage.lab.comparison import Group, compare
from pilotage.lab.divergence import divergence
from pilotage.lab.figures import figures
from pilotage.lab.report import report, write_report
from pilotage.lab.results import Result, ResultError
from tests.lab.test_simulation import busy_day
from tests.lab.worlds import node, played, pod, put

_VOID = {"meta", "link", "br"}
_KNOWN = {
    *("html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "p", "b", "div", "section"),
    *("table", "thead", "tbody", "tr", "th", "td", "details", "summary"),
    *("svg", "line", "text", "polyline", "rect"),
}


class _Parsed(HTMLParser):
    """What is in a page; it must be well nested."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: dict[str, int] = {}
        self.attributes: set[str] = set()
        self.text: dict[str, list[str]] = {}
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.attributes |= {name for name, _ in attrs}
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and data.strip():
            self.text.setdefault(self.open[-1], []).append(data.strip())


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    changes = busy_day(60)
    return [played(tmp_path_factory.mktemp("busy"), *changes, every=5.0, ties="random", seed=seed) for seed in range(2)]


def test_one_run(busy: list[Result]) -> None:
    page = _Parsed(report(compare([Group("monday", busy[:1])])))
    assert page.text["h1"] == ["monday"]
    assert page.text["h2"] == [
        "Measures", "Utilisation", "Fragmentation: stranded capacity", "Pods", "Waiting times", "What was rejected",
        "Nodes by cpu", "Gangs and Jobs", "Never placed",
    ]  # fmt: skip
    assert page.tags["svg"] == page.tags["details"] == 7, "behind each picture, its numbers"
    assert "difference" not in page.text["th"]


def test_two_runs_side_by_side_and_pod_by_pod(busy: list[Result]) -> None:
    comparison = compare([Group("a", busy[:1]), Group("b", busy[1:])])
    found = divergence(busy[0], busy[1], most=3)
    page = _Parsed(report(comparison, [("a, b", found)], title="Two seeds"))
    assert page.text["h1"] == ["Two seeds"] and page.tags["svg"] == sum(len(figures(one)) for one in busy)
    assert {"difference", "p", "a (n=1)", "b (n=1)"} <= set(page.text["th"])
    assert page.text["h2"][-1] == "Pod by pod: a, b" and f"And {found.left_out} more." in page.text["p"]


def test_it_loads_nothing_and_runs_nothing(busy: list[Result]) -> None:
    text = report(compare([Group("monday", busy[:1])]))
    page = _Parsed(text)
    assert page.tags.keys() <= _KNOWN
    assert not {name for name in page.attributes if name.startswith("on") or name in ("style", "src", "href")}
    style = re.findall(r"<style>(.*?)</style>", text, flags=re.DOTALL)
    digest = b64encode(sha256(style[0].encode()).digest()).decode()
    assert len(style) == 1 and f"default-src &#39;none&#39;; style-src &#39;sha256-{digest}&#39;" in text
    assert "url(" not in style[0] and "@import" not in style[0]


def test_markup_in_a_trace_is_text(tmp_path: Path) -> None:
    evil = '"><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[31m'
    big = pod(f"big{evil}").requests(cpu="64").owner("Job", evil).priority(3)
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    results = [
        played(
            folder, put(0, node(f"n{evil}").cpu("2").allocatable(evil, 4).label(evil, evil)),
            put(1, pod(f"p{evil}").requests(cpu="1").owner("Job", evil), 50.0), put(2, big), ties=ties,
        )
        for folder, ties in zip(folders, ("random", "first"), strict=True)
    ]  # fmt: skip
    found = divergence(results[0], results[1])
    text = report(compare([Group(evil, results[:1]), Group(f"b{evil}", results[1:])]), [(evil, found)], title=evil)
    page = _Parsed(text)
    assert page.tags.keys() <= _KNOWN, "no element that is not the page's own"
    assert "onerror" not in page.attributes and "\u202e" not in text and "\x1b" not in text
    assert "&lt;script&gt;" in text


def test_more_than_six_are_in_the_table_only(busy: list[Result]) -> None:
    page = _Parsed(report(compare([Group(f"g{n}", busy[:1]) for n in range(8)])))
    assert page.tags["svg"] == 7 * 6 and "2 more are in the table only." in page.text["p"]


def test_a_page_that_cannot_be_written(busy: list[Result], tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="cannot be written"):
        write_report(tmp_path / "none" / "x.html", compare([Group("a", busy[:1])]))
