"""Metrics as Prometheus reads them: our tables handed to the prometheus_client library, which writes the text.

The library's own counters are not used: they take a lock for every increment. Its text formats are.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Metric, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from pilotage.observe.declaration import AnyDeclaration, MetricTable, Page
from pilotage.observe.instruments import Counter, Histogram, Instrument
from pilotage.observe.skipped_objects import describe

log = logging.getLogger(__name__)


class TableCollector(Collector):
    """What one page shows of some tables."""

    def __init__(self, tables: Iterable[MetricTable], page: Page = "metrics") -> None:
        self._tables = tuple(tables)
        self._page: Page = page

    def collect(self) -> Iterator[Metric]:
        for table in self._tables:
            for declaration, instrument in table.exposed(self._page):
                try:
                    family = _family(declaration, instrument)
                except Exception as error:
                    _log_unreadable(table, declaration.name, error)
                else:
                    table.unreadable.pop(declaration.name, None)
                    yield family

    def describe(self) -> Iterable[Metric]:
        # Asked by the registry to find duplicates; values need not be read for that.
        return ()


def render(accept: str, *tables: MetricTable, page: Page = "metrics") -> tuple[bytes, str]:
    """Body and content type for what the client accepts: Prometheus text, or OpenMetrics if it asks for that.

    The page `metrics` also shows what this process uses (`process_...`).
    """
    registry = CollectorRegistry()
    registry.register(TableCollector(tables, page))
    if page == "metrics":
        ProcessCollector(registry=registry)
    return render_collected(accept, registry)


def render_collected(accept: str, collector: Collector) -> tuple[bytes, str]:
    """The same for any collector of the library."""
    encoder, content_type = choose_encoder(accept)
    return encoder(collector), content_type


def _family(declaration: AnyDeclaration, instrument: Instrument) -> Metric:
    text = f"[{declaration.stability}] {declaration.help}"
    if isinstance(instrument, Histogram):
        histogram = HistogramMetricFamily(declaration.name, text, labels=declaration.labels)
        for labels, line in sorted(instrument.lines().items()):
            buckets = [(_bound_text(bound), float(count)) for bound, count in line.cumulative()]
            histogram.add_metric(labels, buckets, line.sum)
        return histogram
    family: CounterMetricFamily | GaugeMetricFamily
    if isinstance(instrument, Counter):
        family = CounterMetricFamily(declaration.name, text, labels=declaration.labels)
    else:
        family = GaugeMetricFamily(declaration.name, text, labels=declaration.labels)
    for labels, value in sorted(instrument.values().items()):
        family.add_metric(labels, _as_float(value))
    return family


def _as_float(value: float) -> float:
    """Whole numbers beyond what a float can hold are shown as infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _log_unreadable(table: MetricTable, name: str, error: Exception) -> None:
    """The other metrics are shown; why this one is not is logged once."""
    text = describe(error)
    if table.unreadable.get(name) != text:
        table.unreadable[name] = text
        log.error("a metric cannot be read and is left out: metric=%s error=%s", name, text, exc_info=error)


def _bound_text(bound: float) -> str:
    """As kube-scheduler writes it: the text is a label, which dashboards compare."""
    return "+Inf" if math.isinf(bound) else repr(bound).removesuffix(".0")
