"""What is on its way to the API server, for people, programs and metrics: a picture of one moment, and every try."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from msgspec import Struct

from pilotage.api.calls import Lane
from pilotage.calls.call_queue import CallQueue, CallSlot, Place
from pilotage.observe.instruments import Labels
from pilotage.observe.metrics import Metrics


class LaneReport(Struct, frozen=True):
    """One lane."""

    pending: int = 0
    in_flight: int = 0
    allowed: int = 0
    """How many may be in flight at present."""


class CallReport(Struct, frozen=True):
    """One call."""

    kind: str
    object: str
    lane: str
    state: str
    waiting_seconds: float
    tries: int


@dataclass(frozen=True, slots=True)
class CallsReport:
    """All calls; the list may be cut, the counts are not."""

    lanes: dict[str, LaneReport] = field(default_factory=dict)
    calls: tuple[CallReport, ...] = ()


def calls_report(queue: CallQueue, now: float, limit: int, allowed: Mapping[Lane, int]) -> CallsReport:
    """The calls as they are, those in flight first; at most `limit` of them."""
    flying = Counter(slot.call.lane for slot in queue.slots() if slot.place is Place.IN_FLIGHT)
    pending = Counter(slot.call.lane for slot in queue.slots() if slot.place is not Place.IN_FLIGHT)
    lanes = {lane.value: LaneReport(pending[lane], flying[lane], allowed[lane]) for lane in Lane}
    return CallsReport(lanes, tuple(_reported(slot, now) for slot in islice(queue.slots(), limit)))


def pending_by_kind(queue: CallQueue) -> dict[tuple[str, ...], float]:
    """How many calls of each kind wait: all kinds that there ever were, so that 0 is reported, too."""
    counts = Counter(slot.call.kind for slot in queue.slots() if slot.place is not Place.IN_FLIGHT)
    return {(kind,): float(counts[kind]) for kind in queue.types.relevances()}


def _reported(slot: CallSlot, now: float) -> CallReport:
    return CallReport(
        slot.call.kind, slot.key, slot.call.lane.value, slot.place.value, max(0.0, now - slot.since), slot.tries
    )


class CallMeter:
    """Measures tries of calls, as the dispatcher reports them."""

    def __init__(self, metrics: Metrics) -> None:
        self._duration = metrics.async_api_call_execution_duration_seconds
        metrics.async_api_call_execution_total.read_from(self._totals)

    def executed(self, kind: str, is_success: bool, seconds: float) -> None:
        self._duration.observe(seconds, kind, "success" if is_success else "error")

    def _totals(self) -> dict[Labels, float]:
        return {labels: float(line.count) for labels, line in self._duration.lines().items()}


def read_call_gauges(metrics: Metrics, queue: CallQueue, allowed: Callable[[Lane], int]) -> None:
    """Let the gauges ask the queue, and how many calls of a lane may be in flight at present."""

    def by_lane(is_in_flight: bool) -> dict[Labels, float]:
        counts = Counter(slot.call.lane for slot in queue.slots() if (slot.place is Place.IN_FLIGHT) is is_in_flight)
        return {(lane.value,): float(counts[lane]) for lane in Lane}

    metrics.pending_async_api_calls.read_from(lambda: pending_by_kind(queue))
    metrics.api_calls_pending.read_from(lambda: by_lane(False))
    metrics.api_calls_in_flight.read_from(lambda: by_lane(True))
    metrics.api_calls_allowed.read_from(lambda: {(lane.value,): float(allowed(lane)) for lane in Lane})
