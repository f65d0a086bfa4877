"""What `pilotage top` shows of a scheduler, and what keys do."""

from __future__ import annotations

import io

import pytest
from msgspec.structs import replace

from pilotage.cli.terminal import PlainConsole
from pilotage.cli.top_view import Screen, TopView, who, why, wrapped
from pilotage.console.source import Waiting
from tests.console.looked_at import LookedAt, looked_at

WIDTH, HEIGHT = 80, 24


def waiting(name: str, message: str = "", plugins: tuple[str, ...] = ()) -> Waiting:
    return Waiting(f"Pod/{name}", "default", "Pod", name, "unschedulable", plugins, message, 1, 1.0, 0)


def drawn(seen: LookedAt, screen: Screen) -> list[str]:
    console = PlainConsole(width=WIDTH)
    console.file = io.StringIO()
    view = TopView(seen.source, "top")
    console.print(view.frame(screen, view.rows(screen.sort), HEIGHT))
    return console.file.getvalue().splitlines()


async def test_a_frame_has_numbers_reasons_nodes_and_who_waits_and_fits_a_small_terminal() -> None:
    async with looked_at() as seen:
        await seen.cluster.create_pods("web")
        await seen.cluster.create_pods(*(f"giant-{number}" for number in range(40)), cpu="999")
        await seen.pass_seconds(3.0)
        lines = drawn(seen, Screen())
        assert len(lines) <= HEIGHT and max(map(len, lines)) <= WIDTH
        text = "\n".join(lines)
        assert "1 on nodes" in text and "waiting  40: 40 unschedulable" in text and "NodeResourcesFit: 40" in text
        assert "nodes    3; requested cpu" in text and "default/pod/giant-0" in text and "more below" in text
        assert "giant-39" in "\n".join(drawn(seen, Screen(sort="n", chosen=39)))


async def test_without_anybody_who_waits_it_says_so() -> None:
    async with looked_at(nodes=0) as seen:
        text = "\n".join(drawn(seen, Screen()))
        assert "no pod waits" in text and "nodes    none" in text


def test_keys_choose_open_scroll_and_sort() -> None:
    rows = [waiting("a"), waiting("b")]
    screen = Screen()
    for key, chosen in (("down", 1), ("down", 1), ("k", 0), ("page down", 1), ("up", 0), ("up", 0)):
        screen = screen.after(key, rows, HEIGHT)
        assert screen.chosen == chosen
    opened = screen.after("enter", rows, HEIGHT)
    assert opened.opened == ("default", "pod/a")
    assert opened.after("down", rows, HEIGHT).scrolled == 1 and opened.after("up", rows, HEIGHT).scrolled == 0
    assert opened.after("p", rows, HEIGHT) == opened and opened.after("escape", rows, HEIGHT).opened is None
    assert Screen(chosen=1).after("p", rows, HEIGHT) == Screen(sort="p")
    assert Screen().after("enter", [], HEIGHT) == Screen() and Screen().after("?", rows, HEIGHT) == Screen()


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (waiting("a", plugins=("NodePorts", "NodeResourcesFit")), "NodePorts, NodeResourcesFit"),
        (
            waiting("a", "0/3 nodes are available: 1 Too many pods, 2 Insufficient cpu. preemption: 0/3 nodes ..."),
            "Too many pods, Insufficient cpu",
        ),
        (waiting("a", "waiting for pods: 1 of 3"), "waiting for pods: 1 of 3"),
        (waiting("a"), "waits for its turn"),
    ],
)
def test_reasons_in_few_words(row: Waiting, text: str) -> None:
    assert why(row) == text


async def test_a_report_is_cut_and_scrolled_and_nothing_in_it_is_obeyed() -> None:
    async with looked_at() as seen:
        console = PlainConsole(width=WIDTH)
        console.file = io.StringIO()
        text = "\n".join(f"line {number} \x1b[2J\x07" for number in range(100))
        lines = wrapped(text, WIDTH)
        console.print(TopView(seen.source, "top").report(Screen(scrolled=95), lines, HEIGHT))
        shown = console.file.getvalue()
        assert len(shown.splitlines()) <= HEIGHT and "line 99" in shown and "of 100" in shown
        assert "\x1b" not in shown and "\x07" not in shown and r"\x1b[2J" in shown


def test_a_long_line_of_a_report_goes_on_below_and_nobody_scrolls_beyond_the_end() -> None:
    lines = wrapped("first\n  - " + "many words " * 30 + "\n" + "x" * 200, WIDTH)
    assert max(map(len, lines)) <= WIDTH and lines[2].startswith("    many") and len(lines) > 7
    assert Screen(scrolled=10_000).first_of(100, HEIGHT) == 78 and Screen(scrolled=5).first_of(10, HEIGHT) == 0


async def test_priorities_are_a_column_where_they_differ() -> None:
    async with looked_at() as seen:
        await seen.cluster.create_pods("giant", cpu="999")
        await seen.pass_seconds(3.0)
        assert "PRIORITY" not in "\n".join(drawn(seen, Screen()))


def test_who_waits_is_said_as_kubectl_would() -> None:
    assert who(replace(waiting("a"), owner="ReplicaSet/web-1")) == "default/rs/web-1"
    assert who(waiting("a")) == "default/pod/a" and who(replace(waiting("a"), owner="Job/x/y")) == "default/job/x/y"
