"""Which pods went elsewhere, and where two runs part."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.lab.divergence import (
    ELSEWHERE,
    LATER,
    NOT_THERE,
    ONLY_FIRST,
    ONLY_SECOND,
    SAME,
    SOONER,
    divergence,
    reason_kind,
)
from pilotage.lab.results import Result
from tests.lab.worlds import Change, node, played, pod, put


def run(folder: Path, name: str, *changes: Change) -> Result:
    (folder / name).mkdir()
    return played(folder / name, *changes)


def test_the_same_run_does_not_part(tmp_path: Path) -> None:
    pods = [put(0, node("n")), put(1, pod("p"), 5.0)]
    found = divergence(run(tmp_path, "a", *pods), run(tmp_path, "b", *pods))
    assert found.first is None and found.pods == [] and found.counts[SAME] == 1


def test_a_node_less(tmp_path: Path) -> None:
    pods = [put(n, pod(f"p{n}").requests(cpu="1"), 50.0) for n in range(1, 5)]
    pods.append(put(5, pod("big").requests(cpu="2"), 5.0))
    first = run(tmp_path, "a", put(0, node("a").cpu("2")), put(0, node("b").cpu("2")), *pods)
    second = run(tmp_path, "b", put(0, node("a").cpu("2")), *pods)
    found = divergence(first, second, most=2)
    assert found.first is not None and found.first.pod in ("default/p1", "default/p2", "default/p3")
    assert (
        found.first.at <= 3
        and len(found.pods) == 2
        and found.left_out == sum(found.counts.values()) - 2 - (found.counts[SAME])
    )
    assert found.reasons == {"Insufficient cpu": 3}
    back = divergence(second, first)
    assert back.counts[SOONER] == found.counts[LATER] and back.counts[ELSEWHERE] == found.counts[ELSEWHERE]


def test_pods_that_one_run_never_placed(tmp_path: Path) -> None:
    p = put(1, pod("p").requests(cpu="4"), 5.0)
    first = run(tmp_path, "a", put(0, node("n").cpu("4")), p)
    second = run(tmp_path, "b", put(0, node("n").cpu("2")), p)
    assert divergence(first, second).counts[ONLY_FIRST] == 1
    assert divergence(second, first).counts[ONLY_SECOND] == 1
    moved = divergence(first, second).first
    assert moved is not None and moved.second.reason is not None and "Insufficient cpu" in moved.second.reason


def test_a_pod_that_came_again_in_one_run_only(tmp_path: Path) -> None:
    low = put(1, pod("low").requests(cpu="2").owner("Job", "j"), 50.0)
    high = put(2, pod("high").requests(cpu="2").priority(9), 5.0)
    first = run(tmp_path, "a", put(0, node("n").cpu("4")), low, high)
    second = run(tmp_path, "b", put(0, node("n").cpu("2")), low, high)
    assert divergence(first, second).counts[NOT_THERE] == 1


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (
            "0/6 nodes are available: 4 Insufficient cpu, 2 node(s) had untolerated taint(s). preemption: 0/6 nodes"
            " are available: 6 No preemption victims found for incoming pod.",
            "Insufficient cpu, node(s) had untolerated taint(s)",
        ),
        ("0/2 nodes are available: 2 Insufficient cpu.", "Insufficient cpu"),
        ("waits for 3 more pods of its group", "waits for 3 more pods of its group"),
        ("", ""),
        ("x" * 9000, "x" * 200),
    ],
)
def test_alike_reasons_are_one(message: str, kind: str) -> None:
    assert reason_kind(message) == kind
