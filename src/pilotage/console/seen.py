"""Reports without what a visitor may not see: nodes, and pods of namespaces whose pods they may not list."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from pilotage.explain.group_text import with_group_answer
from pilotage.explain.inquiry import AnyReport
from pilotage.explain.render import with_answer
from pilotage.explain.report import Advice, GroupReport, MemberLack, RejectionGroup, Report, Victims
from pilotage.serve.console_door import Sight

_HIDDEN: Final = "a pod of another namespace"
_NAMES_NODES: Final = frozenset({"NodeUncordoned", "NodeLabel", "MoreNodes"})
"""Advice whose sentence names a node."""


def as_seen(sight: Sight, report: AnyReport) -> AnyReport:
    """What is left of a report for this visitor."""
    return _group_as_seen(sight, report) if isinstance(report, GroupReport) else _pod_as_seen(sight, report)


def _pod_as_seen(sight: Sight, report: Report) -> Report:
    group = None if report.pod_group is None else _group_as_seen(sight, report.pod_group)
    report = replace(
        report,
        pod_group=group,
        preemption=_victims(sight, report.preemption),
        would_fit_if=_advice(sight, report.would_fit_if),
    )
    if sight.nodes:
        return report
    report = replace(
        report,
        held_on="",
        nearest=(),
        best=(),
        rejections=_without_examples(report.rejections),
        rejected_by_extenders=_without_examples(report.rejected_by_extenders),
    )
    return with_answer(report)


def _group_as_seen(sight: Sight, report: GroupReport) -> GroupReport:
    report = replace(
        report,
        preemption=_victims(sight, report.preemption),
        would_fit_if=_advice(sight, report.would_fit_if),
    )
    if sight.nodes:
        return report
    report = replace(
        report,
        places=(),
        kept=(),
        topology_key="",
        domain="",
        domains=(),
        lacks=tuple(_lack_without_nodes(lack) for lack in report.lacks),
    )
    return with_group_answer(report)


def _victims(sight: Sight, victims: Victims | None) -> Victims | None:
    if victims is None:
        return None
    names = tuple(key if sight.sees(key.partition("/")[0]) else _HIDDEN for key in victims.examples)
    return replace(victims, examples=names, node=victims.node if sight.nodes else "")


def _advice(sight: Sight, advice: tuple[Advice, ...]) -> tuple[Advice, ...]:
    """Its sentences name what they are about, so that those with a name that may not be seen are left out."""
    kept = [one for one in advice if all(sight.sees(key.partition("/")[0]) for key in one.victims)]
    if not sight.nodes:
        kept = [replace(one, node="") for one in kept if one.code not in _NAMES_NODES]
    return tuple(kept)


def _lack_without_nodes(lack: MemberLack) -> MemberLack:
    return replace(lack, rejections=_without_examples(lack.rejections), nearest=())


def _without_examples(groups: tuple[RejectionGroup, ...]) -> tuple[RejectionGroup, ...]:
    return tuple(replace(group, examples=()) for group in groups)
