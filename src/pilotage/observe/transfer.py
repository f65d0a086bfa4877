"""What one table of metrics has counted since the last look, to be added to another table in another process."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pilotage.observe.declaration import MetricTable
from pilotage.observe.instruments import Counter, Gauge, Histogram, Labels


class MetricChange(msgspec.Struct, frozen=True, array_like=True):
    """Of one metric under one set of label values: what a counter has grown by, the value of a gauge, or the buckets
    of a histogram and the sum of what fell into them."""

    metric: str
    labels: Labels
    value: float
    counts: Sequence[int] = ()


class Difference:
    """Remembers what was taken."""

    def __init__(self, table: MetricTable) -> None:
        self._table = table
        self._values: dict[tuple[str, Labels], float] = {}
        self._counts: dict[tuple[str, Labels], list[int]] = {}

    def take(self) -> list[MetricChange]:
        """What is new since the last time."""
        found: list[MetricChange] = []
        for declaration in self._table.declarations():
            instrument = self._table.named(declaration.name)
            if isinstance(instrument, Histogram):
                found.extend(self._observed(declaration.name, instrument))
            elif isinstance(instrument, Counter | Gauge):
                found.extend(self._changed(declaration.name, instrument))
        return found

    def _changed(self, name: str, instrument: Counter | Gauge) -> list[MetricChange]:
        found = []
        for labels, value in instrument.values().items():
            before = self._values.get((name, labels), 0.0)
            if value == before and (name, labels) in self._values:
                continue
            self._values[name, labels] = value
            found.append(MetricChange(name, labels, value if isinstance(instrument, Gauge) else value - before))
        return found

    def _observed(self, name: str, instrument: Histogram) -> list[MetricChange]:
        found = []
        for labels, line in instrument.lines().items():
            key = name, labels
            counts = self._counts.get(key, [0] * len(line.counts))
            if line.counts == counts:
                continue
            new = [now - before for now, before in zip(line.counts, counts, strict=True)]
            found.append(MetricChange(name, labels, line.sum - self._values.get(key, 0.0), new))
            self._counts[key], self._values[key] = list(line.counts), line.sum
        return found


def add_changes(table: MetricTable, changes: Sequence[MetricChange]) -> None:
    """As if it had been counted here."""
    for change in changes:
        match table.named(change.metric):
            case Counter() as counter:
                counter.add(*change.labels, amount=change.value)
            case Gauge() as gauge:
                gauge.set(change.value, *change.labels)
            case Histogram() as histogram:
                line = histogram.child(*change.labels)
                line.counts = [known + more for known, more in zip(line.counts, change.counts, strict=True)]
                line.sum += change.value
            case None:
                pass
