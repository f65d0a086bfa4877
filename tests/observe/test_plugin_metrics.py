"""Metrics that plugins declare: checked names, bounded label sets, shown beside ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pilotage.observe.exposition import render
from pilotage.observe.metrics import Metrics
from pilotage.observe.plugin_metrics import MOST_LABEL_SETS, MOST_METRICS, PluginMetricTable


@pytest.fixture
def table() -> Metrics:
    return Metrics()


@pytest.fixture
def metrics(table: Metrics) -> PluginMetricTable:
    return PluginMetricTable(table)


def test_they_are_shown_with_their_labels(table: Metrics, metrics: PluginMetricTable) -> None:
    metrics.counter("polls_total", "Polls.", "result").add("good", amount=2)
    metrics.gauge("age_seconds", "Age.").set(1.5)
    metrics.histogram("load_percent", "Load.", (50, 90), "node").observe(70, "a")
    text = render("text/plain", table)[0].decode()
    for line in (
        'polls_total{result="good"} 2.0',
        "age_seconds 1.5",
        'load_percent_bucket{le="50",node="a"} 0.0',
        'load_percent_bucket{le="90",node="a"} 1.0',
        "# HELP polls_total [ALPHA] Polls.",
    ):
        assert line in text
    assert "scheduler_schedule_attempts_total" in text


def test_the_same_metric_again_is_the_same_one(metrics: PluginMetricTable) -> None:
    first = metrics.counter("polls_total", "Polls.", "result")
    assert metrics.counter("polls_total", "Polls.", "result") is first
    with pytest.raises(ValueError, match="declared already, as a counter with the labels"):
        metrics.counter("polls_total", "Polls.", "node")


@pytest.mark.parametrize(
    ("declare", "problem"),
    [
        (lambda m: m.counter("Polls_total", ""), "lower case letters"),
        (lambda m: m.counter("polls", ""), "ends in _total"),
        (lambda m: m.gauge("scheduler_x", ""), "the scheduler's own"),
        (lambda m: m.gauge("pilotage_x", ""), "the scheduler's own"),
        (lambda m: m.gauge("x_total", ""), "must not end in _total"),
        (lambda m: m.histogram("x_bucket", "", (1,)), "must not end in _bucket"),
        (lambda m: m.histogram("x", "", (2, 1)), "must ascend"),
        (lambda m: m.histogram("x", "", ()), "must ascend"),
        (lambda m: m.gauge("x", "", "le"), "cannot be the name of a label"),
        (lambda m: m.gauge("x", "", "a b"), "cannot be the name of a label"),
        (lambda m: m.gauge("x", "", "a", "a"), "each once"),
        (lambda m: m.gauge("kubernetes_feature_enabled", ""), "is a metric of the scheduler"),
        (lambda m: m.gauge("x", "", "a").set(1.0), "takes 1 label values"),
        (lambda m: m.gauge("x", "", "a").set(1.0, 5), "all of them text"),
        (lambda m: m.counter("x_total", "").add(amount=-1), "only grows"),
        (lambda m: m.counter("x_total", "").add(amount=float("nan")), "only grows"),
    ],
)
def test_what_is_wrong_is_reported(declare: Callable[[Any], object], problem: str, metrics: PluginMetricTable) -> None:
    with pytest.raises(ValueError, match=problem):
        declare(metrics)


def test_label_sets_are_bounded(metrics: PluginMetricTable, caplog: pytest.LogCaptureFixture) -> None:
    counter = metrics.counter("x_total", "", "pod")
    gauge = metrics.gauge("y", "", "pod")
    histogram = metrics.histogram("z", "", (1,), "pod")
    for at in range(MOST_LABEL_SETS + 10):
        counter.add(f"p{at}")
        gauge.set(1, f"p{at}")
        histogram.observe(0.5, f"p{at}")
    assert len(counter.values()) == len(gauge.values()) == len(histogram.lines()) == MOST_LABEL_SETS + 1
    assert counter.value("other") == 10 and counter.value("p7") == 1 and histogram.count("other") == 10
    assert len([record for record in caplog.records if "metric=x_total" in record.message]) == 1


def test_the_number_of_metrics_is_bounded(metrics: PluginMetricTable) -> None:
    for at in range(MOST_METRICS):
        metrics.gauge(f"g{at}x", "")
    with pytest.raises(ValueError, match="200 metrics already"):
        metrics.gauge("one_more", "")
