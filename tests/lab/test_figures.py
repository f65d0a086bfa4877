"""The pictures of a run, and the numbers behind them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from pilotage.lab import figures as module
from pilotage.lab.figures import figures
from pilotage.lab.results import Result
from tests.lab.test_simulation import busy_day
from tests.lab.worlds import node, played, pod, put


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return played(tmp_path_factory.mktemp("busy"), *busy_day(80), every=5.0)


def test_all_that_there_is_to_show(busy: Result) -> None:
    drawn = figures(busy)
    assert list(drawn) == [
        "utilisation",
        "fragmentation",
        "queues",
        "waiting",
        "reasons",
        "rejections",
        "nodes",
        "jobs",
    ]
    for figure in drawn.values():
        assert ElementTree.fromstring(str(figure.picture)).attrib["role"] == "img"
        assert figure.rows and all(len(row) == len(figure.headings) for row in figure.rows)


def test_the_numbers_are_those_of_the_result(busy: Result) -> None:
    drawn = figures(busy)
    assert drawn["waiting"].rows[0][:2] == ["all pods", str(busy.totals["pods"]["pods"])]
    assert [row[0] for row in drawn["nodes"].rows] == [f"n{number}" for number in range(6)]
    assert drawn["jobs"].rows[0][0] == "default/j"
    assert drawn["reasons"].headings == drawn["rejections"].headings == ["time", "Insufficient cpu"]


def test_what_was_rejected_and_why_over_time(tmp_path: Path) -> None:
    result = played(
        tmp_path, put(0, node("a").cpu("4")), put(5, pod("p").requests(cpu="8")), put(5, pod("q").requests(cpu="8")),
        put(95, node("b").cpu("8").unschedulable()), put(195, node("c").cpu("8")), put(395, node("d").cpu("4")),
    )  # fmt: skip
    rejected = result.rejections
    rows = list(zip(*(column.tolist() for column in rejected.values()), strict=True))
    both, cpu = "Insufficient cpu, node(s) were unschedulable", "Insufficient cpu"
    assert rows[:3] == [(10.0, cpu, 2, 2), (100.0, cpu, 0, 0), (100.0, both, 2, 2)]
    assert rows[3] == (200.0, both, 1, 1), "the other one has a node"
    pods = result.totals["pods"]
    assert sum(rejected["attempts"].tolist()) == pods["attempts"] - pods["bound"]
    drawn = figures(result)
    assert drawn["reasons"].headings == drawn["rejections"].headings == ["time", both, cpu]
    assert [row[1:] for row in drawn["reasons"].rows[:3]] == [["0", "1"], ["0", "2"], ["0", "2"]]


def test_how_full_a_node_was(tmp_path: Path) -> None:
    result = played(
        tmp_path, put(0, node("a").cpu("4")), put(0, node("b").cpu("4").unschedulable()),
        put(0, pod("p").requests(cpu="1")), put(0, pod("q").requests(cpu="2"), 300.0), put(600, node("c")),
    )  # fmt: skip
    table = module._fullness(result, "cpu")
    assert np.allclose(table[0, :40], 0.75) and np.allclose(table[0, 40:], 0.25) and not table[1:].any()


def test_many_nodes_are_drawn_together(tmp_path: Path) -> None:
    result = played(tmp_path, *(put(0, node(f"n{n:03}")) for n in range(130)), put(1, pod("p").requests(cpu="1"), 9.0))
    rows = figures(result)["nodes"].rows
    assert len(rows) == 60 and rows[0][0] == "n000 and 2 more"


def test_a_run_in_which_nothing_came(tmp_path: Path) -> None:
    assert figures(played(tmp_path, put(0, node("n")), until=1.0)).keys() <= {"nodes"}
