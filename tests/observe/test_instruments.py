"""Counters, gauges and histograms."""

from __future__ import annotations

import math

import pytest

from pilotage.observe.instruments import Counter, Gauge, Histogram, exponential


def test_counter_keeps_a_number_per_label_values() -> None:
    counter = Counter("result", "profile")
    counter.add("scheduled", "a")
    counter.add("scheduled", "a", amount=2)
    counter.add("error", "a")
    assert counter.values() == {("scheduled", "a"): 3, ("error", "a"): 1}
    assert (counter.value("scheduled", "a"), counter.value("scheduled", "b"), counter.total()) == (3, 0, 4)


@pytest.mark.parametrize("labels", [(), ("a",), ("a", "b", "c")])
def test_wrong_number_of_label_values_is_rejected(labels: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="need as many values"):
        Counter("x", "y").add(*labels)
    with pytest.raises(ValueError, match="need as many values"):
        Gauge("x", "y").set(1, *labels)
    with pytest.raises(ValueError, match="need as many values"):
        Histogram((1,), "x", "y").observe(1, *labels)


def test_gauge_reads_when_it_is_asked() -> None:
    gauge, waiting = Gauge("queue"), ["p"]
    gauge.set(7, "gated")
    gauge.read_from(lambda: {("active",): len(waiting)})
    assert gauge.values() == {("gated",): 7, ("active",): 1}
    waiting.append("q")
    assert gauge.value("active") == 2


def test_value_on_a_bound_counts_below_it() -> None:
    histogram = Histogram((1, 2, 4))
    for value in (0, 1, 1.5, 2, 4, 4.1, 100):
        histogram.observe(value)
    line = histogram.child()
    assert list(line.cumulative()) == [(1, 2), (2, 4), (4, 5), (math.inf, 7)]
    assert (line.count, line.sum) == (7, pytest.approx(112.6))


def test_child_is_the_line_of_its_labels() -> None:
    histogram = Histogram((1,), "plugin")
    histogram.child("a").observe(0.5)
    histogram.observe(3, "a")
    assert histogram.lines()["a",].counts == [1, 1]
    assert (histogram.count("a"), histogram.count("b")) == (2, 0)


def test_child_that_was_cleared_is_still_counted() -> None:
    histogram = Histogram((1,), "plugin")
    child = histogram.child("a")
    child.observe(1)
    histogram.clear()
    child.observe(1)
    assert histogram.count("a") == 1


def test_exponential_bounds_are_multiplied_step_by_step() -> None:
    assert exponential(1, 2, 5) == (1, 2, 4, 8, 16)
    assert exponential(0.00001, 1.5, 3) == (0.00001, 0.00001 * 1.5, 0.00001 * 1.5 * 1.5)
