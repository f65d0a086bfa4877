"""What the queue of a running scheduler adds to an explanation: the pod's place, who holds it, who else waits."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from msgspec.structs import replace

from pilotage.explain.report import OthersWaiting, RejectionGroup, Report
from pilotage.model import Pod
from pilotage.model.durations import go_duration
from pilotage.queue.report import QueuedPodReport, QueueReport


def with_queue(report: Report, queue: QueueReport, pod: Pod, siblings: Collection[Pod], workload: str) -> Report:
    """The report with what the scheduler's own queue knows; `siblings` are the pending pods of the same workload."""
    found = _find(queue, pod.uid)
    if found is None:
        return report
    queued = found[1]
    others = _others(queue, queued, {one.uid for one in siblings}, workload)
    report = _with_refusals(replace(report, queue=_facts(*found), others=others), queued)
    if not queued.held_by:
        return report
    # Its place is taken, by itself: whatever was found out about the nodes is about another pod like it.
    answer = f"{pod.key} has a place on {queued.node} and is held there by {_named(queued.held_by)} (Permit)."
    return Report(
        pod=report.pod,
        answer=answer,
        fits=True,
        scheduler=report.scheduler,
        nodes=report.nodes,
        held_by=queued.held_by,
        queue=report.queue,
        others=others,
        unserved=report.unserved,
        skipped=report.skipped,
    )


def _with_refusals(report: Report, queued: QueuedPodReport) -> Report:
    """What was said by extenders, who are not asked for the sake of a report."""
    if not queued.refusals:
        return report
    groups = tuple(
        RejectionGroup(
            plugin=one.extender,
            code="RefusedByExtender",
            message=one.message or "no reason given",
            nodes=one.nodes,
            examples=one.examples,
            preemption_may_help=not one.is_unresolvable,
        )
        for one in sorted(queued.refusals, key=lambda one: (-one.nodes, one.extender, one.message))
    )
    count = sum(group.nodes for group in groups)
    nodes = "1 node" if count == 1 else f"{count} nodes"
    answer = f"{report.answer} In its last attempt extenders refused {nodes}: {groups[0].message}."
    return replace(report, answer=answer, refused=groups)


def with_siblings(report: Report, pod: Pod, siblings: Collection[Pod], workload: str) -> Report:
    """The report where there is no queue to ask: pods of the same workload with the same spec wait for the same."""
    alike = sum(one.uid != pod.uid and one.spec is pod.spec for one in siblings)
    if report.fits or not alike:
        return report
    return replace(report, others=OthersWaiting(alike, alike, workload))


def queue_place(report: QueueReport, uid: str) -> dict[str, Any]:
    """What the scheduler's own queue says of the pod; empty if it is not in it."""
    found = _find(report, uid)
    return {} if found is None else _facts(*found)


def _find(report: QueueReport, uid: str) -> tuple[str, QueuedPodReport] | None:
    return next(((part, pod) for part, pods in report.parts().items() for pod in pods if pod.uid == uid), None)


def _facts(part: str, pod: QueuedPodReport) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "place": "error backoff" if pod.is_error else part,
        "since": f"{go_duration(round(pod.waiting_seconds))} ago",
        "attempts": pod.attempts,
    }
    if pod.backoff_seconds > 0:
        facts["backoff left"] = go_duration(round(pod.backoff_seconds, 1))
    if pod.rejectors:
        facts["waits for events of"] = ", ".join(pod.rejectors)
    if pod.gated_by:
        facts["gated by"] = pod.gated_by
    if pod.held_by:
        facts["held by (Permit)"] = ", ".join(pod.held_by)
    return facts


def _others(queue: QueueReport, pod: QueuedPodReport, siblings: set[str], workload: str) -> OthersWaiting | None:
    """Who else waits for the same plugins."""
    reason = _reason(pod)
    if not any(reason):
        return None
    alike = [
        one.uid for pods in queue.parts().values() for one in pods if one.uid != pod.uid and _reason(one) == reason
    ]
    if not alike:
        return None
    plugins = tuple(dict.fromkeys((*pod.held_by, *filter(None, [pod.gated_by]), *pod.rejectors)))
    return OthersWaiting(len(alike), sum(uid in siblings for uid in alike), workload, plugins)


def _reason(pod: QueuedPodReport) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    return pod.held_by, pod.gated_by, pod.rejectors


def _named(plugins: tuple[str, ...]) -> str:
    return ("plugin " if len(plugins) == 1 else "plugins ") + ", ".join(plugins)
