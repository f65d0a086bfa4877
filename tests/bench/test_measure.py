"""How observations become figures."""

from pilotage.bench.measure import BindingTimeline, Figures, percentile


def timeline(*spans: tuple[float, float]) -> BindingTimeline:
    result = BindingTimeline()
    for number, (created, bound) in enumerate(spans):
        result.created[f"p{number}"] = created
        result.note_bound(f"p{number}", bound)
    return result


def figures(line: BindingTimeline, *, own: float | None = 0.002) -> Figures:
    return Figures(
        workload="W",
        server="in-process",
        nodes=3,
        init_pods=1,
        timeline=line,
        cpu_seconds=0.01,
        scheduler_cpu_seconds=own,
        peak_memory_mib=12.34,
    )


def test_percentile_is_the_smallest_value_that_enough_values_do_not_exceed() -> None:
    assert [percentile([1, 2, 3, 4], p) for p in (50, 75, 90, 99)] == [2, 3, 4, 4]
    assert percentile([7], 50) == 7
    assert percentile([], 99) == 0


def test_timeline_runs_from_the_first_creation_to_the_last_binding() -> None:
    line = timeline((10.0, 10.5), (10.25, 12.0))
    assert line.seconds() == 2.0
    assert line.latencies() == [0.5, 1.75]


def test_binding_of_a_pod_that_is_not_measured_is_ignored() -> None:
    line = timeline((0.0, 1.0))
    line.note_bound("init-1", 5.0)
    assert line.seconds() == 1.0


def test_only_the_first_binding_of_a_pod_counts() -> None:
    line = timeline((0.0, 1.0))
    line.note_bound("p0", 9.0)
    assert line.latencies() == [1.0]


def test_windows_count_full_seconds_only() -> None:
    line = timeline((0.0, 0.1), (0.0, 0.2), (0.0, 1.1), (0.0, 2.4))
    assert line.windows() == [1.0, 2.0]


def test_figures_as_json_have_the_documented_keys() -> None:
    facts = figures(timeline((0.0, 0.5), (0.0, 2.0))).as_json()
    assert facts["podsPerSecond"] == 1.0
    assert facts["cpuSecondsPer1000Pods"] == 5.0
    assert facts["schedulerMicrosPerPod"] == 1000.0
    assert facts["latencySeconds"] == {"p50": 0.5, "p90": 2.0, "p99": 2.0}
    assert facts["peakMemoryMiB"] == 12.3
    assert (facts["workload"], facts["nodes"], facts["initPods"], facts["pods"]) == ("W", 3, 1, 2)


def test_share_that_cannot_be_distinguished_is_null() -> None:
    assert figures(timeline((0.0, 1.0)), own=None).as_json()["schedulerMicrosPerPod"] is None
