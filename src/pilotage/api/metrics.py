"""Metrics of a plugin's own, shown at /metrics beside the scheduler's.

    self._age = handle.metrics.gauge("load_watcher_age_seconds", "Age of the newest load values.")
    self._polls = handle.metrics.counter("load_watcher_polls_total", "Polls by how they ended.", "result")
    ...
    self._polls.add("success")

Asking for the same metric again, in another profile for instance, gives the same one. A metric that is declared with
other labels, a name that is no good or belongs to the scheduler: ValueError. A metric keeps up to 1,000 sets of label
values; what comes after is counted under "other".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class CounterMetric(Protocol):
    def add(self, *labels: str, amount: float = ...) -> None:
        """Grow by `amount`, which is not negative, under these label values."""


class GaugeMetric(Protocol):
    def set(self, value: float, *labels: str) -> None:
        """The value is this now, under these label values."""

    def add(self, *labels: str, amount: float = ...) -> None:
        """Grow or, if `amount` is negative, shrink."""


class HistogramMetric(Protocol):
    def observe(self, value: float, *labels: str) -> None:
        """One more value, under these label values."""


class PluginMetrics(Protocol):
    """Where a plugin declares its metrics. Names are lower case, such as `load_watcher_age_seconds`."""

    def counter(self, name: str, help: str, *labels: str) -> CounterMetric:
        """A number that only grows; its name ends in `_total`."""

    def gauge(self, name: str, help: str, *labels: str) -> GaugeMetric:
        """A number that goes up and down."""

    def histogram(self, name: str, help: str, buckets: Sequence[float], *labels: str) -> HistogramMetric:
        """Values counted in buckets, given by their upper bounds in ascending order."""
