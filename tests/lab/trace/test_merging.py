"""Traces side by side: nothing is lost, nothing is confused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.lab.trace.cutting import TracePart, cut
from pilotage.lab.trace.format import TraceRecord, Writer
from pilotage.lab.trace.merging import Merge

from .making import gone, header, node, observed, pod, put, read_all, told, write


def priority(value: int, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high", **metadata},
        "value": value,
    }


def merged(paths: list[Path], **options: Any) -> list[TraceRecord]:
    return list(Merge(paths, options.pop("alignment", "start"), **options).records())


def test_records_come_by_time(tmp_path: Path) -> None:
    one = write(tmp_path / "a.jsonl", [put(1, pod("p", namespace="a")), put(9, pod("r", namespace="a"))])
    two = write(tmp_path / "b.jsonl", [put(4, pod("q", namespace="b"), 3)])
    assert told(merged([one, two])) == [(1, "p", None), (4, "q", 3), (9, "r", None)]


def test_names_that_clash_have_a_prefix_wherever_they_stand(tmp_path: Path) -> None:
    running = observed("p", "a", 2.0)
    running["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "a"}
    records = [put(0, node("a")), put(1, running, 5), gone(9, "q")]
    paths = [write(tmp_path / name, records) for name in ("a.jsonl", "b.jsonl")]
    merging = Merge(paths, "start")
    made = list(merging.records())
    assert [str(one.name.namespace) + "/" + one.name.name for one in made if one.name is not None] == [
        "/a",
        "/t2-a",
        "default/p",
        "t2-default/p",
        "default/q",
        "t2-default/q",
    ]
    copy = made[3].put_object()
    assert copy["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "t2-a"}
    assert copy["metadata"]["annotations"]["trace.pilotage.dev/observed-node"] == "t2-a"
    assert made[1].put_object()["metadata"]["labels"]["kubernetes.io/hostname"] == "t2-a"
    assert merging.renamed == 2


def test_what_both_have_in_common_is_put_once(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / "a.jsonl", [put(0, priority(1, uid="1"))]),
        write(tmp_path / "b.jsonl", [put(0, priority(1, uid="2"))]),
        write(tmp_path / "c.jsonl", [put(0, priority(2))]),
    ]
    assert told(merged(paths)) == [(0, "high", None), (0, "t3-high", None)]


def test_the_pods_of_all_on_the_nodes_of_the_first(tmp_path: Path) -> None:
    one = write(tmp_path / "a.jsonl", [put(0, node("a"))])
    two = write(tmp_path / "b.jsonl", [put(0, node("a")), put(0, node("b")), put(1, pod("p"), 2)])
    assert told(merged([one, two], shares_nodes=True)) == [(0, "a", None), (1, "p", 2)]


def test_by_the_clock_each_trace_stays_where_it_was(tmp_path: Path) -> None:
    later = header().start.replace("00:00:00", "01:00:00")
    with Writer(tmp_path / "late.jsonl", type(header())(pilotage_trace=1, start=later)) as out:
        out.put(5, observed("p", "a", 6.0, namespace="a"))
    early = write(tmp_path / "early.jsonl", [put(1, pod("q", namespace="b"))])
    merging = Merge([tmp_path / "late.jsonl", early], "clock")
    assert merging.header.start == header().start
    made = list(merging.records())
    assert told(made) == [(1, "q", None), (3605, "p", None)]
    assert made[1].put_object()["metadata"]["annotations"]["trace.pilotage.dev/observed-bound-at"] == "3606.000"


_PODS = st.lists(st.tuples(st.integers(0, 20), st.sampled_from("abc"), st.integers(1, 9)), max_size=15)


@given(_PODS)
def test_what_is_taken_apart_by_namespace_can_be_put_together(
    tmp_path_factory: pytest.TempPathFactory, pods: list[tuple[int, str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    records = [put(0, node("n")), put(0, priority(1))]
    records += [put(at, pod(f"p{i}", namespace=space), float(runs)) for i, (at, space, runs) in enumerate(sorted(pods))]
    whole = write(folder / "whole.jsonl", records)
    paths = [
        write(folder / f"{space}.jsonl", cut(iter(read_all(whole)), TracePart(namespaces=frozenset({space}))))
        for space in "abc"
    ]
    made = merged(paths, shares_nodes=True)
    assert sorted(told(made)) == sorted(told(records))
