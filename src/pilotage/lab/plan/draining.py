"""Which nodes can go: all their pods fit elsewhere now, found by placing them there.

drained   the node is cordoned and its pods are evicted: disruption budgets are asked, and pods without a controller do
          not come again
lost      the node is not there any more, and nobody was asked
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import numpy as np

from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import ProfileEngine
from pilotage.framework.preemption.budgets import DisruptionBudgets
from pilotage.lab.plan.placing import Placing, Unplaceable, as_new
from pilotage.model import Pod

_MIRROR = "kubernetes.io/config.mirror"


class NodeDrain(msgspec.Struct, frozen=True, rename="camel"):
    """What would become of the pods of a node."""

    node: str
    pods: int
    """That would have to go elsewhere; without those of DaemonSets and static ones, which go with the node."""
    can_drain: bool
    can_be_lost: bool
    in_steps: bool
    """Budgets allow it one after the other only: the next pod is evicted when another one is ready."""
    problems: tuple[str, ...] = ()
    moves: dict[str, str] = msgspec.field(default_factory=dict)
    """Pod -> node, if it is drained."""


class Draining:
    """Tries it out on a cluster in memory, which is afterwards as it was before."""

    def __init__(self, cluster: Cluster, engines: Mapping[str, ProfileEngine]) -> None:
        self._cluster = cluster
        self._engines = engines
        self._budgets = cluster.index(DisruptionBudgets)

    def departures(
        self, names: Iterable[str], on_progress: Callable[[int], None] = lambda done: None
    ) -> list[NodeDrain]:
        """Each node by itself."""
        found = []
        for number, name in enumerate(names):
            found.append(self.departure(name))
            on_progress(number + 1)
        return found

    def departure(self, name: str) -> NodeDrain:
        pods = self._leaving(name)
        moves, problems = self._tried([name], is_lost=False)
        _, lost = self._tried([name], is_lost=True)
        held, in_steps = self._held_by_budgets(pods)
        bare = [f"{pod.key} has no controller: nobody makes it again" for pod in pods if pod.controller is None]
        blocking = [*problems, *held, *bare]
        only_lost = [f"if it is lost: {problem}" for problem in lost if problem not in problems]
        return NodeDrain(
            name,
            len(pods),
            not blocking,
            not lost and not bare,
            in_steps,
            (*blocking, *only_lost),
            {} if problems else moves,
        )

    def together(self, departures: Sequence[NodeDrain]) -> list[str]:
        """Nodes that can be drained and then be away at the same time: those with fewest pods are tried first."""
        chosen: list[str] = []
        for one in sorted(departures, key=lambda one: (one.pods, one.node)):
            if one.can_drain and not self._tried([*chosen, one.node], is_lost=True)[1]:
                chosen.append(one.node)
        return chosen

    def _leaving(self, name: str) -> list[Pod]:
        row = self._cluster.nodes.row(name)
        pods = () if row is None else self._cluster.nodes.pods_on(row).values()
        return sorted((pod for pod in pods if not _stays(pod)), key=lambda pod: (-pod.priority, pod.key))

    def _tried(self, names: Sequence[str], *, is_lost: bool) -> tuple[dict[str, str], list[str]]:
        """Where the pods go, and what keeps them from going anywhere."""
        cluster, placing = self._cluster, Placing(self._cluster, self._engines)
        pods = [pod for name in names for pod in self._leaving(name)]
        nodes = [node for name in names if (node := cluster.node(name)) is not None]
        for pod in pods:
            cluster.remove("Pod", pod)
        for node in nodes if is_lost else ():
            cluster.remove("Node", node)
        rows = [row for name in names if (row := cluster.nodes.row(name)) is not None]
        within = np.ones(len(cluster.nodes), dtype=bool)
        within[rows] = False
        moves, problems = {}, []
        try:
            for pod in pods:
                try:
                    moves[pod.key] = _placed(placing, pod, within)
                except Unplaceable as problem:
                    problems.append(f"{pod.key}: {problem}")
        finally:
            placing.take_back()
            for node in nodes if is_lost else ():
                cluster.put("Node", node)
            for pod in pods:
                cluster.put("Pod", pod)
        return moves, problems

    def _held_by_budgets(self, pods: Sequence[Pod]) -> tuple[list[str], bool]:
        """Pods that may not be evicted at all now; and may not all of them be evicted at once?"""
        held = [pod for pod in pods if self._budgets.protected([pod])]
        together = self._budgets.protected(pods) - {pod.uid for pod in held}
        return [f"{pod.key}: its disruption budget allows no eviction now" for pod in held], bool(together)


def _placed(placing: Placing, pod: Pod, within: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
    if pod.spec.resource_claims:
        raise Unplaceable("it uses ResourceClaims, whose devices would be found anew: that is not judged here")
    return placing.place(as_new(pod), within)


def _stays(pod: Pod) -> bool:
    """Goes with its node, or is gone already."""
    owner = pod.controller
    is_daemon = owner is not None and owner.kind == "DaemonSet"
    return is_daemon or _MIRROR in pod.annotations or pod.is_terminating
