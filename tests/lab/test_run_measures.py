"""Measures of one run, of simulations small enough to be counted by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pilotage.lab.prices import Prices
from pilotage.lab.run_measures import busy_seconds, classes, measured, waits
from tests.lab.worlds import EAGER, node, played, pod, put


def test_who_never_had_a_node_waited_to_the_end(tmp_path: Path) -> None:
    big = pod("big").requests(cpu="8")
    result = played(tmp_path, put(0, node("n").cpu("1")), put(10, pod("p").requests(cpu="1"), 20.0), put(10, big))
    found = measured(result)
    assert (found["pods"], found["placed"], found["never placed"]) == (2, 1, 1)
    assert (found["wait p50"], found["wait p99"]) == (0, result.totals["seconds"] - 10)


def test_pods_that_ran_already_were_not_decided_about(tmp_path: Path) -> None:
    there = pod("there").requests(cpu="1").node("n")
    result = played(tmp_path, put(0, node("n").cpu("2")), put(5, there, 10.0), put(6, pod("p"), 10.0))
    tried, waited = waits(result)
    assert result.pods["pod"][tried].tolist() == ["default/p"] and not waited.any()


def test_waits_by_priority_and_by_owner(tmp_path: Path) -> None:
    result = played(
        tmp_path,
        put(0, node("n").cpu("1")),
        put(1, pod("a").requests(cpu="1").owner("Job", "j"), 10.0),
        put(2, pod("b").requests(cpu="1").priority(5), 10.0),
        options=EAGER,
        every=1.0,
    )
    found = measured(result)
    assert found["wait owner=Job p50"] >= 0 and {"wait priority=0 p90", "wait priority=5 p90"} <= found.keys()
    assert "wait owner=none p50" in found and found["evicted"] == 1, "the pod of priority 5 took the place"


def test_the_rare_classes_are_one(tmp_path: Path) -> None:
    pods = [put(n, pod(f"p{n}").priority(n), 1.0) for n in range(1, 13)]
    result = played(tmp_path, put(0, node("n")), *pods)
    found = dict(classes(result, np.ones(12, dtype=np.bool_)))
    assert len(found) == 9 and found[" priority=others"].sum() == 4


def test_hours_and_costs(tmp_path: Path) -> None:
    result = played(
        tmp_path,
        put(0, node("n").label("pool", "a")),
        put(0, node("m").label("pool", "b").unschedulable()),
        put(0, pod("p"), 1800.0),
        put(900, pod("q"), 1800.0),  # together they are there for three quarters of an hour
    )
    assert busy_seconds(result) == {"n": 2700}
    prices = Prices(per_hour={"a": 4.0}, label="pool")
    found = measured(result, prices)
    assert found["node hours used"] == pytest.approx(0.75) and found["cost of nodes used"] == pytest.approx(3.0)
    assert found["cost of nodes there"] == pytest.approx(4 * result.totals["seconds"] / 3600)
    assert found["nodes without a price"] == 1


def test_fairness_over_namespaces(tmp_path: Path) -> None:
    def one(name: str, namespace: str) -> dict[str, object]:
        made = pod(name).requests(cpu="1").json()
        made["metadata"]["namespace"] = namespace
        return made

    first = played(tmp_path, put(0, node("n").cpu("1")), put(0, one("a", "x"), 10.0))
    assert "fairness" not in measured(first), "one namespace has nobody to share with"
    both = played(
        tmp_path, put(0, node("n").cpu("1")), put(1, one("a", "x"), 100.0), put(1, one("b", "y"), 100.0), options=EAGER
    )
    # One runs all of its time, the other half of it, as it waited for as long as it ran.
    assert measured(both)["fairness"] == pytest.approx(1.5**2 / (2 * 1.25), abs=0.01)
