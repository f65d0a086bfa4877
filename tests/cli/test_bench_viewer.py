"""What one viewer takes from scheduling, in turn with none."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from pilotage.assembly import SchedulerOptions
from pilotage.cli.bench_console import console_workload, looked_at, room_of
from pilotage.cli.bench_viewer import Spread, ViewedRound, ViewedRounds, ViewedSpan, costs_of, show_costs
from pilotage.cli.errors import ExitCode
from pilotage.cli.main import cli
from pilotage.clock import SystemClock

SPAN = ViewedSpan(page="nobody", pods=1000, seconds=1.0, cpu_seconds=1.0, viewer_cpu_seconds=0.0)
SMALL = console_workload(20, 40, 60)


def a_round(page: str, cost: float) -> ViewedRound:
    """One in which the page took so much CPU beside an equal amount of pods."""
    viewed = replace(SPAN, page=page, seconds=1 + cost, cpu_seconds=1 + cost, viewer_cpu_seconds=cost)
    return ViewedRound(SPAN, viewed, SPAN)


def test_cost_is_the_median_of_rounds_with_the_least_and_the_most() -> None:
    rounds = [a_round("overview", cost) for cost in (0.01, 0.0, 0.25)]
    overview, pod = costs_of([*rounds, a_round("a pod", 0.25)])
    for found in (overview.by_cpu, overview.by_time):
        assert found == Spread(*(pytest.approx(share) for share in (0.01 / 1.01, 0.0, 0.2)))
    assert overview.own_cpu == pytest.approx(0.26 / 3.26)
    assert (overview.is_met, pod.is_met) == (False, False)


def test_a_page_is_compared_with_what_was_before_and_after_it() -> None:
    (cost,) = costs_of([ViewedRound(SPAN, replace(SPAN, page="waiting", pods=750), replace(SPAN, pods=500))])
    assert cost.by_cpu.median == 0.0 == cost.by_time.median


def test_a_viewer_who_takes_too_much_fails_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert show_costs(SMALL, [a_round("overview", 0.01)], "table") == ExitCode.OK
    assert "1.0% (1%..1%)" in capsys.readouterr().out
    assert show_costs(SMALL, [a_round("overview", 0.01), a_round("waiting", 0.5)], "json") == ExitCode.FAILED
    facts = json.loads(capsys.readouterr().out)
    assert [one["isMet"] for one in facts["viewers"]] == [True, False] and facts["waiting"] == 60


async def test_pods_are_bound_while_each_page_is_open_and_while_none_is() -> None:
    async with looked_at(SMALL, SchedulerOptions(), 1) as (stage, source):
        viewed = ViewedRounds(stage, source, room_of(SMALL), SystemClock(), 0.05)
        rounds = [one async for one in viewed.run(2)]
        left = [pod.name for pod in source.cluster.objects("Pod").values() if pod.name.startswith("more-")]
    pages = [one.viewed.page for one in rounds]
    assert pages == ["overview", "waiting", "a pod", "a pod", "waiting", "overview"] and left == []
    spans = [span for one in rounds for span in (one.before, one.viewed, one.after)]
    assert all(span.pods > 0 and span.cpu_seconds > 0 for span in spans)


@pytest.mark.parametrize(
    "flags",
    [
        ("--server", "http"),
        ("--workload", "Churn"),
        ("--compare-gate", "SchedulerAsyncAPICalls"),
        ("--latency-ms", "5"),
    ],
)
def test_a_viewer_has_a_cluster_of_its_own(flags: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli, ["bench", "--viewer", *flags])
    assert done.exit_code == 2 and "--viewer has a cluster of its own" in done.output
