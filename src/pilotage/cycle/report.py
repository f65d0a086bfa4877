"""What a running scheduler has on its mind: its queue, and the API calls that follow from it, at one moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

from pilotage.calls.report import CallsReport
from pilotage.cycle.scheduler import Scheduler
from pilotage.queue.report import DEFAULT_LIMIT, Held, QueueReport, Selection, queue_report


@dataclass(frozen=True, slots=True)
class SchedulerReport(QueueReport):
    """The queue, and what is on its way to the API server."""

    calls: CallsReport = field(default_factory=CallsReport)


def selection_of(query: Callable[[str], str]) -> Selection:
    """What a question over HTTP asks for: `limit`, `namespace`, and `group=true` for rows of equal pods."""
    limit = query("limit")
    return Selection(
        int(limit) if limit.isdigit() else DEFAULT_LIMIT, query("namespace"), is_grouped=query("group") == "true"
    )


def scheduler_report(scheduler: Scheduler, selection: Selection) -> SchedulerReport:
    """Of each part at most `limit` rows or calls."""
    held = {
        waiting.pod.uid: Held(waiting.pod.node_name, tuple(waiting.pending_plugins))
        for waiting in scheduler.waiting_pods
    }
    report = queue_report(scheduler.queue, scheduler.queue.now(), replace(selection, held=held))
    parts = {part.name: getattr(report, part.name) for part in fields(report)}
    return SchedulerReport(**parts, calls=scheduler.dispatcher.report(selection.limit))
