"""How attempts end, in numbers: by result, how long they took, and what a bound pod needed in all.

Done for every pod, so the lines of the histograms are looked up once, and what can be counted from them is.
"""

from __future__ import annotations

from functools import cache
from typing import Final, Literal

from pilotage.clock import Clock
from pilotage.observe.instruments import Distribution
from pilotage.observe.metrics import Metrics
from pilotage.queue.entry import Ticket
from pilotage.queue.scheduling_queue import SchedulingQueue

Result = Literal["scheduled", "unschedulable", "error"]

_MOST_ATTEMPTS: Final = 15


class AttemptMeter:
    """Told of the end of every attempt."""

    def __init__(self, metrics: Metrics, clock: Clock, queue: SchedulingQueue) -> None:
        self._metrics = metrics
        self._clock = clock
        self._queue = queue
        self._attempts_of_bound = metrics.pod_scheduling_attempts.child()
        self._duration = cache(metrics.scheduling_attempt_duration_seconds.child)
        self._sli = cache(self._sli_line)
        durations = metrics.scheduling_attempt_duration_seconds
        metrics.schedule_attempts_total.read_from(
            lambda: {labels: float(line.count) for labels, line in durations.lines().items()}
        )

    def ended(self, result: Result, ticket: Ticket) -> None:
        line = self._duration(result, ticket.pod.spec.scheduler_name)
        line.observe(self._clock.monotonic() - ticket.started)

    def bound(self, ticket: Ticket) -> None:
        """The pod has its node for good."""
        entry = ticket.entry
        self.ended("scheduled", ticket)
        self._attempts_of_bound.observe(entry.attempts)
        if entry.first_attempt_at is not None:
            self._sli(entry.attempts).observe(self._queue.now() - entry.first_attempt_at)
        if entry.was_flushed:
            self._metrics.pod_scheduled_after_flush_total.add()

    def _sli_line(self, attempts: int) -> Distribution:
        label = str(attempts) if attempts < _MOST_ATTEMPTS else f"{_MOST_ATTEMPTS}+"
        return self._metrics.pod_scheduling_sli_duration_seconds.child(label)
