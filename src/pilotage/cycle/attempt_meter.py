"""How attempts end, in numbers: by result, how long they took, and what a bound pod needed in all."""

from __future__ import annotations

from typing import Final, Literal

from pilotage.clock import Clock
from pilotage.observe.metrics import Metrics
from pilotage.queue.entry import Ticket

Result = Literal["scheduled", "unschedulable", "error"]

_MOST_ATTEMPTS: Final = 15


class AttemptMeter:
    """Told of the end of every attempt."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock

    def ended(self, result: Result, ticket: Ticket) -> None:
        profile = ticket.pod.spec.scheduler_name
        self._metrics.schedule_attempts_total.add(result, profile)
        seconds = self._clock.monotonic() - ticket.started
        self._metrics.scheduling_attempt_duration_seconds.observe(seconds, result, profile)

    def bound(self, ticket: Ticket) -> None:
        """The pod has its node for good."""
        entry, metrics = ticket.entry, self._metrics
        self.ended("scheduled", ticket)
        metrics.pod_scheduling_attempts.observe(entry.attempts)
        if entry.first_attempt_at is not None:
            seconds = self._clock.time() - entry.first_attempt_at
            metrics.pod_scheduling_sli_duration_seconds.observe(seconds, _attempts_label(entry.attempts))
        if entry.was_flushed:
            metrics.pod_scheduled_after_flush_total.add()


def _attempts_label(attempts: int) -> str:
    return str(attempts) if attempts < _MOST_ATTEMPTS else f"{_MOST_ATTEMPTS}+"
