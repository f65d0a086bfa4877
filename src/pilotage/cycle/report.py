"""A report of a running scheduler: its queue, and the API calls that follow from it, at one moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from msgspec import field
from msgspec.structs import asdict

from pilotage.api.group_members import PodGroups
from pilotage.calls.report import CallsReport
from pilotage.cycle.scheduling_loop import SchedulingLoop
from pilotage.queue.report import DEFAULT_LIMIT, Held, QueueReport, Selection, queue_report


class SchedulerReport(QueueReport, frozen=True):
    """The queue, and what is on its way to the API server."""

    calls: CallsReport = field(default_factory=CallsReport)


def selection_of(query: Callable[[str], str]) -> Selection:
    """What a question over HTTP asks for: `limit`, `namespace`, and `group=true` for rows of equal pods."""
    limit = query("limit")
    return Selection(
        int(limit) if limit.isdigit() else DEFAULT_LIMIT, query("namespace"), is_grouped=query("group") == "true"
    )


def scheduler_report(scheduler: SchedulingLoop, selection: Selection) -> SchedulerReport:
    """Of each part at most `limit` rows or calls."""
    held = {
        waiting.pod.uid: Held(waiting.pod.node_name, tuple(waiting.pending_plugins))
        for waiting in scheduler.waiting_pods
    }
    selection = replace(selection, held=held, asked=scheduler.cycle.consultation.asked())
    if scheduler.queue.has_groups:
        groups, names = scheduler.cluster.index(PodGroups), scheduler.cycle.engines
        selection = replace(selection, member_count=lambda key: groups.count(key, names))
    report = queue_report(scheduler.queue, scheduler.queue.now(), selection)
    return SchedulerReport(**asdict(report), calls=scheduler.dispatcher.report(selection.limit))
