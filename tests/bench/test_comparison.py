"""Runs of two schedulers become medians and ratios."""

from __future__ import annotations

from pilotage.bench.comparison import Summary, ratios, schedulers_of, summary_of
from pilotage.bench.measure import BindingTimeline, Figures


def figures(scheduler: str, *, seconds: float, cpu: float, memory: float = 100.0, beside: float = 0.0) -> Figures:
    """A run that bound ten pods in so many seconds."""
    timeline = BindingTimeline()
    for number in range(10):
        timeline.created[f"p{number}"] = 0.0
        timeline.note_bound(f"p{number}", seconds)
    return Figures(
        workload="W",
        server="real",
        nodes=1,
        init_pods=0,
        timeline=timeline,
        cpu_seconds=cpu,
        scheduler_cpu_seconds=cpu,
        peak_memory_mib=memory,
        scheduler=scheduler,
        other_cpu_seconds={"kube-apiserver": beside},
    )


def test_a_summary_is_the_median_of_the_runs_of_that_scheduler_only() -> None:
    runs = [
        figures("ours", seconds=1.0, cpu=9.0, memory=50.0),
        figures("theirs", seconds=100.0, cpu=1000.0),
        figures("ours", seconds=2.0, cpu=1.0, memory=70.0, beside=4.0),
        figures("ours", seconds=10.0, cpu=2.0, memory=60.0, beside=1.0),
    ]
    assert summary_of(runs, "ours") == Summary("ours", 5.0, 2.0, 60.0, 5.0)
    assert schedulers_of(runs) == ["ours", "theirs"]


def test_ratios_are_ours_divided_by_theirs() -> None:
    ours, theirs = Summary("ours", 200.0, 1.0, 50.0, 7.0), Summary("theirs", 100.0, 4.0, 100.0, 10.5)
    assert ratios(ours, theirs) == {"throughput": 2.0, "throughputByCpu": 1.5, "cpu": 0.25, "memory": 0.5}


def test_what_was_not_measured_is_no_division_by_zero() -> None:
    nothing = Summary("theirs", 0.0, 0.0, 0.0, 0.0)
    assert set(ratios(nothing, nothing).values()) == {0.0}
