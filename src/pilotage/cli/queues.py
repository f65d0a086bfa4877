"""`pilotage queues`: how much quota there is, who uses it, and how many wait for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

from pilotage.cli.columns import columns
from pilotage.cli.errors import bad_input
from pilotage.cli.expected_starts import WHEN, starts_of_view
from pilotage.cli.options import common_options
from pilotage.cli.output import show, show_json
from pilotage.cli.queueing_changes import DRAIN, RESUME, STOP, Reach, ShowingGroup, change_options, set_stop_policy
from pilotage.cli.queueing_view import QueueingSource, source_options
from pilotage.clock import SystemClock
from pilotage.escaping import visible_lines
from pilotage.explain.amounts import readable
from pilotage.explain.expected_start import ExpectedStart, range_text, trust_text
from pilotage.explain.queueing import QueueingView
from pilotage.jobs.reports import ClusterQueueReport, LocalQueueReport, QuotaReport
from pilotage.model.suggestions import suggestion

_EPILOG = """\b
Examples:
  pilotage queues
  pilotage queues research -o json | jq '.clusterQueues[].quotas'
  pilotage queues stop team -n research
  pilotage queues -f queues.yaml -f workloads.yaml
"""
_QUEUES = ("CLUSTER QUEUE", "COHORT", "STRATEGY", "PENDING", "RESERVING", "ADMITTED", "STATUS")
_QUOTAS = ("CLUSTER QUEUE", "FLAVOR", "RESOURCE", "QUOTA", "USED", "BORROWED", "FREE", "LIMITS")
_LOCAL = ("NAMESPACE", "LOCAL QUEUE", "CLUSTER QUEUE", "PENDING", "RESERVING", "ADMITTED", "USED", "STATUS")
_STARTS = ("CLUSTER QUEUE", "WAIT", "NEXT STARTS IN", "LAST STARTS IN")


@click.group(cls=ShowingGroup, invoke_without_command=True, epilog=_EPILOG)
@click.argument("name", metavar="[CLUSTERQUEUE]", default="")
@click.option("-n", "--namespace", metavar="N", help="Only local queues of this namespace.  [default: all]")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@WHEN
@source_options
@common_options
@click.pass_context
def queues(
    context: click.Context,
    name: str,
    namespace: str | None,
    output: str,
    when: bool | None,
    source: QueueingSource,
) -> None:
    """Show cluster queues with their quota, and the local queues that lead to them.

    QUOTA is what belongs to a queue, BORROWED what it uses of others' quota, FREE what a workload could get now, by
    borrowing too.

    The commands below stop and open local queues, with the rights that a user has in the namespace.
    """
    if context.invoked_subcommand is not None:
        return
    clock = SystemClock()
    view = source.view(clock)
    cluster_queues, local_queues = list(view.engine.cluster_queues()), list(view.engine.local_queues())
    if name:
        known = [queue.name for queue in cluster_queues]
        if name not in known:
            raise bad_input(f'there is no cluster queue "{name}"{suggestion(name, known)}')
        cluster_queues = [queue for queue in cluster_queues if queue.name == name]
        local_queues = [queue for queue in local_queues if queue.cluster_queue == name]
    if namespace is not None:
        local_queues = [queue for queue in local_queues if queue.namespace == namespace]
    all_starts = starts_of_view(view, clock.time(), when)
    starts = {queue.name: _starts(view, queue.name, all_starts) for queue in cluster_queues}
    if output == "json":
        show_json(document(cluster_queues, local_queues, starts), indent=2)
    else:
        show(render(cluster_queues, local_queues, starts))


def _changing(command: Callable[..., Any]) -> click.Command:
    """A command about one queue."""
    option = click.option("--cluster-queue", is_flag=True, help="NAME is a cluster queue: for administrators.")
    return queues.command()(click.argument("name")(change_options(option(command))))


def _change(reach: Reach, name: str, policy: str, *, cluster_queue: bool) -> None:
    show(reach.run(lambda client: set_stop_policy(client, name, policy, is_cluster_queue=cluster_queue)))


@_changing
def stop(name: str, cluster_queue: bool, reach: Reach) -> None:
    """Admit nothing more from a queue; what runs goes on."""
    _change(reach, name, STOP, cluster_queue=cluster_queue)


@_changing
def drain(name: str, cluster_queue: bool, reach: Reach) -> None:
    """Admit nothing more from a queue, and evict what runs: it waits until the queue is open again."""
    _change(reach, name, DRAIN, cluster_queue=cluster_queue)


@_changing
def resume(name: str, cluster_queue: bool, reach: Reach) -> None:
    """Open a queue again that was stopped or drained."""
    _change(reach, name, RESUME, cluster_queue=cluster_queue)


def _starts(view: QueueingView, queue: str, starts: Mapping[str, ExpectedStart]) -> list[ExpectedStart]:
    """Of those that wait in a queue, the next to start first."""
    found = [starts[one.key] for one in view.engine.pending(queue) if one.key in starts]
    return sorted(found, key=_middle)


def _middle(start: ExpectedStart) -> float:
    if start.soonest is None:
        return math.inf
    return start.soonest + (start.horizon if start.latest is None else start.latest)


def document(
    cluster_queues: list[ClusterQueueReport],
    local_queues: list[LocalQueueReport],
    starts: Mapping[str, list[ExpectedStart]],
) -> dict[str, object]:
    """What `-o json` prints. cpu in thousandths, everything else in units."""
    locals_ = []
    for queue in local_queues:
        plain = {name: getattr(queue, name) for name in queue.__slots__ if not name.endswith("_usage")}
        plain["reserved_usage"] = _usage_list(queue)
        locals_.append(plain)
    # What happened in its cycles is known to the running controller alone.
    unknown = ("inadmissible", "preemption_skips")
    queues: list[dict[str, object]] = [
        {name: getattr(queue, name) for name in queue.__slots__ if name not in unknown} for queue in cluster_queues
    ]
    for shown in queues:
        known = starts.get(str(shown["name"]))
        shown["expected_starts"] = {"next": known[0], "last": known[-1]} if known else None
    return {"clusterQueues": queues, "localQueues": locals_}


def _usage_list(queue: LocalQueueReport) -> list[dict[str, object]]:
    return [
        {"flavor": flavor, "resource": resource, "amount": amount}
        for (flavor, resource), amount in queue.reserved_usage.items()
    ]


def render(
    cluster_queues: list[ClusterQueueReport],
    local_queues: list[LocalQueueReport],
    starts: Mapping[str, list[ExpectedStart]],
) -> str:
    if not cluster_queues:
        return "there are no cluster queues"
    parts = [columns(_QUEUES, [_queue_row(queue) for queue in cluster_queues])]
    quotas = [(queue.name, quota) for queue in cluster_queues for quota in queue.quotas]
    if quotas:
        parts.append(columns(_QUOTAS, [_quota_row(name, quota) for name, quota in quotas]))
    if local_queues:
        parts.append(columns(_LOCAL, [_local_row(queue) for queue in local_queues]))
    rows = [
        (name, str(len(found)), range_text(found[0]), range_text(found[-1])) for name, found in starts.items() if found
    ]
    if rows:
        parts.append(columns(_STARTS, rows))
        parts.append(trust_text(next(found[0] for found in starts.values() if found)))
    return "\n\n".join([*parts, *_problems(cluster_queues, local_queues)])


def _queue_row(queue: ClusterQueueReport) -> tuple[str, ...]:
    return (
        queue.name,
        queue.cohort or "-",
        queue.strategy,
        str(queue.pending),
        str(queue.reserving),
        str(queue.admitted),
        "active" if queue.is_active else queue.reason,
    )


def _quota_row(name: str, quota: QuotaReport) -> tuple[str, ...]:
    def shown(amount: int) -> str:
        return readable(quota.resource, amount)

    limits = [
        f"{word} {shown(limit)}"
        for word, limit in (("borrow", quota.borrowing_limit), ("lend", quota.lending_limit))
        if limit is not None
    ]
    return (
        name,
        quota.flavor,
        quota.resource,
        shown(quota.nominal),
        shown(quota.used),
        shown(quota.borrowed),
        shown(quota.available),
        ", ".join(limits) or "-",
    )


def _local_row(queue: LocalQueueReport) -> tuple[str, ...]:
    used = [
        f"{flavor} {readable(resource, amount)} {resource}"
        for (flavor, resource), amount in queue.reserved_usage.items()
    ]
    return (
        queue.namespace,
        queue.name,
        queue.cluster_queue,
        str(queue.pending),
        str(queue.reserving),
        str(queue.admitted),
        ", ".join(used) or "-",
        "active" if queue.is_active else queue.reason,
    )


def _problems(cluster_queues: list[ClusterQueueReport], local_queues: list[LocalQueueReport]) -> Iterator[str]:
    """Sentences for what the tables only name."""
    found = [
        f"{queue.name}: {queue.message}" for queue in cluster_queues if not queue.is_active or "; " in queue.message
    ]
    found += [f"{queue.namespace}/{queue.name}: {queue.message}" for queue in local_queues if not queue.is_active]
    if found:
        yield visible_lines(found)
