"""The benchmark of workload queueing, small: it really runs what it says; how fast that is, it does not say here."""

from __future__ import annotations

import asyncio
import json

import pytest

from pilotage.bench import inadmissible, workload_queueing
from pilotage.bench.workload_queueing import QueueingBench, QueueingLoad
from pilotage.cli.main import call

COUNT = 120


def test_all_workloads_are_admitted_preempted_and_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload_queueing, "_CPU_PER_QUEUE", 30)  # small cohorts, so that few workloads fill them
    figures = asyncio.run(QueueingBench(QueueingLoad(COUNT), seed=1).run())
    tally = figures.tally
    assert tally.finished == COUNT and tally.evictions > 0 and tally.excesses == 0
    assert tally.admissions == COUNT + tally.evictions
    assert tally.writes > 3 * COUNT, "created, admitted and finished, each in the API server"


def test_the_same_seed_gives_the_same_run() -> None:
    first, second = (asyncio.run(QueueingBench(QueueingLoad(60), seed=3).run()) for _ in range(2))
    assert (first.tally, first.virtual_seconds) == (second.tally, second.virtual_seconds)


def test_on_nodes_all_are_admitted_too_and_it_is_compared_with_quota_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call(["bench", "--workload", "WorkloadQueueing", "--pods", "30", "--nodes", "9", "--per-second", "4", "-o", "json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["nodes"], told["perSecond"]) == (9, 4)
    finished, beside = told["figures"][1], told["figures"][-1]
    assert finished["value"] == 30 and beside["value"] > 0 and beside["goal"] == "<= 2"


def test_command_prints_one_object(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, size in (("WORKLOADS", 50), ("_BATCHES", 1), ("_PER_BATCH", 2)):
        monkeypatch.setattr(inadmissible, name, size)
    call(["bench", "--workload", "WorkloadQueueing", "--pods", "20", "-o", "json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["workload"], told["workloads"], len(told["figures"])) == ("WorkloadQueueing", 20, 9)
    assert [one["goal"] for one in told["figures"][:3]] == ["<= 0.16", "20", "0"]
