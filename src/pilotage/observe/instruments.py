"""What can be measured: counters, gauges and histograms with labels, cheap enough for the hot path.

Plain numbers in plain dictionaries, keyed by the tuple of label values: everything happens in one event loop, so there
are no locks. A change costs a fraction of a microsecond; where the labels are known beforehand, `child` gives an object
that is cheaper still. What can be counted on request (sizes, for example) is not kept up to date at all: it is
read by `read_from` when the metrics are read.
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, repeat
from typing import TypeAlias

Labels: TypeAlias = tuple[str, ...]
Reader: TypeAlias = Callable[[], Mapping[Labels, float]]
"""Called when the metrics are read: the values by label values."""


class _Values:
    """Numbers by label values: those that were stored, and those that are read on request."""

    __slots__ = ("_readers", "_values", "label_names")

    def __init__(self, *label_names: str) -> None:
        self.label_names = label_names
        self._values: dict[Labels, float] = {}
        self._readers: list[Reader] = []

    def read_from(self, reader: Reader) -> None:
        """From now on, ask `reader` for values whenever the metrics are read."""
        self._readers.append(reader)

    def value(self, *labels: str) -> float:
        """The value for these label values; 0 if there is none."""
        return self.values().get(labels, 0.0)

    def values(self) -> dict[Labels, float]:
        """All values by label values, as they are now."""
        found = dict(self._values)
        for reader in self._readers:
            found.update(reader())
        return found

    def total(self) -> float:
        """The sum over all label values."""
        return sum(self.values().values())

    def clear(self) -> None:
        self._values.clear()

    def forget(self, **labels: str) -> None:
        """Drop every value with these labels: what they speak of is gone."""
        for known in _with(self.label_names, self._values, labels):
            del self._values[known]

    def _add_first(self, labels: Labels, amount: float) -> None:
        _check_labels(self.label_names, labels)
        self._values[labels] = amount


class Counter(_Values):
    """A number that only grows."""

    __slots__ = ()

    def add(self, *labels: str, amount: float = 1.0) -> None:
        try:
            self._values[labels] += amount
        except KeyError:
            self._add_first(labels, amount)


class Gauge(_Values):
    """A number that goes up and down."""

    __slots__ = ()

    def set(self, value: float, *labels: str) -> None:
        if labels not in self._values:
            _check_labels(self.label_names, labels)
        self._values[labels] = value

    def add(self, *labels: str, amount: float = 1.0) -> None:
        try:
            self._values[labels] += amount
        except KeyError:
            self._add_first(labels, amount)


class Distribution:
    """How often something fell between which bounds: one line of a histogram."""

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """Per bucket, not added up; the last one is for what exceeds all bounds."""
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def observe_alike(self, total: float, times: int) -> None:
        """So many observations that were measured together, as if each had been the mean."""
        self.counts[bisect_left(self._bounds, total / times)] += times
        self.sum += total

    @property
    def count(self) -> int:
        return sum(self.counts)

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """(upper bound, number of observations up to it), ending with infinity."""
        so_far = 0
        for bound, count in zip((*self._bounds, float("inf")), self.counts, strict=True):
            so_far += count
            yield bound, so_far


class Histogram:
    """Observed values, counted in buckets."""

    __slots__ = ("_lines", "bounds", "label_names")

    def __init__(self, bounds: Sequence[float], *label_names: str) -> None:
        self.bounds = tuple(bounds)
        self.label_names = label_names
        self._lines: dict[Labels, Distribution] = {}

    def observe(self, value: float, *labels: str) -> None:
        try:
            line = self._lines[labels]
        except KeyError:
            line = self.child(*labels)
        line.counts[bisect_left(self.bounds, value)] += 1
        line.sum += value

    def child(self, *labels: str) -> Distribution:
        """The line of these label values: `child(...).observe(value)` is the cheapest way to observe often."""
        line = self._lines.get(labels)
        if line is None:
            _check_labels(self.label_names, labels)
            line = self._lines[labels] = Distribution(self.bounds)
        return line

    def lines(self) -> Mapping[Labels, Distribution]:
        return self._lines

    def count(self, *labels: str) -> int:
        """How often something was observed under these label values."""
        line = self._lines.get(labels)
        return 0 if line is None else line.count

    def forget(self, **labels: str) -> None:
        """Drop every line with these labels: what they speak of is gone."""
        for known in _with(self.label_names, self._lines, labels):
            del self._lines[known]

    def clear(self) -> None:
        # Children may be held by others; they stay what they are, with nothing in them.
        for line in self._lines.values():
            line.counts = [0] * len(line.counts)
            line.sum = 0.0


Instrument: TypeAlias = Counter | Gauge | Histogram


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """`count` bounds: start, start * factor, start * factor * factor ..."""
    # Step by step: powers would differ in the last digit, and with them the label that dashboards know.
    return tuple(accumulate(repeat(factor, count - 1), operator.mul, initial=start))


def _with(names: Labels, known: Iterable[Labels], wanted: Mapping[str, str]) -> list[Labels]:
    """Those in which every wanted label has its value; none if there is no such label."""
    if not wanted.keys() <= set(names):
        return []
    places = [(names.index(name), value) for name, value in wanted.items()]
    return [labels for labels in known if all(labels[at] == value for at, value in places)]


def _check_labels(names: Labels, values: Labels) -> None:
    if len(names) != len(values):
        raise ValueError(f"the labels {names} need as many values, got {values}")
