"""Runs in groups, and what is said about them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pilotage.lab.comparison import Group, as_document, compare, grouped
from pilotage.lab.prices import Prices
from pilotage.lab.results import Result, ResultError
from tests.lab.worlds import node, played, pod, put


def run(folder: Path, name: str, *, seed: int = 0, ties: str = "random", cpu: str = "2", every: float = 10.0) -> Result:
    """Two pods on two nodes; with little cpu the second one waits."""
    pods = [put(1, pod(f"p{n}").requests(cpu="1"), 60.0) for n in range(4)]
    (folder / name).mkdir()
    nodes = [put(0, node(f"n{n}").cpu(cpu)) for n in range(2)]
    result = played(folder / name, *nodes, *pods, seed=seed, ties=ties, every=every)
    moved = folder / f"{name}.result"
    result.directory.rename(moved)
    return Result(moved)


def test_seeds_of_the_same_inputs_are_a_group(tmp_path: Path) -> None:
    results = [
        run(tmp_path, "a-0"), run(tmp_path, "b-0", ties="first"),
        run(tmp_path, "a-1", seed=1), run(tmp_path, "b-1", ties="first", seed=1),
    ]  # fmt: skip
    assert [(group.name, group.seeds) for group in grouped(results)] == [("a", [0, 1]), ("b", [0, 1])]


def test_the_same_run_twice_is_an_error(tmp_path: Path) -> None:
    one = run(tmp_path, "a")
    with pytest.raises(ResultError, match=r"given twice \(seed 0\)"):
        grouped([one, Result(one.directory)])


def test_groups_of_one_name_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    groups = grouped([run(tmp_path / "x", "a"), run(tmp_path / "y", "a", ties="first")])
    assert [group.name for group in groups] == ["a", "a (2)"]


def test_differences_to_the_first_group(tmp_path: Path) -> None:
    wide = Group("wide", [run(tmp_path, f"wide-{seed}", seed=seed) for seed in range(2)])
    narrow = Group("narrow", [run(tmp_path, f"narrow-{seed}", seed=seed, cpu="1") for seed in range(2)])
    found = compare([wide, narrow])
    first, second = found.row("wait p99").cells
    assert first is not None and second is not None
    assert (first.mean, first.difference, first.p) == (0, None, None)
    assert second.mean > 50 and second.difference == second.mean and len(second.values) == 2
    assert found.remarks[0] == "the runs are of different traces: differences are not those of the schedulers alone"
    assert "so few runs: p cannot be less than 0.333; with 4 seeds each it can" in found.remarks
    with pytest.raises(KeyError):
        found.row("luck")


def test_what_is_said_of_one_run_and_of_seeds_without_effect(tmp_path: Path) -> None:
    same = Group("same", [run(tmp_path, f"s-{seed}", seed=seed, ties="scheduler") for seed in range(2)])
    found = compare([same, Group("one", [run(tmp_path, "one")])])
    assert "same: the seed changes nothing (ties: scheduler)" in found.remarks
    assert any("one run of a group says nothing about chance" in remark for remark in found.remarks)
    assert compare([Group("one", [same.results[0]])]).remarks == []


def test_nodes_without_a_price_are_said(tmp_path: Path) -> None:
    found = compare([Group("a", [run(tmp_path, "a")])], Prices(per_hour={"large": 1.0}))
    assert found.remarks == ["2 nodes have no price and count as free: the list may give a default"]


def test_as_json(tmp_path: Path) -> None:
    document = as_document(compare([Group("a", [run(tmp_path, "a")]), Group("b", [run(tmp_path, "b", ties="first")])]))
    again = msgspec.json.decode(msgspec.json.encode(document))
    assert [group["name"] for group in again["groups"]] == ["a", "b"] and again["groups"][0]["seeds"] == [0]
    assert again["measures"]["placed"]["b"] == {
        "values": [4.0], "mean": 4.0, "deviation": None, "difference": 0.0, "p": None
    }  # fmt: skip
