"""Lines that reports are made of: what is data in them, as people read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilotage.explain.amounts import readable
from pilotage.explain.report import Advice, JobQuota, Lack, LackDetail, NearNode, QueuePlace, RejectionGroup, Victims
from pilotage.model.durations import go_duration


def victims_text(victims: Victims) -> str:
    """Whom preemption would evict, or why nobody."""
    if victims.code == "NeverPreempts":
        return "not tried, because its preemptionPolicy is Never"
    if victims.code == "NothingHelps":
        return "evicting pods of lower priority does not help on any node"
    more = f" and {victims.count - len(victims.examples)} more" if victims.count > len(victims.examples) else ""
    where = f" from {victims.node}" if victims.node else ""
    budgets = f", against {victims.budgets_violated} disruption budget(s)" if victims.budgets_violated else ""
    return f"would evict {', '.join(victims.examples)}{more}{where}{budgets}"


def queue_lines(queue: QueuePlace) -> Iterator[str]:
    """What the queue knows, a line for each fact."""
    yield f"place: {'error backoff' if queue.is_error else queue.place}"
    yield f"since: {go_duration(round(queue.waiting_seconds))} ago"
    yield f"attempts: {queue.attempts}"
    if queue.backoff_seconds > 0:
        yield f"backoff left: {go_duration(round(queue.backoff_seconds, 1))}"
    if queue.waits_for_time:
        yield "waits for: time, as every group that was tried"
    elif queue.rejectors:
        yield f"waits for events of: {', '.join(queue.rejectors)}"
    if queue.gated_by:
        yield f"gated by: {queue.gated_by}"
    if queue.held_by:
        yield f"held by (Permit): {', '.join(queue.held_by)}"
    if queue.asked:
        yield f"waits for the answer of: {', '.join(queue.asked)}"


def section(title: str, rows: Iterator[str] | list[str]) -> list[str]:
    indented = [f"  {row}" for row in rows]
    return ["", f"{title}:", *indented] if indented else []


def rejection_line(group: RejectionGroup, wide: bool) -> str:
    plugin = group.plugin or "PreFilter"
    examples = ", ".join(group.examples) + (", ..." if group.nodes > len(group.examples) else "")
    hopeless = "" if group.preemption_may_help else "  (evicting pods cannot help)"
    text = f"{group.nodes:>5}  {plugin}: {group.message}"
    return f"{text}  [{examples}]{hopeless}" if wide else text


def advice_line(advice: Advice) -> str:
    return f"{advice.change} (then on {advice.node})" if advice.node else advice.change


def near_lines(nearest: Iterable[NearNode]) -> Iterator[str]:
    """What each node lacks, and what is behind it."""
    for near in nearest:
        yield f"{near.node}: {_lacks_text(near.lacks)}"
        for lack in near.lacks:
            yield from (f"  - {_detail_text(detail)}" for detail in lack.behind)


def _detail_text(detail: LackDetail) -> str:
    if not detail.objects:
        return detail.message
    more = f", ... {detail.count} in all" if detail.count > len(detail.objects) else ""
    return f"{detail.message}  [{', '.join(detail.objects)}{more}]"


def _lacks_text(lacks: tuple[Lack, ...]) -> str:
    return "; ".join(_lack_text(lack) for lack in lacks) or "lacks nothing that can be named"


def _lack_text(lack: Lack) -> str:
    if lack.need is None or lack.have is None or not lack.detail:
        return lack.message
    need, have = readable(lack.detail, lack.need), readable(lack.detail, max(lack.have, 0))
    return f"{lack.detail}: needs {need}, {have} free"


def with_quota(quota: JobQuota | None, answer: str) -> str:
    """Quota comes first: without it the pods of a job are not even made, or not let in."""
    return answer if quota is None or quota.is_admitted else f"{quota_text(quota)}. When it has quota: {answer}"


def quota_text(quota: JobQuota) -> str:
    """What workload queueing says of the job."""
    if quota.is_admitted:
        return f"workload {quota.workload} is {quota.state} in {quota.cluster_queue}"
    place = "" if quota.position is None else f", position {quota.position + 1} of {quota.cluster_queue}"
    why = ": ".join(filter(None, (quota.reason, quota.message)))
    return f"workload {quota.workload} is {quota.state}{place}" + (f": {why}" if why else "")
