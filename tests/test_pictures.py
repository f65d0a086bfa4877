"""Pictures are well-formed, their names are text, and what they show is where it belongs."""

from __future__ import annotations

from math import nan
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from pilotage.pictures import Span, amount, duration, heat_map, lanes, lines, percent, standalone

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</title></svg><script>alert("1")</script>\u202e\x1b[2J'
ENDS = ("0 s", "1 h")


def parsed(picture: Markup) -> ElementTree.Element:
    return ElementTree.fromstring(str(picture))


def test_lines_go_where_the_values_are() -> None:
    svg = parsed(lines("Use", [0, 1, 2], {"cpu": [0.0, 0.5, 1.0], "memory": [1.0, 1.0, 0.0]}, ends=ENDS, form=percent))
    first, second = svg.findall(f"{SVG}polyline")
    points = [tuple(map(float, point.split(","))) for point in first.attrib["points"].split()]
    assert [x for x, _ in points] == sorted(x for x, _ in points) and len(points) == 3
    assert points[0][1] > points[1][1] > points[2][1], "up is less in SVG"
    assert second.find(f"{SVG}title").text == "memory"  # type: ignore[union-attr]
    assert svg.attrib["aria-label"] == "Use. cpu: last 100.0 %, most 100.0 %; memory: last 0.0 %, most 100.0 %"


@pytest.mark.parametrize("values", [[], [0.0], [0.0, 0.0]])
def test_lines_of_nothing(values: list[float]) -> None:
    svg = parsed(lines("Use", [float(n) for n in range(len(values))], {"cpu": values}, ends=ENDS))
    assert len(svg.findall(f"{SVG}polyline")) == 1


def test_cells_of_one_shade_are_one_rectangle() -> None:
    svg = parsed(heat_map("Nodes", [("a", [0, 0, 0.5, 0.55, 1.0, nan]), ("b", [0.0] * 6)], ends=ENDS))
    assert [rect.attrib["class"] for rect in svg.findall(f"{SVG}rect")] == ["heat h5", "heat h9"]
    half, full = svg.findall(f"{SVG}rect")
    assert float(half.attrib["width"]) == pytest.approx(2 * float(full.attrib["width"]))


def test_lanes_have_their_pieces_in_order_of_time() -> None:
    rows = [("job", [Span(0, 30, "waits", "waits"), Span(30, 60, "runs", "runs")])]
    waits, runs = parsed(lanes("Jobs", rows, span=(0, 60), ends=ENDS)).findall(f"{SVG}rect")
    assert float(waits.attrib["x"]) + float(waits.attrib["width"]) == pytest.approx(float(runs.attrib["x"]))


@pytest.mark.parametrize(
    "picture",
    [
        lines(HOSTILE, [0, 1], {HOSTILE: [0, 1]}, ends=(HOSTILE, HOSTILE), notes={HOSTILE: HOSTILE}),
        heat_map(HOSTILE, [(HOSTILE, [1.0])], ends=ENDS),
        lanes(HOSTILE, [(HOSTILE, [Span(0, 1, "runs", HOSTILE)])], span=(0, 1), ends=ENDS),
    ],
)
def test_hostile_names_are_text(picture: Markup) -> None:
    tags = {element.tag.removeprefix(SVG) for element in parsed(picture).iter()}
    assert tags <= {"svg", "line", "text", "polyline", "rect", "title"}
    assert "\u202e" not in picture and "\x1b" not in picture


@given(st.text(max_size=200))
def test_any_name_gives_a_picture(name: str) -> None:
    assert parsed(lines("l", [0, 1], {name: [0, 1]}, ends=ENDS)).find(f"{SVG}text") is not None


def test_a_picture_alone_brings_its_style() -> None:
    svg = ElementTree.fromstring(standalone(heat_map("Nodes > 1", [("a", [1.0])], ends=ENDS)))
    style = svg.find(f"{SVG}style")
    assert style is not None and style.text is not None and ".h9" in style.text
    assert svg.attrib["aria-label"] == "Nodes > 1"


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "-"), (0, "0 s"), (0.5, "0.5 s"), (130, "2.17 min"), (7200, "2 h"), (259200, "3 d")]
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("value", "text"), [(1234, "1,234"), (0.25, "0.25"), (12.34, "12.3"), (1e9, "1,000,000,000")])
def test_amounts(value: float, text: str) -> None:
    assert amount(value) == text
