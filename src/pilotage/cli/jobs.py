"""`pilotage jobs`: the workloads of the queues, in which order they come, and what they wait for."""

from __future__ import annotations

from collections.abc import Mapping

import click
import msgspec

from pilotage.cli.columns import columns
from pilotage.cli.durations import short_duration
from pilotage.cli.expected_starts import WHEN, starts_of_view
from pilotage.cli.options import common_options
from pilotage.cli.output import show, show_json
from pilotage.cli.queueing_changes import Reach, ShowingGroup, change_options, set_active, set_priority
from pilotage.cli.queueing_changes import move as move_job
from pilotage.cli.queueing_view import QueueingSource, source_options
from pilotage.clock import SystemClock, rfc3339
from pilotage.explain.expected_start import ExpectedStart, range_text, trust_text
from pilotage.explain.queueing import QueueingView, UnqueuedJob, owner_of
from pilotage.jobs.conditions import epoch
from pilotage.jobs.reports import PendingWorkload
from pilotage.model.kueue import Workload

_EPILOG = """\b
Examples:
  pilotage jobs
  pilotage jobs -n research --state pending
  pilotage jobs stop train -n research
  pilotage jobs -o json | jq '.[] | select(.requeue_count) | .key'
"""
_HEADINGS = (
    "NAMESPACE", "JOB", "QUEUE", "CLUSTER QUEUE", "PRIORITY", "STATE", "POSITION", "REASON", "REQUEUES", "RETRIED AT",
    "STARTS IN", "AGE", "EXEC TIME",
)  # fmt: skip
_STATES = ("pending", "reserved", "admitted", "evicting", "inactive", "finished", "unqueued")


class JobRow(msgspec.Struct, frozen=True):
    """One workload. `position` counts from 1 in its cluster queue; null if it does not wait."""

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
    age_seconds: int | None = None
    """Since it was created."""
    exec_seconds: int | None = None
    """For how long it has been admitted in all; null if it never was."""
    expected_start: ExpectedStart | None = None
    """Of one that waits; null if nothing can be said."""


@click.group(cls=ShowingGroup, invoke_without_command=True, epilog=_EPILOG)
@click.option("-n", "--namespace", metavar="N", help="Only workloads of this namespace.  [default: all]")
@click.option("-q", "--queue", "queue_name", metavar="Q", help="Only workloads of this local or cluster queue.")
@click.option("--state", type=click.Choice(_STATES), help="Only workloads in this state.  [default: all but finished]")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@WHEN
@source_options
@common_options
@click.pass_context
def jobs(
    context: click.Context,
    namespace: str | None,
    queue_name: str | None,
    state: str | None,
    output: str,
    when: bool | None,
    source: QueueingSource,
) -> None:
    """Show queued workloads: those that run first, then those that wait, in the order of their queues.

    REASON says why a workload does not run; `pilotage explain workload/NAME` says more. REQUEUES counts how often its
    pods did not become ready in time. STARTS IN is an estimate: four of five are to start within the range.

    The commands below change a job, with the rights that its owner has in the namespace.
    """
    if context.invoked_subcommand is not None:
        return
    clock = SystemClock()
    view = source.view(clock)
    starts = starts_of_view(view, clock.time(), when)
    rows = [
        row
        for row in rows_of(view, clock.time(), starts)
        if (namespace is None or row.key.startswith(f"{namespace}/"))
        and (queue_name is None or queue_name in (row.local_queue, row.cluster_queue))
        and (row.state == state if state is not None else row.state != "finished")
    ]
    if output == "json":
        show_json(rows, indent=2)
    elif rows:
        show(columns(_HEADINGS, [_cells(row) for row in rows]))
        if any(row.expected_start is not None for row in rows):
            show(f"\n{trust_text(next(iter(starts.values())))}")
    else:
        show("no workloads")


@jobs.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@change_options
def stop(names: tuple[str, ...], reach: Reach) -> None:
    """Stop jobs: they lose their quota, and wait until they are resumed. NAME is that of a job or of its workload."""
    show(reach.run(lambda client: set_active(client, names, is_active=False)))


@jobs.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@change_options
def resume(names: tuple[str, ...], reach: Reach) -> None:
    """Queue jobs again that were stopped, by a user or by the system."""
    show(reach.run(lambda client: set_active(client, names, is_active=True)))


@jobs.command()
@click.argument("name")
@click.argument("queue", metavar="LOCALQUEUE")
@change_options
def move(name: str, queue: str, reach: Reach) -> None:
    """Let a job that waits wait in another local queue of its namespace."""
    show(reach.run(lambda client: move_job(client, name, queue)))


@jobs.command()
@click.argument("name")
@click.argument("priority_class", metavar="CLASS")
@change_options
def priority(name: str, priority_class: str, reach: Reach) -> None:
    """Give a job the priority of a WorkloadPriorityClass, while it waits or runs."""
    show(reach.run(lambda client: set_priority(client, name, priority_class)))


def rows_of(view: QueueingView, now: float, starts: Mapping[str, ExpectedStart]) -> list[JobRow]:
    """Running ones by name, then the queues in order, then what is in no queue, then jobs without a workload."""
    waiting = [
        msgspec.structs.replace(_waiting(view, queue, one, now), expected_start=starts.get(one.key))
        for queue, one in view.pending()
    ]
    queued = {row.key for row in waiting}
    others = [_explained(view, workload, now) for key, workload in sorted(view.workloads.items()) if key not in queued]
    running = [row for row in others if row.state in ("reserved", "admitted", "evicting")]
    unqueued = [_unqueued(job) for job in view.unqueued]
    return [*running, *waiting, *(row for row in others if row not in running), *unqueued]


def _unqueued(job: UnqueuedJob) -> JobRow:
    return JobRow(job.key, "", job.queue, "", 0, "unqueued", None, job.reason, job.message, None, None)


def _waiting(view: QueueingView, queue: str, one: PendingWorkload, now: float) -> JobRow:
    return JobRow(
        key=one.key,
        job=owner_of(view.workloads[one.key]),
        local_queue=one.local_queue,
        cluster_queue=queue,
        priority=one.priority,
        state="pending",
        position=one.position_in_cluster_queue + 1,
        reason=one.reason,
        message=one.message,
        requeue_count=one.requeue_count,
        requeue_at=_time(one.requeue_at),
        age_seconds=_age(view.workloads[one.key], now),
        exec_seconds=_exec_seconds(view.workloads[one.key], now),
    )


def _explained(view: QueueingView, workload: Workload, now: float) -> JobRow:
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
        age_seconds=_age(workload, now),
        exec_seconds=_exec_seconds(workload, now),
    )


def _age(workload: Workload, now: float) -> int | None:
    created = epoch(workload.metadata.creation_timestamp)
    return max(0, int(now) - created) if created else None


def _exec_seconds(workload: Workload, now: float) -> int | None:
    """Of earlier runs and of the present one, which ends with the workload."""
    past = workload.status.accumulated_past_execution_time_seconds
    times = {one.type: epoch(one.last_transition_time) for one in workload.status.conditions if one.status == "True"}
    since = times.get("Admitted")
    if since is None:
        return past
    return (past or 0) + max(0, times.get("Finished", int(now)) - since)


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
        range_text(row.expected_start),
        "-" if row.age_seconds is None else short_duration(row.age_seconds),
        "-" if row.exec_seconds is None else short_duration(row.exec_seconds),
    )
