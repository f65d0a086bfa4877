from __future__ import annotations

import io
from collections import Counter

import pytest
from rich.console import Console

from pilotage.cli.demo_picture import DrawnPod, NodeLine, NodeUse, PendingLine, Picture, WorkloadLine
from pilotage.cli.demo_tables import Painter
from pilotage.cli.demo_view import DemoView, Moment

GIB = 1 << 30
REASON = "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 Insufficient cpu."


def node(name: str, *notes: str) -> NodeLine:
    return NodeLine(name, NodeUse(3500, 4000), NodeUse(4 * GIB, 16 * GIB), NodeUse(7, 110), notes)


def moment(nodes: int = 2) -> Moment:
    workloads = (WorkloadLine("web", 0, 4, 3, 2, 1, Counter({"n0": 2, "n1": 1})),)
    pending = (PendingLine("default/web-4", 0, REASON),)
    lines = tuple(node(f"n{at}") for at in range(nodes))
    return Moment(Picture(lines, workloads, pending), (DrawnPod("web-3", "n1", 0),), 9.04, 6.04, "Ctrl-C ends.")


def rendered(renderable: object, width: int = 100, height: int = 40) -> str:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, no_color=True)
    console.print(renderable)
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "░░░░"), (1, "████"), (0.5, "██░░"), (0.03125, "▏░░░"), (0.99, "████"), (7, "████"), (-1, "░░░░")],
)
def test_a_bar_is_filled_to_an_eighth(share: float, text: str) -> None:
    assert Painter(is_unicode=True).bar(share, 4).plain == text


def test_a_bar_is_drawn_in_ascii_where_nothing_else_can_be_shown() -> None:
    assert Painter(is_unicode=False).bar(0.5, 8).plain == "####...."


def test_a_node_has_numbers_beside_its_bars() -> None:
    text = rendered(Painter(is_unicode=True).nodes([node("n", "gpu:NoSchedule")], 8))
    assert "3.5/4" in text and "4/16Gi" in text and "7/110" in text and "gpu:NoSchedule" in text


def test_nodes_that_do_not_fit_on_the_screen_are_counted() -> None:
    text = rendered(Painter(is_unicode=True).nodes([node(f"n{at}") for at in range(9)], 8, most=3))
    assert "n1 " in text and "n2 " not in text and "and 7 more" in text


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 40), (200, 60)])
@pytest.mark.parametrize("nodes", [2, 500])
def test_a_frame_fits_the_terminal(width: int, height: int, nodes: int) -> None:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, no_color=True)
    lines = console.render_lines(DemoView(console).frame(moment(nodes)))
    assert len(lines) <= height
    text = "".join(segment.text for line in lines for segment in line)
    assert "3 of 4 pods placed, 1 pending" in text
    assert "default/web-4" in text


def test_the_summary_gives_the_answer_first_and_the_reason_on_one_line() -> None:
    out = io.StringIO()
    DemoView(Console(file=out, width=120)).summary(moment())
    lines = out.getvalue().splitlines()
    assert lines[0] == "3 of 4 pods placed on 2 nodes in 6.04 s, 1 pending."
    assert lines[-2:] == ["Pending: default/web-4", REASON]
    assert "web       0         3/4     2        1     n0 x2, n1" in lines
    assert all(line == line.rstrip() for line in lines)
    assert "\x1b" not in out.getvalue()
