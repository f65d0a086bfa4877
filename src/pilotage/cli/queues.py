"""`pilotage queues`: how much quota there is, who uses it, and how many wait for it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from pilotage.cli.columns import columns
from pilotage.cli.errors import bad_input
from pilotage.cli.options import common_options
from pilotage.cli.output import show, show_json
from pilotage.cli.queueing_view import QueueingSource, source_options
from pilotage.escaping import visible_lines
from pilotage.explain.amounts import readable
from pilotage.jobs.reports import ClusterQueueReport, LocalQueueReport, QuotaReport
from pilotage.model.suggestions import suggestion

_EPILOG = """\b
Examples:
  pilotage queues
  pilotage queues research -o json | jq '.clusterQueues[].quotas'
  pilotage queues -f queues.yaml -f workloads.yaml
"""
_QUEUES = ("CLUSTER QUEUE", "COHORT", "STRATEGY", "PENDING", "RESERVING", "ADMITTED", "STATUS")
_QUOTAS = ("CLUSTER QUEUE", "FLAVOR", "RESOURCE", "QUOTA", "USED", "BORROWED", "FREE", "LIMITS")
_LOCAL = ("NAMESPACE", "LOCAL QUEUE", "CLUSTER QUEUE", "PENDING", "RESERVING", "ADMITTED", "USED", "STATUS")


@click.command(epilog=_EPILOG)
@click.argument("name", metavar="[CLUSTERQUEUE]", default="")
@click.option("-n", "--namespace", metavar="N", help="Only local queues of this namespace.  [default: all]")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@source_options
@common_options
def queues(name: str, namespace: str | None, output: str, source: QueueingSource) -> None:
    """Show cluster queues with their quota, and the local queues that lead to them.

    QUOTA is what belongs to a queue, BORROWED what it uses of others' quota, FREE what a workload could get now, by
    borrowing too.
    """
    view = source.view()
    cluster_queues, local_queues = list(view.engine.cluster_queues()), list(view.engine.local_queues())
    if name:
        known = [queue.name for queue in cluster_queues]
        if name not in known:
            raise bad_input(f'there is no cluster queue "{name}"{suggestion(name, known)}')
        cluster_queues = [queue for queue in cluster_queues if queue.name == name]
        local_queues = [queue for queue in local_queues if queue.cluster_queue == name]
    if namespace is not None:
        local_queues = [queue for queue in local_queues if queue.namespace == namespace]
    if output == "json":
        show_json(document(cluster_queues, local_queues), indent=2)
    else:
        show(render(cluster_queues, local_queues))


def document(cluster_queues: list[ClusterQueueReport], local_queues: list[LocalQueueReport]) -> dict[str, object]:
    """What `-o json` prints. cpu in thousandths, everything else in units."""
    locals_ = []
    for queue in local_queues:
        plain = {name: getattr(queue, name) for name in queue.__slots__ if not name.endswith("_usage")}
        plain["reserved_usage"] = _usage_list(queue)
        locals_.append(plain)
    # What happened in its cycles is known to the running controller alone.
    unknown = ("inadmissible", "preemption_skips")
    queues = [
        {name: getattr(queue, name) for name in queue.__slots__ if name not in unknown} for queue in cluster_queues
    ]
    return {"clusterQueues": queues, "localQueues": locals_}


def _usage_list(queue: LocalQueueReport) -> list[dict[str, object]]:
    return [
        {"flavor": flavor, "resource": resource, "amount": amount}
        for (flavor, resource), amount in queue.reserved_usage.items()
    ]


def render(cluster_queues: list[ClusterQueueReport], local_queues: list[LocalQueueReport]) -> str:
    if not cluster_queues:
        return "there are no cluster queues"
    parts = [columns(_QUEUES, [_queue_row(queue) for queue in cluster_queues])]
    quotas = [(queue.name, quota) for queue in cluster_queues for quota in queue.quotas]
    if quotas:
        parts.append(columns(_QUOTAS, [_quota_row(name, quota) for name, quota in quotas]))
    if local_queues:
        parts.append(columns(_LOCAL, [_local_row(queue) for queue in local_queues]))
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
        f"{queue.name}: {queue.message}" for queue in cluster_queues if not queue.is_active or "exceed" in queue.message
    ]
    found += [f"{queue.namespace}/{queue.name}: {queue.message}" for queue in local_queues if not queue.is_active]
    if found:
        yield visible_lines(found)
