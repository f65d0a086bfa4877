"""Metrics that plugins declare: implements `pilotage.api.PluginMetrics`.

Unlike ours they are declared at run time, and their label values are not known beforehand: names are checked when
they are declared, and the number of label sets is bounded.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import Final, Literal, cast

from pilotage.observe.declaration import ALPHA, Declaration, InstrumentT, MetricTable, counter, gauge, histogram
from pilotage.observe.instruments import Counter, Distribution, Gauge, Histogram, Labels

log = logging.getLogger(__name__)

MOST_METRICS: Final = 200
MOST_LABEL_SETS: Final = 1000
MOST_LABELS: Final = 8
OTHER: Final = "other"
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_LABEL: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*")
_OURS: Final = ("scheduler_", "pilotage_", "kueue_", "process_", "python_", "rest_client_", "leader_election_")
_PARTS: Final = ("_total", "_bucket", "_sum", "_count", "_created", "_info")
"""Endings that say something in the exposition format."""


class _LabelBound:
    """How many sets of label values a metric may have."""

    __slots__ = ("_is_logged", "_label_count", "_name")

    def __init__(self, name: str, label_count: int) -> None:
        self._name = name
        self._label_count = label_count
        self._is_logged = False

    def admit(self, labels: Labels, known: Collection[Labels]) -> Labels:
        """The label values under which something new is kept."""
        if labels in known:
            return labels
        if len(labels) != self._label_count or not all(isinstance(value, str) for value in labels):
            raise ValueError(
                f"{self._name} takes {self._label_count} label values, all of them text, got {labels!r:.200}"
            )
        if len(known) < MOST_LABEL_SETS:
            return labels
        if not self._is_logged:
            self._is_logged = True
            log.warning(
                'a metric of a plugin has %d sets of label values, further ones are counted as "other": metric=%s',
                MOST_LABEL_SETS,
                self._name,
            )
        return (OTHER,) * self._label_count


class PluginCounter(Counter):
    __slots__ = ("_bound",)

    def __init__(self, name: str, *labels: str) -> None:
        super().__init__(*labels)
        self._bound = _LabelBound(name, len(labels))

    def add(self, *labels: str, amount: float = 1.0) -> None:
        if not amount >= 0:
            raise ValueError(f"a counter only grows, got {amount!r:.200}")
        super().add(*self._bound.admit(labels, self._values), amount=amount)


class PluginGauge(Gauge):
    __slots__ = ("_bound",)

    def __init__(self, name: str, *labels: str) -> None:
        super().__init__(*labels)
        self._bound = _LabelBound(name, len(labels))

    def set(self, value: float, *labels: str) -> None:
        super().set(float(value), *self._bound.admit(labels, self._values))

    def add(self, *labels: str, amount: float = 1.0) -> None:
        super().add(*self._bound.admit(labels, self._values), amount=amount)


class PluginHistogram(Histogram):
    __slots__ = ("_bound",)

    def __init__(self, name: str, bounds: Sequence[float], *labels: str) -> None:
        super().__init__(bounds, *labels)
        self._bound = _LabelBound(name, len(labels))

    def child(self, *labels: str) -> Distribution:
        return super().child(*self._bound.admit(labels, self._lines))


class PluginMetricTable:
    """Adds metrics to a table."""

    def __init__(self, table: MetricTable) -> None:
        self._table = table
        self._declared: dict[str, Declaration[Counter] | Declaration[Gauge] | Declaration[Histogram]] = {}

    def counter(self, name: str, help: str, *labels: str) -> Counter:
        if not name.endswith("_total"):
            raise ValueError(f'"{name}": the name of a counter ends in _total')
        return self._add(name, counter(ALPHA, help, *labels), lambda: PluginCounter(name, *labels))

    def gauge(self, name: str, help: str, *labels: str) -> Gauge:
        _check_ending(name, "gauge")
        return self._add(name, gauge(ALPHA, help, *labels), lambda: PluginGauge(name, *labels))

    def histogram(self, name: str, help: str, buckets: Sequence[float], *labels: str) -> Histogram:
        _check_ending(name, "histogram")
        bounds = tuple(float(bound) for bound in buckets)
        if not bounds or any(not a < b for a, b in pairwise(bounds)):
            raise ValueError(f'"{name}": the upper bounds of the buckets must ascend, got {buckets!r:.200}')
        return self._add(name, histogram(ALPHA, help, bounds, *labels), lambda: PluginHistogram(name, bounds, *labels))

    def _add(self, name: str, declaration: Declaration[InstrumentT], build: Callable[[], InstrumentT]) -> InstrumentT:
        _check_names(name, declaration.labels)
        known = self._declared.get(name)
        if known is not None:
            if (known.kind, known.labels, known.bounds) != (declaration.kind, declaration.labels, declaration.bounds):
                raise ValueError(f'"{name}" is declared already, as a {known.kind} with the labels {known.labels}')
            return cast(InstrumentT, self._table.named(name))
        if self._table.named(name) is not None:
            raise ValueError(f'"{name}" is a metric of the scheduler; choose another name')
        if len(self._declared) >= MOST_METRICS:
            raise ValueError(f'"{name}": plugins have declared {MOST_METRICS} metrics already')
        declaration.build, declaration.name = build, name
        self._declared[name] = declaration
        return self._table.add(declaration)


def _check_names(name: str, labels: Sequence[str]) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{name!r:.200} cannot be the name of a metric: lower case letters, digits and _ are allowed")
    ours = next((prefix for prefix in _OURS if name.startswith(prefix)), "")
    if ours:
        raise ValueError(f'"{name}": names that begin with {ours} are the scheduler\'s own; choose another one')
    bad = next((one for one in labels if not _LABEL.fullmatch(one) or one in ("le", "quantile")), None)
    if bad is not None:
        raise ValueError(f'"{name}": {bad!r:.200} cannot be the name of a label')
    if len(labels) > MOST_LABELS or len(set(labels)) < len(labels):
        raise ValueError(f'"{name}": at most {MOST_LABELS} labels, each once, got {", ".join(labels)}')


def _check_ending(name: str, kind: Literal["gauge", "histogram"]) -> None:
    ending = next((part for part in _PARTS if name.endswith(part)), "")
    if ending:
        raise ValueError(f'"{name}": the name of a {kind} must not end in {ending}, which means something else')
