"""When pods and workloads are expected to start, for the commands that say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from pilotage.api.group_members import PodGroups
from pilotage.assembly import SchedulerOptions
from pilotage.cli.errors import bad_input
from pilotage.cli.status_line import StatusLine
from pilotage.clock import SystemClock
from pilotage.cluster.state import Cluster
from pilotage.explain.expected_start import ExpectedStart
from pilotage.explain.queueing import QueueingView
from pilotage.explain.report import GroupReport, Report
from pilotage.kube.client import status_error
from pilotage.kube.errors import ApiStatusError
from pilotage.kube.transport import Transport
from pilotage.lab.starts.pod_copies import Effort, affordable, expected_start, past_starts
from pilotage.lab.starts.pod_history import HistoryTooLong, PodHistory, history_of_cluster, history_of_trace, joined
from pilotage.lab.starts.queue_copies import workload_starts
from pilotage.lab.trace.finishing import open_trace
from pilotage.lab.trace.format import TraceError
from pilotage.model import DecodeError

_OK: Final = 200
_PAGE: Final = 500
_LARGEST: Final = 5_000
"""Pods of a cluster about which nothing is said unless it is asked for."""
_THOROUGH: Final = Effort(copies=40, past=40, past_copies=10)

WHEN = click.option(
    "--when/--no-when",
    "when",
    default=None,
    help="Say when it is expected to start, however long that takes; or do not.  [default: if it takes seconds]",
)


class When(msgspec.Struct, frozen=True):
    """What the command line says of expected starts."""

    wanted: bool | None = None
    """None: if it does not take long, and something is known."""
    history: Path | None = None

    def is_asked(self, cluster: Cluster) -> bool:
        """Is anything to be said in a cluster of this size?"""
        return self.wanted is not False and (self.wanted is True or len(cluster.objects("Pod")) <= _LARGEST)


def starts_of_view(view: QueueingView, now: float, wanted: bool | None) -> Mapping[str, ExpectedStart]:
    """Of workloads that wait, by key; nothing if it is not wanted."""
    if wanted is False:
        return {}
    line = StatusLine(SystemClock())
    if line.is_due:
        line.show("playing the queues forward on copies ...")
    try:
        return workload_starts(view.objects, view.configuration, now, _THOROUGH if wanted else None)
    finally:
        line.clear()


def start_of_report(
    report: Report | GroupReport,
    cluster: Cluster,
    pods: Sequence[bytes],
    options: SchedulerOptions,
    when: When,
) -> ExpectedStart | None:
    """When what a report is about starts; None if it does not wait, or nothing can be said without being asked to."""
    waiting = _waiting(report, cluster) if when.is_asked(cluster) else []
    if not waiting or (report.fits and not when.wanted):
        return None
    history = history_of_cluster(cluster, pods, SystemClock().time())
    if when.history is not None:
        history = joined(_of_trace(when.history), history)
    effort = _THOROUGH if when.wanted else affordable(history)
    if effort.copies < 2 or (not when.wanted and not _has_ends(history)):
        return None
    line = StatusLine(SystemClock())

    def on_look(number: int, count: int) -> None:
        if line.is_due:
            line.show(f"past starts looked at: {number} of {count}")

    try:
        past = past_starts(history, options, effort, on_look)
        return expected_start(history, waiting, options, effort, past)
    finally:
        line.clear()


def _waiting(report: Report | GroupReport, cluster: Cluster) -> list[str]:
    if isinstance(report, GroupReport):
        return [pod.key for pod in cluster.index(PodGroups).waiting(report.pod_group).values()]
    return [] if report.assigned_to or report.gated_by else [report.pod]


def _has_ends(history: PodHistory) -> bool:
    """Is anything known of when something ends?"""
    return any(pod.ended is not None or pod.deadline is not None for pod in history.pods)


def _of_trace(path: Path) -> PodHistory:
    try:
        header, records = open_trace(path, allow_cut=True)
        return history_of_trace(header.start_time, records)
    except (TraceError, HistoryTooLong) as error:
        raise bad_input(f"--history: {error}") from error
    except DecodeError as error:
        raise bad_input(f"--history: {path}: {error}") from error


async def pods_of_server(transport: Transport) -> list[bytes]:
    """All pods as the API server shows them; TransportError or ApiStatusError if it does not."""
    found: list[bytes] = []
    token = ""
    while True:
        query: dict[str, Any] = {"limit": str(_PAGE), **({"continue": token} if token else {})}
        answer = await transport.request("GET", "/api/v1/pods", query=query)
        if answer.status != _OK:
            raise ApiStatusError(answer.status, "", status_error(answer).message)
        page = msgspec.json.decode(answer.body, type=_Page)
        found += map(bytes, page.items)
        token = page.metadata.get("continue") or ""
        if not token:
            return found


class _Page(msgspec.Struct):
    items: list[msgspec.Raw] = []
    metadata: dict[str, Any] = {}
