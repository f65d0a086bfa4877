"""`pilotage jobs`: the workloads of the queues, in which order they come, and what they wait for."""

from __future__ import annotations

import click
import msgspec

from pilotage.cli.columns import columns
from pilotage.cli.options import common_options
from pilotage.cli.output import show, show_json
from pilotage.cli.queueing_view import QueueingSource, source_options
from pilotage.clock import rfc3339
from pilotage.explain.queueing import QueueingView, owner_of
from pilotage.jobs.reports import PendingWorkload
from pilotage.model.kueue import Workload

_EPILOG = """\b
Examples:
  pilotage jobs
  pilotage jobs -n research --state pending
  pilotage jobs -o json | jq '.[] | select(.requeue_count) | .key'
"""
_HEADINGS = (
    "NAMESPACE", "JOB", "QUEUE", "CLUSTER QUEUE", "PRIORITY", "STATE", "POSITION", "REASON", "REQUEUES", "RETRIED AT",
)  # fmt: skip
_STATES = ("pending", "reserved", "admitted", "evicting", "inactive", "finished")


class JobRow(msgspec.Struct, frozen=True):
    """One workload. `position` counts from 0 in its cluster queue; null if it does not wait."""

    key: str
    job: str
    local_queue: str
    cluster_queue: str
    priority: int
    state: str
    position: int | None
    reason: str
    message: str
    requeue_count: int | None
    requeue_at: str | None


@click.command(epilog=_EPILOG)
@click.option("-n", "--namespace", metavar="N", help="Only workloads of this namespace.  [default: all]")
@click.option("-q", "--queue", "queue_name", metavar="Q", help="Only workloads of this local or cluster queue.")
@click.option("--state", type=click.Choice(_STATES), help="Only workloads in this state.  [default: all but finished]")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@source_options
@common_options
def jobs(namespace: str | None, queue_name: str | None, state: str | None, output: str, source: QueueingSource) -> None:
    """Show queued workloads: those that run first, then those that wait, in the order of their queues.

    REASON says why a workload does not run; `pilotage explain workload/NAME` says more. REQUEUES counts how often its
    pods did not become ready in time.
    """
    rows = [
        row
        for row in rows_of(source.view())
        if (namespace is None or row.key.startswith(f"{namespace}/"))
        and (queue_name is None or queue_name in (row.local_queue, row.cluster_queue))
        and (row.state == state if state is not None else row.state != "finished")
    ]
    if output == "json":
        show_json(rows, indent=2)
    elif rows:
        show(columns(_HEADINGS, [_cells(row) for row in rows]))
    else:
        show("no workloads")


def rows_of(view: QueueingView) -> list[JobRow]:
    """Running ones by name, then the queues in order, then what is in no queue."""
    waiting = [_waiting(view, queue, one) for queue, one in view.pending()]
    queued = {row.key for row in waiting}
    others = [_explained(view, workload) for key, workload in sorted(view.workloads.items()) if key not in queued]
    running = [row for row in others if row.state in ("reserved", "admitted", "evicting")]
    return [*running, *waiting, *(row for row in others if row not in running)]


def _waiting(view: QueueingView, queue: str, one: PendingWorkload) -> JobRow:
    return JobRow(
        key=one.key,
        job=owner_of(view.workloads[one.key]),
        local_queue=one.local_queue,
        cluster_queue=queue,
        priority=one.priority,
        state="pending",
        position=one.position_in_cluster_queue,
        reason=one.reason,
        message=one.message,
        requeue_count=one.requeue_count,
        requeue_at=_time(one.requeue_at),
    )


def _explained(view: QueueingView, workload: Workload) -> JobRow:
    report = view.engine.explain(workload.key)
    assert report is not None
    return JobRow(
        key=report.key,
        job=owner_of(workload),
        local_queue=report.local_queue,
        cluster_queue=report.cluster_queue,
        priority=report.priority,
        state=report.state,
        position=None,
        reason=report.reason,
        message=report.message,
        requeue_count=report.requeue_count,
        requeue_at=_time(report.requeue_at),
    )


def _time(seconds: int | None) -> str | None:
    return None if seconds is None else rfc3339(seconds)


def _cells(row: JobRow) -> tuple[str, ...]:
    namespace, _, name = row.key.partition("/")
    return (
        namespace,
        row.job or name,
        row.local_queue or "-",
        row.cluster_queue or "-",
        str(row.priority),
        row.state,
        "-" if row.position is None else str(row.position),
        "-" if row.state in ("admitted", "finished") else row.reason or "-",
        str(row.requeue_count or 0),
        row.requeue_at or "-",
    )
