"""The worked example of the laboratory runs, and leaves what it says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.examples.sandbox_world import EXAMPLES

SCRIPT = EXAMPLES.parent / "research" / "comparison" / "spread_or_pack.py"


def test_packing_needs_fewer_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(SCRIPT))["main"]([str(tmp_path), "--pods", "60", "--seeds", "2"])
    rows = {line[:20].strip(): line.split() for line in capsys.readouterr().out.splitlines()}
    nodes = rows["nodes_used mean"]
    assert float(nodes[nodes.index("pack") + 1]) < float(nodes[nodes.index("spread") + 1])
    assert {"report.html", "utilisation.svg", "nodes.svg", "waits.csv"} <= {path.name for path in tmp_path.iterdir()}
    assert len((tmp_path / "waits.csv").read_text().splitlines()) == 1 + 4 * 60
