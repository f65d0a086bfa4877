"""What is in a trace, in numbers."""

from __future__ import annotations

import msgspec

from pilotage.lab.trace.format import TraceRecord
from pilotage.lab.trace.summary import KindSummary, TraceSummary, sparkline, summed
from pilotage.rng import seeded

from .making import gap, gone, header, node, observed, pod, put


def summary(records: list[TraceRecord]) -> TraceSummary:
    return summed(records, seeded(0)).summary(header(source="test"), True, 10)


def test_everything_is_counted_once() -> None:
    found = summary(
        [
            put(0, node("a")),
            put(0, pod("old", on="a"), 50),
            put(10, node("a")),
            put(20, observed("p", "a", 23.0), 100),
            put(30, pod("p", labels={"x": "y"})),
            put(3700, pod("q", cpu="2", namespace="n")),
            gap(3800, 60, "out"),
            gone(3900, "q", "n"),
            gone(4000, "a", kind="Node"),
        ]
    )
    assert found.kinds == [KindSummary("Node", 1, 0, 1, 1), KindSummary("Pod", 1, 2, 1, 1)]
    pods = found.pods
    assert (pods.came, pods.with_lifetime, pods.until_deleted, pods.running_at_start, pods.observed_bound) == (
        3,
        2,
        1,
        1,
        1,
    )
    assert pods.arrivals_per_hour == [1, 1]
    assert pods.waits == {"p50": 3.0, "p90": 3.0, "p99": 3.0} and pods.lifetimes["p99"] == 100
    assert pods.by_shape == [("cpu=1", 2), ("cpu=2", 1)] and pods.by_namespace == [("default", 2), ("n", 1)]
    assert (found.seconds, found.records, found.gap_seconds, found.gaps[0].reason) == (4000, 9, 60, "out")
    assert msgspec.json.decode(msgspec.json.encode(found))["pods"]["arrivalsPerHour"] == [1, 1]


def test_a_pod_that_is_not_readable_is_counted_and_named() -> None:
    found = summary([put(1, {**pod("p"), "spec": {"containers": 7}})])
    assert found.pods.by_owner == [("not readable", 1)]


def test_of_nothing_there_is_nothing() -> None:
    found = summary([])
    assert (found.records, found.kinds, found.pods.arrivals_per_hour) == (0, [], [])


def test_bars() -> None:
    assert sparkline([], 10) == ""
    assert sparkline([0, 1, 8], 10) == " ▂█"
    assert len(sparkline([1] * 100, 10)) == 10
    assert sparkline([0, 0], 10) == "  "
