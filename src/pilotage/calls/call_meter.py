"""What is measured of API calls: every try by kind and result, and (read when somebody asks) what is in the lanes."""

from __future__ import annotations

from collections import Counter

from pilotage.api.calls import Lane
from pilotage.calls.dispatcher import Dispatcher
from pilotage.calls.report import pending_by_kind
from pilotage.calls.slot import Place
from pilotage.observe.instruments import Labels
from pilotage.observe.metrics import Metrics


class CallMeter:
    """Told of every try by the dispatcher."""

    def __init__(self, metrics: Metrics) -> None:
        self._duration = metrics.async_api_call_execution_duration_seconds
        metrics.async_api_call_execution_total.read_from(self._totals)

    def executed(self, kind: str, is_success: bool, seconds: float) -> None:
        self._duration.observe(seconds, kind, "success" if is_success else "error")

    def _totals(self) -> dict[Labels, float]:
        return {labels: float(line.count) for labels, line in self._duration.lines().items()}


def read_call_gauges(metrics: Metrics, dispatcher: Dispatcher) -> None:
    """Let the gauges ask the dispatcher."""
    queue = dispatcher.queue

    def by_lane(is_in_flight: bool) -> dict[Labels, float]:
        counts = Counter(slot.call.lane for slot in queue.slots() if (slot.place is Place.IN_FLIGHT) is is_in_flight)
        return {(lane.value,): float(counts[lane]) for lane in Lane}

    metrics.pending_async_api_calls.read_from(lambda: pending_by_kind(queue))
    metrics.api_calls_pending.read_from(lambda: by_lane(False))
    metrics.api_calls_in_flight.read_from(lambda: by_lane(True))
    metrics.api_calls_allowed.read_from(lambda: {(lane.value,): float(dispatcher.allowed(lane)) for lane in Lane})
