"""One pod: the verdict of every plugin on every node, scores, what would help, preemption, and its story."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from msgspec.structs import replace

from pilotage.api.budget import Budget, BudgetExceeded
from pilotage.api.group_members import group_key
from pilotage.clock import parse_rfc3339
from pilotage.console import pictures
from pilotage.console.preemption import preemption
from pilotage.console.seen import as_seen
from pilotage.console.source import ConsoleSource, owner_of
from pilotage.console.story import ended_story, pod_story
from pilotage.console.verdict import grid
from pilotage.console.view import PageView
from pilotage.cycle.placement import ProfileEngine
from pilotage.explain.amounts import readable
from pilotage.explain.explainer import explain
from pilotage.explain.render import render as as_text
from pilotage.explain.report import Report
from pilotage.framework.errors import PluginError
from pilotage.model import Pod
from pilotage.model.pod_resources import assigned_requests
from pilotage.serve.console_door import Sight
from pilotage.serve.page import PageRequest

_SECONDS: Final = 1.0
_MOST_WORKLOADS: Final = 20_000
_COLOURS: Final = 10


def pod_page(source: ConsoleSource, sight: Sight, request: PageRequest, namespace: str, name: str) -> PageView:
    pod = source.pod(namespace, name)
    if pod is None:
        return _gone(source, sight, namespace, name)
    title = f"Pod {namespace}/{name}"
    facts = {
        "pod": pod,
        "requests": [(resource, readable(resource, size)) for resource, size in assigned_requests(pod).items() if size],
        "age": _age(source, pod),
        "owner": owner_of(pod),
        "group": group_key(pod),
        "nominated": source.cluster.nominations.node_of(pod.uid),
        "workload": _workload(source, pod),
        "sees_nodes": sight.nodes,
    }
    regions: dict[str, tuple[str, Mapping[str, Any]]] = {
        "facts": ("pod_facts.html", facts),
    }
    engine = source.engine_of(pod)
    if engine is None:
        note = f'No profile of this scheduler is called "{pod.spec.scheduler_name}": another scheduler decides.'
        regions["verdict"] = ("note.html", {"note": note})
    else:
        regions |= _verdict(source, sight, engine, pod)
    regions["story"] = ("pod_story.html", pod_story(source, sight, pod))
    return PageView(title, regions)


def _gone(source: ConsoleSource, sight: Sight, namespace: str, name: str) -> PageView:
    note = f"There is no pod {namespace}/{name} now: it was deleted, has ended, or never was."
    story = ended_story(source, sight, f"{namespace}/{name}")
    regions: dict[str, tuple[str, Mapping[str, Any]]] = {"facts": ("note.html", {"note": note})}
    if story is not None:
        regions["story"] = ("pod_story.html", story)
    return PageView(f"Pod {namespace}/{name}", regions, status=404)


def _verdict(
    source: ConsoleSource, sight: Sight, engine: ProfileEngine, pod: Pod
) -> dict[str, tuple[str, Mapping[str, Any]]]:
    budget = Budget(_SECONDS)
    try:
        report = source.answered(f"pod/{pod.name}", pod.namespace, sight, budget)
    except BudgetExceeded:
        note = (
            "Explaining this pod would keep others waiting for too long; pilotage explain does it in its own process."
        )
        return {"verdict": ("note.html", {"note": note})}
    assert isinstance(report, Report)
    regions: dict[str, tuple[str, Mapping[str, Any]]] = {
        "verdict": (
            "pod_verdict.html",
            {"report": report, "text": pictures.shown(as_text(report)), "scores": _scores(report)},
        )
    }
    if report.gated_by or report.pod_group is not None:
        return regions
    if pod.node_name:
        return regions | _another(sight, engine, pod, budget)
    if sight.nodes:
        try:
            regions["grid"] = ("pod_grid.html", {"grid": grid(engine, pod, budget), "nodes": len(engine.nodes)})
        except (PluginError, BudgetExceeded) as error:
            regions["grid"] = ("note.html", {"note": f"No grid: {error}"})
        if not report.fits:
            regions["preemption"] = ("pod_preemption.html", preemption(source, sight, engine, pod, report, budget))
    return regions


def _another(sight: Sight, engine: ProfileEngine, pod: Pod, budget: Budget) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """What would become of another pod like one that has a node: why that was good, and whether there is more room."""
    another = replace(pod, uid="", node_name="")
    try:
        report = as_seen(sight, explain(engine, another, budget=budget))
        assert isinstance(report, Report)
        regions: dict[str, tuple[str, Mapping[str, Any]]] = {
            "another": ("pod_another.html", {"report": report, "scores": _scores(report)})
        }
        if sight.nodes:
            regions["grid"] = ("pod_grid.html", {"grid": grid(engine, another, budget), "nodes": len(engine.nodes)})
    except (PluginError, BudgetExceeded) as error:
        return {"another": ("note.html", {"note": f"Not tried with another pod like it: {error}"})}
    return regions


def _age(source: ConsoleSource, pod: Pod) -> float | None:
    """In whole seconds below a minute, then in minutes: a page that says nothing new is not sent again."""
    try:
        seconds = max(0.0, source.clock.time() - parse_rfc3339(pod.creation_timestamp or ""))
    except ValueError:
        return None
    return float(int(seconds) if seconds < 120 else seconds // 60 * 60)


def _workload(source: ConsoleSource, pod: Pod) -> str:
    """The key of the workload that stands for the pod or its job in a queue; "" if none does."""
    queueing = source.process.queueing
    engine = None if queueing is None else queueing.controller.view()
    if engine is None:
        return ""
    owners = {pod.uid, *(owner.uid for owner in pod.owner_references)}
    for key in islice(engine.workloads(), _MOST_WORKLOADS):
        workload = engine.workload(key) if key.startswith(f"{pod.namespace}/") else None
        if workload is not None and any(owner.uid in owners for owner in workload.metadata.owner_references):
            return key
    return ""


def _scores(report: Report) -> list[dict[str, Any]]:
    """Of the best nodes, by the plugins that tell them from nothing."""
    most = max((node.total for node in report.best), default=0)
    telling = [*dict.fromkeys(name for node in report.best for name, score in node.plugins.items() if score)]
    rows = []
    for node in report.best:
        parts = [(name, f"s{at % _COLOURS}", node.plugins.get(name, 0)) for at, name in enumerate(telling)]
        picture = pictures.bar(f"score of {node.node}", most, parts)
        rows.append({"node": node.node, "total": node.total, "place": node.place, "picture": picture, "parts": parts})
    return rows
