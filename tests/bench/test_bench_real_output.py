"""What `pilotage bench --server real` prints of its runs."""

from __future__ import annotations

import dataclasses

import pytest

from pilotage.bench.comparison import schedulers_of, summary_of
from pilotage.bench.workloads import SCHEDULING_BASIC
from pilotage.cli.bench_real import document_of, print_table

from .test_comparison import figures

WORKLOAD = dataclasses.replace(SCHEDULING_BASIC, nodes=5, init_pods=1, pods=10)
RUNS = [
    figures("pilotage", seconds=1.0, cpu=1.0, memory=50.0, beside=6.0),
    figures("kube-scheduler", seconds=2.0, cpu=4.5, memory=100.0, beside=6.0),
]


def test_json_has_every_run_the_medians_and_the_ratios() -> None:
    told = document_of(WORKLOAD, RUNS, [summary_of(RUNS, name) for name in schedulers_of(RUNS)])
    assert [run["scheduler"] for run in told["runs"]] == ["pilotage", "kube-scheduler"]
    assert told["runs"][0]["otherCpuSecondsPer1000Pods"] == {"kube-apiserver": 600.0}
    assert told["medians"]["kube-scheduler"]["allCpuSeconds"] == 10.5
    assert told["ratios"] == {"throughput": 2.0, "throughputByCpu": 1.5, "cpu": 0.222, "memory": 0.5}


def test_json_of_one_scheduler_has_no_ratios() -> None:
    assert "ratios" not in document_of(WORKLOAD, RUNS[:1], [summary_of(RUNS[:1], "pilotage")])


def test_table_ends_with_the_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(WORKLOAD, RUNS, [summary_of(RUNS, name) for name in schedulers_of(RUNS)])
    printed = capsys.readouterr().out
    assert "5 nodes, 1 pods before, 10 measured" in printed
    assert printed.splitlines()[-1] == (
        "Of kube-scheduler's: throughput x 2.00 (x 1.50 by the CPU that everything took), "
        "scheduler CPU x 0.22, peak memory x 0.50."
    )


def test_table_says_that_there_was_nothing_to_compare_with(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(WORKLOAD, RUNS[:1], [summary_of(RUNS[:1], "pilotage")])
    assert "No kube-scheduler among the assets" in capsys.readouterr().out
