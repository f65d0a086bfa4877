"""One pod group: where its members would go together, what they lack, by domain, and the members themselves."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, islice
from typing import Any, Final

from msgspec import Struct

from pilotage.api.budget import Budget, BudgetExceeded
from pilotage.api.group_members import PodGroups
from pilotage.console import pictures
from pilotage.console.source import ConsoleSource
from pilotage.console.view import PageView
from pilotage.explain.group_text import render_group
from pilotage.explain.report import GroupReport
from pilotage.explain.subject import UnknownSubject
from pilotage.explain.text_lines import victims_text
from pilotage.serve.console_door import Sight
from pilotage.serve.page import PageRequest

_SECONDS: Final = 1.0
_MOST_MEMBERS: Final = 500


class MemberRow(Struct, frozen=True):
    """A pod of the group."""

    key: str
    state: str
    node: str = ""
    """Where it is, where room is kept for it, or where it would go."""


def group_page(source: ConsoleSource, sight: Sight, request: PageRequest, namespace: str, name: str) -> PageView:
    title = f"Pod group {namespace}/{name}"
    try:
        report = source.answered(f"podgroup/{name}", namespace, sight, Budget(_SECONDS))
    except UnknownSubject:
        is_off = not source.options.feature_gates["GenericWorkload"]
        why = " (the feature gate GenericWorkload is off)" if is_off else ""
        note = f"There is no pod group {namespace}/{name} now{why}."
        return PageView(title, {"facts": ("note.html", {"note": note})}, status=404)
    except BudgetExceeded:
        note = "Explaining this group would keep others waiting for too long; pilotage explain does it by itself."
        return PageView(title, {"facts": ("note.html", {"note": note})})
    assert isinstance(report, GroupReport)
    regions: dict[str, tuple[str, Mapping[str, Any]]] = {
        "facts": ("pod_group.html", {"report": report}),
        "verdict": ("pod_group_verdict.html", _verdict(report)),
        "members": ("pod_group_members.html", _members(source, sight, report)),
    }
    return PageView(title, regions)


def _verdict(report: GroupReport) -> dict[str, Any]:
    domains = [
        (one, pictures.bar(one.name, float(report.wait), [("would have a node", "used", float(one.fits))]))
        for one in report.domains
    ]
    return {
        "report": report,
        "domains": domains,
        "preemption": "" if report.preemption is None else victims_text(report.preemption),
        "text": pictures.shown(render_group(report, wide=True)),
    }


def _members(source: ConsoleSource, sight: Sight, report: GroupReport) -> dict[str, Any]:
    groups, key = source.cluster.index(PodGroups), report.pod_group
    would_go = {one.pod: one.node for one in report.places}
    kept = {one.pod: one.node for one in report.kept}
    running = (MemberRow(pod.key, "has a node", pod.node_name) for pod in groups.scheduled(key).values())
    placed = groups.scheduled(key)
    waiting = (
        MemberRow(pod.key, "room is kept", kept[pod.key])
        if pod.key in kept
        else MemberRow(pod.key, "would go to", would_go[pod.key])
        if pod.key in would_go
        else MemberRow(pod.key, "waits")
        for pod in groups.waiting(key).values()
        if pod.uid not in placed
    )
    members = list(islice(chain(running, waiting), _MOST_MEMBERS))
    hidden = max(0, report.exist - len(members))
    return {"members": members, "hidden": hidden, "sees_nodes": sight.nodes}
