"""The report for people: first line is the answer, the rest is evidence."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from pilotage.escaping import visible_lines
from pilotage.explain.expected_start import start_lines
from pilotage.explain.group_text import group_sections
from pilotage.explain.report import OthersWaiting, Report, ScoredNode
from pilotage.explain.text_lines import (
    advice_line,
    near_lines,
    queue_lines,
    quota_text,
    rejection_line,
    section,
    victims_text,
    with_quota,
)

_MANY_EVENTS = 8


def render(report: Report, *, wide: bool = False) -> str:
    """Plain text, a section per question that is left."""
    lines = [report.answer]
    if report.others is not None:
        lines.append(_others_line(report.others))
    if report.quota is not None:
        lines += section("Quota, which comes first", [quota_text(report.quota)])
    if report.pod_group is not None:
        lines += group_sections(report.pod_group, wide=wide)
    lines += section("Why not", (rejection_line(group, wide) for group in report.rejections))
    lines += section("Rejected by extenders", (rejection_line(group, wide) for group in report.rejected_by_extenders))
    lines += section("Not on" if report.fits else "Nearest", near_lines(report.nearest))
    lines += section("Best nodes", _score_lines(report))
    lines += section("Would fit if", (advice_line(advice) for advice in report.would_fit_if))
    if report.preemption is not None:
        lines += section("Preemption", [victims_text(report.preemption)])
    lines += section("Tried again after", _event_lines(report, wide))
    if report.queue is not None:
        lines += section("Queue", queue_lines(report.queue))
    if report.expected_start is not None:
        lines += section("Expected to start", start_lines(report.expected_start))
    lines += section("Not served", list(report.unserved))
    lines += section("Skipped, not taken into account", list(report.skipped))
    if report.message:
        lines += section("As kube-scheduler says it", [report.message])
    return visible_lines(lines)


def with_answer(report: Report) -> Report:
    """The report with its answer, the first line."""
    return replace(report, answer=with_quota(report.quota, _answer(report)))


def _answer(report: Report) -> str:
    if report.assigned_to:
        return f"{report.pod} is on node {report.assigned_to}."
    if report.held_by:
        plugins = ("plugin " if len(report.held_by) == 1 else "plugins ") + ", ".join(report.held_by)
        where = f" on {report.held_on}" if report.held_on else ""
        return f"{report.pod} has a place{where} and is held there by {plugins} (Permit)."
    if report.pod_group is not None:
        return f"{report.pod} is placed together with its group: {report.pod_group.answer}"
    answer = f"{report.pod} {_verdict(report)}."
    if report.queue is not None and report.queue.last_error:
        return f"{answer} Its last attempt failed: {report.queue.last_error.rstrip('.')}."
    if not report.rejected_by_extenders:
        return answer
    count = sum(group.nodes for group in report.rejected_by_extenders)
    nodes = "1 node" if count == 1 else f"{count} nodes"
    return f"{answer} In its last attempt extenders rejected {nodes}: {report.rejected_by_extenders[0].message}."


def _verdict(report: Report) -> str:
    if report.gated_by:
        return f"is not tried: {report.gated_by[0]}"
    if report.error:
        return f"cannot be placed: {report.error}"
    if report.feasible:
        where = f"; it would go to {report.best[0].node}" if report.best else ""
        return f"fits on {report.feasible} of {report.nodes} nodes{where}"
    most = report.rejections[0] if report.rejections else None
    why = "" if most is None else f": {most.message} on {most.nodes} of {report.nodes} nodes"
    return f"fits on none of {report.nodes} nodes{why}"


def _others_line(others: OthersWaiting) -> str:
    pods, wait = ("pod", "waits") if others.pods == 1 else ("pods", "wait")
    plugins = f" ({', '.join(others.plugins)})" if others.plugins else ""
    if others.workload and others.of_workload == others.pods:
        return f"{others.pods} other {pods} of {others.workload} {wait} for the same reason{plugins}."
    share = f", {others.of_workload} of them of {others.workload}" if others.workload and others.of_workload else ""
    return f"{others.pods} other {pods} {wait} for the same reason{plugins}{share}."


def _score_lines(report: Report) -> Iterator[str]:
    for number, score in enumerate(report.best):
        role = "chosen" if number == 0 else "next" if score.place == number + 1 else f"in place {score.place}"
        yield f"{score.node}  {score.total}  ({role}: {_plugins_text(score)})"
    if report.tied > 1:
        yield f"{report.tied} nodes share the highest score; the first in kube-scheduler's order is taken"


def _plugins_text(score: ScoredNode) -> str:
    return ", ".join(f"{name} {value}" for name, value in score.plugins.items() if value)


def _event_lines(report: Report, wide: bool) -> Iterator[str]:
    events = report.retried_after
    for event in events if wide else events[:_MANY_EVENTS]:
        yield f"{event.resource} {' | '.join(event.actions)}  ({event.plugin})"
    if not wide and len(events) > _MANY_EVENTS:
        yield f"... and {len(events) - _MANY_EVENTS} more (-o wide)"
