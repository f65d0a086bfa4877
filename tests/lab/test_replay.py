"""What a trace says happens, what the scheduler decides follows: in virtual time, one pod after the other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pilotage.assembly import SchedulerOptions
from pilotage.config.feature_gates import FeatureGates
from tests.lab.worlds import delete, node, played, pod, put, story


def test_a_pod_runs_for_its_lifetime_from_its_binding_on(tmp_path: Path) -> None:
    result = played(
        tmp_path,
        put(0, node("n").cpu("1")),
        put(5, pod("first").requests(cpu="1"), runs=100),
        put(10, pod("second").requests(cpu="1"), runs=30),
    )
    first, second = story(result, "first"), story(result, "second")
    assert (first["bound"], first["ended"], first["node"], first["attempts"]) == (5, 105, "n", 1)
    assert (second["bound"], second["ended"], second["end"]) == (105, 135, "ended")
    assert second["reason"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert result.totals["waited"] == {"mean": 47.5, "p50": 0, "p90": 95, "p99": 95, "max": 95}
    assert result.totals["complete"] and result.totals["pods"]["attempts"] == 3


def test_a_pod_without_a_lifetime_is_there_until_it_is_deleted(tmp_path: Path) -> None:
    changes = [put(0, node("n")), put(1, pod("stays")), put(1, pod("goes")), delete(9, "Pod", "goes")]
    result = played(tmp_path, *changes)
    assert "end" not in story(result, "stays") and story(result, "stays")["bound"] == 1
    assert (story(result, "goes")["end"], story(result, "goes")["ended"]) == ("deleted", 9)


def test_a_pod_that_runs_already_is_not_placed_again(tmp_path: Path) -> None:
    changes = [put(0, node("a").cpu("1")), put(0, node("b").cpu("1"))]
    running = pod("runs").requests(cpu="1").spec(nodeName="b")
    result = played(tmp_path, *changes, put(3, running, runs=10), put(4, pod("p").requests(cpu="1"), runs=1))
    assert story(result, "runs") == {
        "arrived": 3, "priority": 0, "attempts": 0, "bound": 3, "node": "b", "ended": 13, "end": "ended",
    }  # fmt: skip
    assert story(result, "p")["node"] == "a"


def test_a_new_node_and_a_changed_one_wake_pods(tmp_path: Path) -> None:
    result = played(
        tmp_path,
        put(0, node("n").unschedulable()),
        put(1, pod("small").requests(cpu="1")),
        put(1, pod("large").requests(cpu="8")),
        put(20, node("n")),
        put(40, node("big").cpu("16")),
    )
    assert story(result, "small")["bound"] == 20 and story(result, "large")["bound"] == 40


def test_who_waits_for_nothing_that_comes_is_told_why_at_the_end(tmp_path: Path) -> None:
    result = played(tmp_path, put(0, node("n")), put(1, pod("p").requests(cpu="64")))
    ((reason, count),) = result.totals["reasons"].items()
    assert reason.startswith("0/1 nodes are available: 1 Insufficient cpu.") and count == 1
    assert result.totals["pods"]["waiting"] == 1 and story(result, "p")["attempts"] > 1, "the sweep tries it again"


def test_it_ends_when_it_is_told_to(tmp_path: Path) -> None:
    result = played(tmp_path, put(0, node("n")), put(5, pod("in")), put(50, pod("out")), until=20)
    assert result.pods["pod"].tolist() == ["default/in"]
    assert result.totals["seconds"] <= 20


def test_a_victim_with_a_controller_comes_again_and_one_without_does_not(tmp_path: Path) -> None:
    victim = pod("job-1").requests(cpu="1").owner("Job", "job")
    result = played(
        tmp_path,
        put(0, node("n").cpu("2")),
        put(1, victim, runs=100),
        put(1, pod("bare").requests(cpu="1"), runs=100),
        put(11, pod("boss").requests(cpu="2").priority(1000), runs=50),
    )
    boss, again = story(result, "boss"), story(result, "job-1-again-1")
    assert story(result, "job-1")["end"] == story(result, "bare")["end"] == "evicted"
    assert boss["bound"] == pytest.approx(11.5, abs=1.0), "when its victims are gone"
    assert again["replaces"] == "default/job-1" and again["bound"] == boss["ended"]
    assert again["ended"] - again["bound"] == 100, "what it had done is lost"
    assert result.totals["pods"]["evicted"] == 2 and result.totals["pods"]["replacements"] == 1


def test_a_replacement_can_go_on_where_the_victim_ended(tmp_path: Path) -> None:
    result = played(
        tmp_path,
        put(0, node("n").cpu("1")),
        put(1, pod("job-1").requests(cpu="1").owner("Job", "job"), runs=100),
        put(11, pod("boss").requests(cpu="1").priority(1000), runs=50),
        resumes_evicted=True,
    )
    again = story(result, "job-1-again-1")
    assert again["ended"] - again["bound"] == pytest.approx(100 - (story(result, "job-1")["ended"] - 1))


def test_the_trace_deletes_the_replacement_of_a_pod_too(tmp_path: Path) -> None:
    result = played(
        tmp_path,
        put(0, node("a").cpu("1")),
        put(1, pod("web-1").requests(cpu="1").owner("ReplicaSet", "web")),
        delete(10, "Node", "a"),
        put(20, node("b").cpu("1")),
        delete(30, "Pod", "web-1"),
    )
    assert story(result, "web-1")["end"] == "lost"
    again = story(result, "web-1-again-1")
    assert (again["bound"], again["ended"], again["end"]) == (20, 30, "deleted")


def test_a_pod_of_a_stateful_set_comes_again_under_its_name(tmp_path: Path) -> None:
    owned = pod("db-0").requests(cpu="1").owner("StatefulSet", "db")
    changes = [put(0, node("a").cpu("1")), put(1, owned), delete(10, "Node", "a"), put(20, node("b").cpu("1"))]
    result = played(tmp_path, *changes)
    assert result.pods["pod"].tolist() == ["default/db-0", "default/db-0"]
    assert result.pods["node"].tolist() == ["a", "b"]


def test_other_nodes_take_the_place_of_those_of_the_trace(tmp_path: Path) -> None:
    changes = [put(0, node("old").cpu("1")), put(1, pod("p").requests(cpu="4").spec(nodeName="old"), runs=5)]
    result = played(tmp_path, *changes, nodes=[node("new").cpu("4")])
    assert story(result, "p")["node"] == "new"


def test_a_gang_waits_for_all_of_its_members(tmp_path: Path) -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    options = replace(SchedulerOptions(), feature_gates=FeatureGates({"GenericWorkload": True}))
    named = [pod(f"m{number}").requests(cpu="1").spec(schedulingGroup={"podGroupName": "g"}) for number in (1, 2)]
    result = played(
        tmp_path,
        put(0, node("n").cpu("2")),
        put(0, pod("other").requests(cpu="1"), runs=60),
        put(1, group),
        put(2, named[0], runs=10),
        put(30, named[1], runs=10),
        options=options,
    )
    assert story(result, "m1")["bound"] == story(result, "m2")["bound"] >= 60


def test_what_scheduling_does_not_read_is_counted(tmp_path: Path) -> None:
    lease = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"}, "spec": {}}
    result = played(tmp_path, put(0, node("n")), put(1, lease), put(2, pod("p"), runs=1))
    assert result.totals["ignored"] == {"Job": 1}


def test_months_without_anything_to_do_take_no_longer_than_minutes(tmp_path: Path) -> None:
    changes = [put(0, node("n")), put(1, pod("a"), runs=3e7), put(2e7, pod("b"), runs=1)]
    result = played(tmp_path, *changes, every=1e7)
    assert story(result, "a")["ended"] == 30_000_001 and story(result, "b")["ended"] == 20_000_001
    assert result.series["time"].tolist() == [0, 1e7, 2e7, 3e7]


def test_the_series_says_what_was_used_stranded_and_waited(tmp_path: Path) -> None:
    result = played(
        tmp_path,
        put(0, node("a").cpu("4").memory("4Gi")),
        put(0, node("b").cpu("4").memory("4Gi")),
        put(5, pod("one").requests(cpu="3", memory="1Gi")),
        put(5, pod("two").requests(cpu="3", memory="1Gi")),
        put(15, pod("three").requests(cpu="3", memory="1Gi")),
        until=20,
    )
    series = {name: column.tolist() for name, column in result.series.items()}
    assert series["time"] == [0, 10, 20]
    assert series["used_cpu"] == [0, 0.75, 0.75] and series["used_memory"] == [0, 0.25, 0.25]
    assert series["stranded_cpu"] == [0, 0.25, 0.25], "a core is free on each node, of no use to who wants three"
    assert series["stranded_memory"] == [0, 0.75, 0.75]
    assert series["nodes_used"] == [0, 2, 2] and series["waiting"] == [0, 0, 1]


@pytest.mark.parametrize(("ties", "choices"), [("first", 1), ("random", 4)])
def test_ties_are_broken_as_it_is_said(tmp_path: Path, ties: str, choices: int) -> None:
    nodes = [put(0, node(f"n{number}")) for number in range(4)]
    pods = [put(10 * number, pod(f"p{number}"), runs=1) for number in range(1, 41)]
    result = played(tmp_path, *nodes, *pods, ties=ties, seed=5)
    assert len(np.unique(result.pods["node"])) == choices and result.totals["ties"] == ties
