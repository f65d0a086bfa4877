"""Parts of traces are traces that begin with the state of that moment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.lab.trace.cutting import TracePart, cut
from pilotage.lab.trace.format import TraceRecord

from .making import gap, gone, header, node, observed, pod, put, told


def part(records: list[TraceRecord], **fields: object) -> list[TraceRecord]:
    return list(cut(iter(records), TracePart(**fields)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([put(0, node("a"))], [(0, "a", None)]),
        ([put(0, node("a")), gone(5, "a", kind="Node")], []),
        ([put(1, pod("p"), 20)], [(0, "p", 11)]),
        ([put(1, pod("p"), 9)], []),
        ([put(1, observed("p", "a", 4.0), 20)], [(0, "p@a", 14)]),
        ([put(1, observed("p", "a", 14.0), 20)], [(0, "p", 20)]),
        ([put(1, observed("p", "a", 4.0))], [(0, "p@a", None)]),
        ([put(0, pod("p", on="a"), 30)], [(0, "p@a", 20)]),
        ([put(1, pod("p")), put(2, pod("p", labels={"x": "y"})), gone(15, "p")], [(0, "p", None), (5, "gone", "p")]),
        ([put(1, observed("p", "a", 4.0), 20), put(6, pod("p", labels={"x": "y"}))], [(0, "p@a", 14)]),
        ([put(12, pod("p"), 9), gap(13, 2)], [(2, "p", 9), (3, "gap", 2)]),
    ],
    ids=[
        "there",
        "went before",
        "runs on",
        "over",
        "on its node",
        "bound later",
        "on its node for good",
        "placed from the start",
        "pending",
        "changed",
        "comes later",
    ],
)
def test_the_state_at_the_beginning(records: list[TraceRecord], expected: list[tuple[object, ...]]) -> None:
    assert told(part(records, begin=10.0)) == expected


def test_a_change_before_the_beginning_is_in_the_state() -> None:
    records = [put(1, observed("p", "a", 4.0), 20), put(6, pod("p", labels={"x": "y"}))]
    (state,) = part(records, begin=10.0)
    assert state.put_object()["metadata"]["labels"] == {"x": "y"}


def test_observed_times_are_those_of_the_part() -> None:
    (made,) = part([put(12, observed("p", "a", 13.5), 5)], begin=10.0)
    assert made.put_object()["metadata"]["annotations"]["trace.pilotage.dev/observed-bound-at"] == "3.500"


def test_the_end_and_the_start_of_the_header() -> None:
    records = [put(1, pod("p")), put(3, pod("q"))]
    assert told(part(records, end=3.0)) == [(1, "p", None)]
    assert TracePart(begin=3600.0).header(header()).start.startswith("2026-11-16T01:00:00")


def test_namespaces_and_kinds() -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
    records = [put(0, node("a")), put(0, space), put(1, pod("p", namespace="n")), put(1, pod("q")), gone(2, "q")]
    assert told(part(records, namespaces=frozenset({"n"}))) == [(0, "a", None), (1, "p", None)]
    assert told(part(records, without_kinds=frozenset({"Pod"}))) == [(0, "a", None), (0, "other", None)]


def test_every_nth_pod_keeps_groups_whole() -> None:
    def member(name: str, group: str) -> dict[str, object]:
        obj = pod(name)
        obj["spec"]["schedulingGroup"] = {"podGroupName": group}
        return obj

    records = [
        put(1, member("a1", "a")),
        put(1, member("a2", "a")),
        put(2, member("b1", "b")),
        put(2, member("b2", "b")),
    ]
    records += [put(3, pod("c")), gone(4, "b1"), gone(5, "a1")]
    assert told(part(records, every_pod=2)) == [(1, "a1", None), (1, "a2", None), (3, "c", None), (5, "gone", "a1")]
    nodes = [put(0, node(name)) for name in "abc"] + [gone(1, "b", kind="Node"), gone(1, "c", kind="Node")]
    assert told(part(nodes, every_node=2)) == [(0, "a", None), (0, "c", None), (1, "gone", "c")]


def test_groups_whose_members_are_over_are_over() -> None:
    def group(name: str) -> dict[str, object]:
        metadata = {"name": name, "namespace": "default"}
        return {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": metadata}

    def member(name: str, of: str) -> dict[str, object]:
        obj = pod(name)
        obj["spec"]["schedulingGroup"] = {"podGroupName": of}
        return obj

    records = [put(1, group(name)) for name in ("over", "runs", "waits")]
    records += [put(2, member("a", "over"), 3), put(2, member("b", "runs"), 30)]
    assert told(part(records, begin=10.0)) == [(0, "runs", None), (0, "waits", None), (0, "b", 22)]


_TIMES = st.integers(0, 40)
_RECORDS = st.lists(
    st.one_of(
        st.builds(
            lambda at, name, runs: put(at, pod(f"p{name}", uid=f"{at}"), float(runs)),
            _TIMES,
            st.integers(0, 99),
            _TIMES,
        ),
        st.builds(lambda at, name: put(at, node(f"n{name}")), _TIMES, st.integers(0, 3)),
        st.builds(lambda at, name: gone(at, f"n{name}", kind="Node"), _TIMES, st.integers(0, 3)),
    ),
    max_size=15,
    unique_by=lambda record: record.name if record.name is not None and record.name.kind == "Pod" else id(record),
).map(lambda records: sorted(records, key=lambda record: record.at))


@given(_RECORDS)
def test_all_of_a_trace_is_the_trace(records: list[TraceRecord]) -> None:
    assert part(records) == records


@given(_RECORDS, st.integers(0, 40), st.integers(0, 40))
def test_cutting_twice_is_cutting_once(records: list[TraceRecord], first: int, second: int) -> None:
    twice = part(part(records, begin=float(first)), begin=float(second))
    assert sorted(told(twice)) == sorted(told(part(records, begin=float(first + second))))


@given(_RECORDS, st.integers(0, 40))
def test_what_comes_before_and_after_is_everything(records: list[TraceRecord], at: int) -> None:
    before, after = part(records, end=float(at)), part(records, begin=float(at))
    later = [record for record in told(records) if record[0] >= at]
    assert told(before) == [record for record in told(records) if record[0] < at]
    assert [(time + at, *rest) for time, *rest in told(after)][len(after) - len(later) :] == later
