"""The policies of examples/research/fragmentation: by hand on a few nodes, and with OPENB_DATA on the real cluster."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parents[2] / "examples" / "research" / "fragmentation"
sys.path.append(str(HERE))

import openb  # noqa: E402
import reproduce  # noqa: E402
from fgd import Typical  # noqa: E402
from gpu_books import WHOLE, GpuBooks  # noqa: E402

from pilotage.framework.plugin_files import load_plugin_file  # noqa: E402
from pilotage.library import Result, simulate  # noqa: E402
from pilotage.testing import node  # noqa: E402

DATA = os.environ.get("OPENB_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="OPENB_DATA names no directory with the data of the experiment")
PART = openb.Request(1000, 1024, 1, 500, "")
PAIR = openb.Request(1000, 1024, 2, 1000, "")
PLAIN = openb.Request(1000, 1024, 0, 0, "")


def gpu_node(name: str, gpus: int, model: str = "T4") -> dict[str, Any]:
    built = node(name).cpu("64").memory("256Gi").label(openb.MODEL, model).allocatable(openb.GPUS, gpus)
    return built.json()


def placed(folder: Path, policy: str, nodes: list[dict[str, Any]], *pods: openb.Request) -> list[str]:
    """Where these pods go, one after the other; "" if nowhere."""
    trace, config = folder / "t.jsonl", folder / "scheduler.yaml"
    openb.write_trace(trace, nodes, list(pods))
    config.write_text(reproduce.configuration(policy, openb.typical(list(pods))))
    ties = "random" if policy == "Random" else "first"
    result = simulate(trace, folder / "r", config=config, ties=ties, seed=1, until=1, every=1)
    by_name = dict(zip(result.pods["pod"].tolist(), result.pods["node"].tolist(), strict=True))
    return [by_name[name] for name in sorted(by_name)]


@pytest.mark.parametrize("policy", reproduce.FILES)
def test_gpus_are_never_given_twice(tmp_path: Path, policy: str) -> None:
    nodes = [gpu_node("a", 2), gpu_node("b", 1)]
    where = placed(tmp_path, policy, nodes, *[PART] * 7)
    assert sorted(where) == ["", *["a"] * 4, *["b"] * 2], "six halves fit on three GPUs, the seventh does not"


@pytest.mark.parametrize("policy", [policy for policy in reproduce.FILES if policy != "Random"])
def test_halves_share_a_gpu_so_that_a_pair_still_fits(tmp_path: Path, policy: str) -> None:
    assert placed(tmp_path, policy, [gpu_node("a", 3)], PART, PART, PAIR) == ["a"] * 3


def test_a_pod_goes_where_its_model_is(tmp_path: Path) -> None:
    wanted = PART._replace(models="V100|P100")
    nodes = [gpu_node("a", 8), gpu_node("b", 1, "P100")]
    assert placed(tmp_path, "BestFit", nodes, wanted, wanted, wanted) == ["b", "b", ""]


def test_fgd_keeps_whole_gpus_together(tmp_path: Path) -> None:
    nodes = [gpu_node("pair", 2), gpu_node("single", 1)]
    assert placed(tmp_path, "FGD", nodes, PART, PAIR, PLAIN)[:2] == ["single", "pair"]


def test_clustering_keeps_kinds_apart(tmp_path: Path) -> None:
    where = placed(tmp_path, "GpuClustering", [gpu_node("a", 4), gpu_node("b", 4)], PART, PAIR, PART, PAIR)
    assert where[0] == where[2] != where[1] == where[3]


@pytest.mark.parametrize("policy", reproduce.FILES)
def test_a_policy_has_less_than_a_hundred_lines(policy: str) -> None:
    path = HERE / reproduce.FILES[policy]
    assert len(path.read_text().splitlines()) < 100
    assert [plugin.plugin_name() for plugin in load_plugin_file(path)] == [policy]


def test_fragments_by_hand() -> None:
    books = GpuBooks()
    books.node_put(None, node("n").cpu("4").allocatable(openb.GPUS, 2).build())
    books.left[0, :2] = 300, 1000
    typical = Typical({"1000 1 500": 0.5, "1000 0 0": 0.25, "9000 1 100": 0.25})
    found = typical.fragments(books.left, np.array([4000]), books.model, books.models)
    # Half a GPU: the 300 are too little. No GPU, and too much CPU: all 1,300 are of no use.
    assert found.tolist() == [0.5 * 300 + 0.5 * 1300]


@needs_data
def test_the_empty_cluster_has_the_fragmentation_that_was_published() -> None:
    assert DATA is not None
    books = GpuBooks()
    free = []
    for number, one in enumerate(openb.nodes(Path(DATA))):
        amounts = one["status"]["allocatable"]
        built = node(one["metadata"]["name"]).allocatable(openb.GPUS, int(amounts[openb.GPUS])).build()
        books.node_put(None, built)
        free.append(int(amounts["cpu"].removesuffix("m")))
        assert books.row_of[built.name] == number
    typical = Typical(openb.typical(openb.workload(Path(DATA), "default")))
    fragments = typical.fragments(books.left, np.array(free), books.model, books.models).sum()
    assert 100 * fragments / (books.count.sum() * WHOLE) == pytest.approx(13.94, abs=0.005)


def test_the_report_says_what_is_near_and_what_is_not() -> None:
    ours = {("a", "FGD", 100): (5.0, 4.0, 3.0), ("b", "FGD", 100): (7.0, 4.0, 3.0), ("c", "FGD", 100): (1.0, 1.0, 1.0)}
    theirs = {("a", "FGD", 100): (5.2, 4.0, 3.0), ("b", "FGD", 100): (6.0, 4.0, 3.0)}
    lines = list(reproduce.report(ours, theirs, {("a", "FGD"): 10, ("b", "FGD"): 10, ("c", "FGD"): 3}))
    assert lines[-2:] == [
        "at 100 %, unallocated: 1 of 2 published cells within 0.3 points, worst +1.00 (b, FGD)",
        "not ten seeds: c FGD (3)",
    ]


def test_a_policy_that_fails_is_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.py").write_text(
        "from gpu_books import GpuPolicy\n"
        "class BestFit(GpuPolicy):\n"
        "    def points(self, rows, free_cpu, wanted):\n"
        "        raise ValueError('what')\n"
    )
    monkeypatch.setitem(reproduce.FILES, "BestFit", str(tmp_path / "broken.py"))
    result = simulate_one(tmp_path)
    with pytest.raises(SystemExit, match=r"BestFit.*what"):
        reproduce.checked(result)


def simulate_one(folder: Path) -> Result:
    trace, config = folder / "t.jsonl", folder / "scheduler.yaml"
    openb.write_trace(trace, [gpu_node("a", 2)], [PART])
    config.write_text(reproduce.configuration("BestFit", {}))
    return simulate(trace, folder / "r", config=config, until=1, every=0.25)


@needs_data
def test_one_run_is_near_what_was_published(tmp_path: Path) -> None:
    assert DATA is not None
    run = reproduce.Run(Path(DATA), tmp_path, "default", "DotProd", 42)
    result = reproduce.perform(run)
    assert isinstance(result, Result) and reproduce.perform(run).totals == result.totals, "it is not run again"
    ours = reproduce.mean_curves([(run, result)])["default", "DotProd", 100]
    theirs = openb.published(Path(DATA))["default", "DotProd", 100]
    assert ours[0] == pytest.approx(theirs[0], abs=0.6), "a single seed: three standard deviations"
