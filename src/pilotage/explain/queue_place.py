"""What the queue of a running scheduler adds to an explanation: the pod's place, who holds it, who else waits."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from pilotage.explain.render import with_answer
from pilotage.explain.report import OthersWaiting, QueuePlace, RejectionGroup, Report
from pilotage.model import Pod
from pilotage.queue.report import QueuedPodReport, QueueReport


def with_queue(report: Report, queue: QueueReport, pod: Pod, siblings: Collection[Pod], workload: str) -> Report:
    """The report with what the scheduler's own queue knows; `siblings` are the pending pods of the same workload."""
    found = _find(queue, pod.uid)
    if found is None:
        return report
    queued = found[1]
    others = _others(queue, queued, {one.uid for one in siblings}, workload)
    report = with_answer(replace(report, queue=_place(*found), others=others))
    report = _with_extender_rejections(report, queued)
    if not queued.held_by:
        return report
    # Its place is taken, by itself: whatever was found out about the nodes is about another pod like it.
    held = Report(
        pod=report.pod,
        answer="",
        fits=True,
        scheduler=report.scheduler,
        nodes=report.nodes,
        held_by=queued.held_by,
        held_on=queued.node,
        queue=report.queue,
        others=others,
        unserved=report.unserved,
        skipped=report.skipped,
    )
    return with_answer(held)


def _with_extender_rejections(report: Report, queued: QueuedPodReport) -> Report:
    """What was said by extenders, who are not asked for the sake of a report."""
    if not queued.rejected_nodes:
        return report
    groups = tuple(
        RejectionGroup(
            plugin=one.extender,
            code="RejectedByExtender",
            message=one.message or "no reason given",
            nodes=one.nodes,
            examples=one.examples,
            preemption_may_help=not one.is_unresolvable,
        )
        for one in sorted(queued.rejected_nodes, key=lambda one: (-one.nodes, one.extender, one.message))
    )
    return with_answer(replace(report, rejected_by_extenders=groups))


def with_siblings(report: Report, pod: Pod, siblings: Collection[Pod], workload: str) -> Report:
    """The report where there is no queue to ask: pods of the same workload with the same spec wait for the same."""
    alike = sum(one.uid != pod.uid and one.spec is pod.spec for one in siblings)
    if report.fits or not alike:
        return report
    return replace(report, others=OthersWaiting(alike, alike, workload))


def queue_place(report: QueueReport, uid: str) -> QueuePlace | None:
    """What the scheduler's own queue says of the pod, or of the group of which it is a member; None if nothing."""
    found = _find(report, uid)
    return None if found is None else _place(*found)


def group_place(report: QueueReport, key: str) -> QueuePlace | None:
    """What the queue says of the group of this key."""
    for part, entries in report.parts().items():
        for entry in entries:
            if entry.kind == "PodGroup" and f"{entry.namespace}/{entry.name}" == key:
                return _place(part, entry)
    for one in report.in_flight:
        # In its cycle the group is there by its members only.
        if one.pod_group and f"{one.namespace}/{one.pod_group}" == key and not one.is_binding:
            return _place("in flight", one)
    return None


def _find(report: QueueReport, uid: str) -> tuple[str, QueuedPodReport] | None:
    for part, pods in report.parts().items():
        for pod in pods:
            if pod.uid == uid or any(member.uid == uid for member in pod.members):
                return part, pod
    return None


def _place(part: str, pod: QueuedPodReport) -> QueuePlace:
    return QueuePlace(
        place=part,
        waiting_seconds=pod.waiting_seconds,
        attempts=pod.attempts,
        backoff_seconds=pod.backoff_seconds,
        is_error=pod.is_error,
        last_error=pod.message if pod.is_error and pod.kind == "Pod" and not pod.rejectors else "",
        waits_for_time=pod.kind == "PodGroup" and part == "backoff",
        rejectors=pod.rejectors,
        gated_by=pod.gated_by,
        held_by=pod.held_by,
        asked=pod.asked,
    )


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
