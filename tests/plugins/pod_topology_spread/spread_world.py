"""A small cluster with the plugin alone, asked node by node and in columns: both must say the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from pilotage.api import CycleState, NodeTable, Skip
from pilotage.cluster.node_rows import NodeRows
from pilotage.cluster.node_view import ImaginedNode, RowView
from pilotage.cluster.state import Cluster
from pilotage.cycle.handle import FrameworkHandle
from pilotage.model import KINDS, kind_of
from pilotage.plugins.args import PodTopologySpreadArgs
from pilotage.plugins.pod_topology_spread import PodTopologySpread
from pilotage.testing import NodeBuilder, PodBuilder, VirtualClock, pod

Json = dict[str, Any]
HARD = "DoNotSchedule"
SOFT = "ScheduleAnyway"
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
BLUE: Json = {"matchLabels": {"color": "blue"}}

TOO_MANY = "node(s) didn't match pod topology spread constraints"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"


def rule(key: str = ZONE, when: str = HARD, skew: int = 1, selector: Json | None = BLUE, **more: Any) -> Json:
    """A constraint in JSON; `more` are further fields, e.g. minDomains=3."""
    chosen = {} if selector is None else {"labelSelector": selector}
    return {"topologyKey": key, "whenUnsatisfiable": when, "maxSkew": skew, **chosen, **more}


def spread(*rules: Json, name: str = "new", color: str = "blue") -> PodBuilder:
    """A waiting pod with these constraints."""
    return pod(name).label("color", color).spec(topologySpreadConstraints=list(rules))


def blues(**per_node: int) -> list[PodBuilder]:
    """So many blue pods on these nodes."""
    return [
        pod(f"{node_name}-{number}").label("color", "blue").node(node_name)
        for node_name, count in per_node.items()
        for number in range(count)
    ]


class SpreadWorld:
    def __init__(
        self,
        nodes: Sequence[NodeBuilder],
        pods: Sequence[PodBuilder] = (),
        args: PodTopologySpreadArgs | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        self.cluster = cluster or Cluster()
        for built in nodes:
            self.cluster.put_node(built.build())
        for placed in pods:
            self.cluster.put_pod(placed.build())
        handle = FrameworkHandle(self.cluster, VirtualClock(), random.Random(1))
        self.plugin = PodTopologySpread(handle, args or PodTopologySpreadArgs())

    def put(self, kind: str, name: str, **spec: Any) -> None:
        """Another object of the namespace of all pods, e.g. a Service."""
        known = kind_of(kind)
        assert known is not None
        raw = {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
        self.cluster.put_object(kind, KINDS[known.plural].decode(msgspec.json.encode(raw)))

    def skips_filter(self, waiting: PodBuilder) -> bool:
        return isinstance(self.plugin.pre_filter(CycleState(), waiting.build(), self.cluster.nodes), Skip)

    def rejections(self, waiting: PodBuilder) -> dict[str, str]:
        """The message for every node that is rejected."""
        state, built, nodes = CycleState(), waiting.build(), self.cluster.nodes
        if isinstance(self.plugin.pre_filter(state, built, nodes), Skip):
            return {}
        by_column: dict[str, str] = {}
        for mask, reason in self.plugin.filter_all(state, built, nodes):
            for row in np.flatnonzero(mask).tolist():
                assert nodes.names[row] not in by_column, "a node is rejected for one reason"
                by_column[nodes.names[row]] = reason.message
        by_node = {}
        for row, name in enumerate(nodes.names):
            rejection = self.plugin.filter(state, built, RowView(nodes, row))
            if rejection is not None:
                (reason,) = rejection.reasons
                assert reason.unresolvable == (reason.message == NO_LABEL)
                by_node[name] = reason.message
        assert by_column == by_node
        return by_node

    def scores(self, waiting: PodBuilder, feasible: Sequence[str] = ()) -> dict[str, tuple[int, int]] | None:
        """(raw, normalised) for the feasible nodes (all if not said); None if the plugin skips scoring."""
        state, built, nodes = CycleState(), waiting.build(), self.cluster.nodes
        rows = [row for row, name in enumerate(nodes.names) if not feasible or name in feasible]
        table: NodeTable = nodes if len(rows) == len(nodes) else NodeRows(nodes, np.array(rows))
        if isinstance(self.plugin.pre_score(state, built, table), Skip):
            return None
        raw = self.plugin.score_all(state, built, table)
        before = raw.tolist()
        assert before == [self.plugin.score(state, built, RowView(nodes, row)) for row in rows]
        normal = self.plugin.normalize(state, built, raw)
        assert raw.tolist() == before, "a plugin must not write into what it is given"
        return {nodes.names[row]: (before[at], int(normal[at])) for at, row in enumerate(rows)}

    def imagine(self, waiting: PodBuilder, node_name: str) -> Imagined:
        return Imagined(self, waiting, node_name)


class Imagined:
    """One node in a dry run: pods may be added and removed without anybody else noticing."""

    def __init__(self, world: SpreadWorld, waiting: PodBuilder, node_name: str) -> None:
        self._world, self._pod, self._node_name = world, waiting.build(), node_name
        self._base = CycleState()
        world.plugin.pre_filter(self._base, self._pod, world.cluster.nodes)
        self._begin()

    def _begin(self) -> None:
        view = self._world.cluster.node_view(self._node_name)
        assert view is not None
        self._node = ImaginedNode(view)
        self._state = self._base.clone()

    def begin_again(self) -> Imagined:
        """Another dry run for the same attempt."""
        self._begin()
        return self

    def add(self, other: PodBuilder) -> Imagined:
        built = other.build()
        self._node.add(built)
        self._world.plugin.add_pod(self._state, self._pod, built, self._node)
        return self

    def remove(self, other: PodBuilder) -> Imagined:
        built = other.build()
        self._node.remove(built)
        self._world.plugin.remove_pod(self._state, self._pod, built, self._node)
        return self

    @property
    def is_rejected(self) -> bool:
        return self._world.plugin.filter(self._state, self._pod, self._node) is not None
