"""The report for people: first line is the answer, the rest is evidence."""

from __future__ import annotations

from collections.abc import Iterator

from pilotage.escaping import visible_lines
from pilotage.explain.amounts import readable
from pilotage.explain.report import Advice, Lack, LackDetail, OthersWaiting, RejectionGroup, Report, ScoredNode

_MANY_EVENTS = 8


def render(report: Report, *, wide: bool = False) -> str:
    """Plain text, a section per question that is left."""
    lines = [report.answer]
    if report.others is not None:
        lines.append(_others_line(report.others))
    lines += _section("Why not", (_rejection_line(group, wide) for group in report.rejections))
    lines += _section("Refused by extenders", (_rejection_line(group, wide) for group in report.refused))
    lines += _section("Not on" if report.fits else "Nearest", _near_lines(report))
    lines += _section("Best nodes", _score_lines(report))
    lines += _section("Would fit if", (_advice_line(advice) for advice in report.would_fit_if))
    if report.preemption:
        lines += _section("Preemption", [report.preemption])
    lines += _section("Tried again after", _event_lines(report, wide))
    if report.queue:
        lines += _section("Queue", (f"{name}: {value}" for name, value in report.queue.items()))
    lines += _section("Not served", list(report.unserved))
    lines += _section("Skipped, not taken into account", list(report.skipped))
    if report.message:
        lines += _section("As kube-scheduler says it", [report.message])
    return visible_lines(lines)


def _others_line(others: OthersWaiting) -> str:
    pods, wait = ("pod", "waits") if others.pods == 1 else ("pods", "wait")
    plugins = f" ({', '.join(others.plugins)})" if others.plugins else ""
    share = ""
    if others.workload and others.of_workload:
        whole = others.of_workload == others.pods
        share = f" of {others.workload}" if whole else f", {others.of_workload} of them of {others.workload}"
    if share.startswith(" of"):
        return f"{others.pods} other {pods}{share} {wait} for the same reason{plugins}."
    return f"{others.pods} other {pods} {wait} for the same reason{plugins}{share}."


def _section(title: str, rows: Iterator[str] | list[str]) -> list[str]:
    indented = [f"  {row}" for row in rows]
    return ["", f"{title}:", *indented] if indented else []


def _rejection_line(group: RejectionGroup, wide: bool) -> str:
    plugin = group.plugin or "PreFilter"
    examples = ", ".join(group.examples) + (", ..." if group.nodes > len(group.examples) else "")
    hopeless = "" if group.preemption_may_help else "  (evicting pods cannot help)"
    text = f"{group.nodes:>5}  {plugin}: {group.message}"
    return f"{text}  [{examples}]{hopeless}" if wide else text


def _advice_line(advice: Advice) -> str:
    return f"{advice.change} (then on {advice.node})" if advice.node else advice.change


def _near_lines(report: Report) -> Iterator[str]:
    for near in report.nearest:
        yield f"{near.node}: {_lacks_text(near.lacks)}"
        for lack in near.lacks:
            yield from (f"  - {_detail_text(detail)}" for detail in lack.behind)


def _detail_text(detail: LackDetail) -> str:
    if not detail.objects:
        return detail.message
    more = f", ... {detail.count} in all" if detail.count > len(detail.objects) else ""
    return f"{detail.message}  [{', '.join(detail.objects)}{more}]"


def _lacks_text(lacks: tuple[Lack, ...]) -> str:
    return "; ".join(_lack_text(lack) for lack in lacks) or "lacks nothing that can be told"


def _lack_text(lack: Lack) -> str:
    if lack.need is None or lack.have is None or not lack.detail:
        return lack.message
    need, have = readable(lack.detail, lack.need), readable(lack.detail, max(lack.have, 0))
    return f"{lack.detail}: needs {need}, {have} free"


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
