"""A program replays a trace with its own plugin, and reads the result as columns."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from pilotage.api import CycleState, NodeView, Plugin, Pod, Score
from pilotage.library import Prices, Result, compare, figures, report, simulate
from tests.lab.worlds import node, pod, put, write


class Last(Plugin, Score):
    """Prefers nodes whose names come late, above everything else."""

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return 100 if node.name == "z" else 0


def test_a_trace_with_a_plugin_and_the_result_as_columns(tmp_path: Path) -> None:
    changes = [put(0, node("a")), put(0, node("z")), *(put(n, pod(f"p{n}"), runs=5.0) for n in range(1, 5))]
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- plugins: {multiPoint: {enabled: [{name: Last, weight: 1000}]}}\n"
    )
    trace = write(tmp_path / "t.jsonl.gz", changes)
    result = simulate(trace, tmp_path / "r", config=config, plugins=[Last], every=1.0)
    assert set(result.pods["node"]) == {"z"}
    assert np.array_equal(result.pods["ended"] - result.pods["bound"], np.full(4, 5.0))
    assert Result(tmp_path / "r").series["running"].max() == 4


def test_a_probe_takes_the_place_of_the_measures(tmp_path: Path) -> None:
    trace = write(tmp_path / "t.jsonl", [put(0, node("a")), put(1, pod("p"), runs=1.0), put(5, pod("q"), runs=1.0)])
    result = simulate(trace, tmp_path / "r", every=1.0, probe=lambda cluster: {"pods": cluster.placed_count})
    assert list(result.series) == ["time", "pods"]
    assert result.series["pods"].tolist()[:7] == [0, 1, 0, 0, 0, 1, 0]


def test_runs_are_compared_and_drawn(tmp_path: Path) -> None:
    pods = [put(n, pod(f"p{n}").requests(cpu="1"), runs=60.0) for n in range(1, 6)]
    narrow = write(tmp_path / "n.jsonl", [put(0, node("a").cpu("1")), *pods])
    wide = write(tmp_path / "w.jsonl", [put(0, node("a").cpu("8")), *pods])
    runs = {"narrow": [simulate(narrow, tmp_path / "n")], "wide": [simulate(wide, tmp_path / "w")]}
    found = compare(runs, Prices(per_hour={}, default=2.0))
    cell = found.row("wait p99").cells[1]
    assert cell is not None and cell.difference is not None and cell.difference < -100
    assert "<h1>narrow and wide</h1>" in report(found)
    drawn = figures(runs["wide"][0])
    assert all(ElementTree.fromstring(picture).tag.endswith("svg") for picture in drawn.values())
    with pytest.raises(ValueError, match="no results of empty"):
        compare({"empty": []})
