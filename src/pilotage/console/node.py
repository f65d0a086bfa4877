"""One node: its pods as blocks, what is free, who was rejected here and why, and who of the waiting would fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from markupsafe import Markup
from msgspec import Struct

from pilotage.api.budget import Budget, BudgetExceeded
from pilotage.api.group_members import PodGroups
from pilotage.console import pictures
from pilotage.console.source import ConsoleSource, Waiting, owner_of
from pilotage.console.verdict import verdicts
from pilotage.console.view import PageView
from pilotage.explain.amounts import readable
from pilotage.framework.errors import PluginError
from pilotage.model import Node, Pod
from pilotage.model.pod_resources import assigned_requests
from pilotage.serve.console_door import Sight
from pilotage.serve.page import PageRequest

_SECONDS: Final = 0.5
_MOST_WAITING: Final = 60
_MOST_PODS: Final = 500
_PODS: Final = "pods"
_HIDDEN: Final = "a pod of another namespace"
_COLOURS: Final = ("s0", "s1", "s2", "s3", "s4", "s6", "s7", "s8", "s9")
"""Without grey, which is what is free."""


class NodeVerdict(Struct, frozen=True):
    """What this node says to pods that wait."""

    waiting: Waiting
    messages: tuple[str, ...]
    """Why not, by plugin; none if it would fit here."""


class _Share(Struct, frozen=True):
    """How much of a resource is requested."""

    resource: str
    have: str
    used: str
    free: str
    percent: int | None
    picture: Markup

    @classmethod
    def of(cls, resource: str, have: int, used: int) -> _Share:
        parts = [("requested", "used", float(used)), ("free", "free", float(max(0, have - used)))]
        return cls(
            resource,
            readable(resource, have),
            readable(resource, used),
            readable(resource, have - used),
            round(100 * used / have) if have else None,
            pictures.bar(resource, float(have), parts, lambda amount: readable(resource, amount)),
        )


def node_page(source: ConsoleSource, sight: Sight, request: PageRequest, name: str) -> PageView:
    title = f"Node {name}"
    if not sight.nodes:
        note = "You may not list nodes, so that their names and what is on them are not shown to you."
        return PageView(title, {"facts": ("note.html", {"note": note})}, status=403)
    nodes = source.cluster.nodes
    row = nodes.row(name)
    if row is None:
        note = f"There is no node {name} now: it was removed, or never was."
        return PageView(title, {"facts": ("note.html", {"note": note})}, status=404)
    node, pods = nodes.node(row), list(nodes.pods_on(row).values())
    regions: dict[str, tuple[str, Mapping[str, Any]]] = {
        "facts": ("node_facts.html", _facts(source, sight, node, row, len(pods))),
        "pods": ("node_pods.html", _pods(sight, node, pods, int(nodes.allocatable("cpu")[row]))),
        "waiting": ("node_waiting.html", _waiting(source, sight, row)),
    }
    return PageView(title, regions)


def _facts(source: ConsoleSource, sight: Sight, node: Node, row: int, pods: int) -> dict[str, Any]:
    nodes = source.cluster.nodes
    rows = []
    for resource in sorted({"cpu", "memory", *node.status.allocatable} - {_PODS}):
        have, used = int(nodes.allocatable(resource)[row]), int(nodes.requested(resource)[row])
        rows.append(_Share.of(resource, have, used))
    rows.append(_Share.of(_PODS, int(nodes.allocatable(_PODS)[row]), pods))
    nominated = source.cluster.nominations.on(node.name)
    seen = [pod.key for pod in nominated if sight.sees(pod.namespace)]
    return {
        "node": node,
        "rows": rows,
        "taints": node.spec.taints,
        "nominated": seen,
        "nominated_hidden": len(nominated) - len(seen),
        "is_unschedulable": node.spec.unschedulable,
    }


def _pods(sight: Sight, node: Node, pods: list[Pod], cpu: int) -> dict[str, Any]:
    sizes = sorted(((assigned_requests(pod).get("cpu", 0), pod) for pod in pods), key=lambda one: (-one[0], one[1].key))
    blocks = [(one.key if sight.sees(one.namespace) else _HIDDEN, colour_of(one), float(size)) for size, one in sizes]
    rows = [
        {
            "namespace": one.namespace if sight.sees(one.namespace) else None,
            "name": one.name,
            "owner": owner_of(one),
            "priority": one.priority,
            "colour": colour_of(one),
            "cpu": readable("cpu", size),
            "memory": readable("memory", assigned_requests(one).get("memory", 0)),
        }
        for size, one in sizes[:_MOST_PODS]
    ]
    free = [("free", "free", float(max(0, cpu - sum(size for size, _ in sizes))))]
    picture = pictures.bar(f"cpu of {node.name}", float(cpu), [*blocks, *free], _cpu, css="blocks")
    return {"picture": picture, "rows": rows, "cpu": _cpu(cpu), "hidden": max(0, len(pods) - _MOST_PODS)}


def _cpu(amount: float) -> str:
    return f"{readable('cpu', amount)} cpu"


def colour_of(pod: Pod) -> str:
    """The same for all pods of one owner, in every process."""
    return _COLOURS[sum(ord(sign) * (at + 1) for at, sign in enumerate(owner_of(pod))) % len(_COLOURS)]


def _member(source: ConsoleSource, one: Waiting) -> Pod | None:
    """Whom to try: the pod that waits longest, or one of a group."""
    if one.kind == "Pod":
        return source.pod(one.namespace, one.example)
    waiting = source.cluster.index(PodGroups).waiting(f"{one.namespace}/{one.example}")
    return next(iter(waiting.values()), None)


def _waiting(source: ConsoleSource, sight: Sight, row: int) -> dict[str, Any]:
    budget, left_out = Budget(_SECONDS), 0
    everybody = source.waiting(sight)
    fitting: list[NodeVerdict] = []
    rejected: list[NodeVerdict] = []
    for at, one in enumerate(everybody):
        pod = _member(source, one)
        engine = None if pod is None else source.engine_of(pod)
        if pod is None or engine is None or one.home == "gated":
            continue
        if len(fitting) + len(rejected) >= _MOST_WAITING:
            left_out += 1
            continue
        try:
            codes, messages = verdicts(engine, pod, budget)
        except BudgetExceeded:
            left_out += len(everybody) - at
            break
        except PluginError:
            continue
        rejections = tuple(
            f"{plugin}: {messages[plugin][int(column[row]) - 1]}" for plugin, column in codes.items() if column[row] > 0
        )
        (rejected if rejections else fitting).append(NodeVerdict(one, rejections))
    return {"fitting": fitting, "rejected": rejected, "left_out": left_out}
