"""What a running scheduler has on its mind: its queue, and the API calls that follow from it, at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from pilotage.calls.dispatcher import Dispatcher
from pilotage.calls.report import CallsReport
from pilotage.queue.report import QueueReport, queue_report
from pilotage.queue.scheduling_queue import SchedulingQueue


@dataclass(frozen=True, slots=True)
class SchedulerReport(QueueReport):
    """The queue, and what is on its way to the API server."""

    calls: CallsReport = field(default_factory=CallsReport)


def scheduler_report(queue: SchedulingQueue, dispatcher: Dispatcher, limit: int) -> SchedulerReport:
    """Of each part at most `limit` pods or calls."""
    report = queue_report(queue, queue.now(), limit)
    parts = {part.name: getattr(report, part.name) for part in fields(report)}
    return SchedulerReport(**parts, calls=dispatcher.report(limit))
