"""A small cluster with the plugin alone, asked node by node and in columns: both must say the same."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from pilotage.api import CycleState, NodeTable, Reject, Skip
from pilotage.cluster.node_rows import NodeRows
from pilotage.cluster.node_view import ImaginedNode, RowView
from pilotage.cluster.state import Cluster
from pilotage.cycle.handle import FrameworkHandle
from pilotage.model import KINDS, Pod
from pilotage.plugins.args import InterPodAffinityArgs
from pilotage.plugins.inter_pod_affinity import InterPodAffinity
from pilotage.plugins.inter_pod_affinity.existing_terms import ExistingTerms
from pilotage.testing import NodeBuilder, PodBuilder, VirtualClock, pod

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"

NOT_NEAR = "node(s) didn't match pod affinity rules"
NOT_APART = "node(s) didn't match pod anti-affinity rules"
UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def term(selector: Json | str | None = "app=db", key: str = ZONE, **more: Any) -> Json:
    """A term in JSON; a selector may be written as `app=db`, `more` are further fields, e.g. namespaces=["x"]."""
    if isinstance(selector, str):
        label, _, value = selector.partition("=")
        selector = {"matchLabels": {label: value}}
    chosen = {} if selector is None else {"labelSelector": selector}
    return {"topologyKey": key, **chosen, **more}


def near(builder: PodBuilder, *terms: Json) -> PodBuilder:
    return _with(builder, "podAffinity", _REQUIRED, terms)


def apart(builder: PodBuilder, *terms: Json) -> PodBuilder:
    return _with(builder, "podAntiAffinity", _REQUIRED, terms)


def rather_near(builder: PodBuilder, *terms: Json, weight: int = 1) -> PodBuilder:
    return _with(builder, "podAffinity", _PREFERRED, [{"weight": weight, "podAffinityTerm": t} for t in terms])


def rather_apart(builder: PodBuilder, *terms: Json, weight: int = 1) -> PodBuilder:
    return _with(builder, "podAntiAffinity", _PREFERRED, [{"weight": weight, "podAffinityTerm": t} for t in terms])


def _with(builder: PodBuilder, kind: str, strength: str, terms: Sequence[Json]) -> PodBuilder:
    affinity = builder.json()["spec"].get("affinity", {})
    listed = affinity.setdefault(kind, {}).setdefault(strength, [])
    listed.extend(terms)
    return builder.spec(affinity=affinity)


def app(value: str, name: str = "") -> PodBuilder:
    """A pod with the label app=value."""
    return pod(name or value).label("app", value)


class AffinityWorld:
    def __init__(
        self,
        nodes: Sequence[NodeBuilder],
        pods: Sequence[PodBuilder] = (),
        args: InterPodAffinityArgs | None = None,
        namespaces: Mapping[str, Mapping[str, str]] | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        self.cluster = Cluster() if cluster is None else cluster
        for built in nodes:
            self.cluster.put_node(built.build())
        for placed in pods:
            self.cluster.put_pod(placed.build())
        for name, labels in (namespaces or {}).items():
            self.put_namespace(name, labels)
        self._pods: dict[PodBuilder, Pod] = {}
        handle = FrameworkHandle(self.cluster, VirtualClock(), random.Random(1))
        self.plugin = InterPodAffinity(handle, args or InterPodAffinityArgs())

    def put_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        raw = {"metadata": {"name": name, "labels": labels}}
        self.cluster.put_object("Namespace", KINDS["namespaces"].decode(msgspec.json.encode(raw)))

    def pod(self, waiting: PodBuilder) -> Pod:
        """Always the same pod for a builder, as a queue would hold it: what is remembered with its spec stays."""
        return self._pods.setdefault(waiting, waiting.build())

    def place(self, placed: PodBuilder, node_name: str) -> None:
        self.cluster.put_pod(placed.node(node_name).build())

    def skips_filter(self, waiting: PodBuilder) -> bool:
        return isinstance(self.plugin.pre_filter(CycleState(), self.pod(waiting), self.cluster.nodes), Skip)

    def rejections(self, waiting: PodBuilder) -> dict[str, str]:
        """The message for every node that is rejected."""
        state, built, nodes = CycleState(), self.pod(waiting), self.cluster.nodes
        answer = self.plugin.pre_filter(state, built, nodes)
        assert not isinstance(answer, Reject)
        if isinstance(answer, Skip):
            return {}
        by_column = self._by_column(state, waiting, nodes)
        assert by_column == self._by_node(state, waiting)
        some = NodeRows(nodes, np.arange(len(nodes))[::2])
        assert self._by_column(state, waiting, some).items() <= by_column.items()
        return by_column

    def _by_column(self, state: CycleState, waiting: PodBuilder, nodes: NodeTable) -> dict[str, str]:
        found: dict[str, str] = {}
        for mask, reason in self.plugin.filter_all(state, self.pod(waiting), nodes):
            assert mask.any(), "a reason that holds nowhere"
            for row in np.flatnonzero(mask).tolist():
                assert nodes.names[row] not in found, "a node is rejected for one reason"
                found[nodes.names[row]] = reason.message
        return found

    def _by_node(self, state: CycleState, waiting: PodBuilder) -> dict[str, str]:
        found = {}
        for row, name in enumerate(self.cluster.nodes.names):
            rejection = self.plugin.filter(state, self.pod(waiting), RowView(self.cluster.nodes, row))
            if rejection is not None:
                (reason,) = rejection.reasons
                assert reason.unresolvable == (reason.message == NOT_NEAR)
                found[name] = reason.message
        return found

    def scores(self, waiting: PodBuilder, feasible: Sequence[str] = ()) -> dict[str, tuple[int, int]] | None:
        """(raw, normalised) for the feasible nodes (all if not said); None if the plugin skips scoring."""
        state, built, nodes = CycleState(), self.pod(waiting), self.cluster.nodes
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

    def raw(self, waiting: PodBuilder) -> dict[str, int] | None:
        scores = self.scores(waiting)
        return None if scores is None else {name: raw for name, (raw, _) in scores.items()}

    def imagine(self, waiting: PodBuilder, node_name: str) -> Imagined:
        return Imagined(self, waiting, node_name)

    def check(self) -> None:
        self.cluster.check()
        self.cluster.index(ExistingTerms).check()


class Imagined:
    """One node in a dry run: pods may be added and removed without anybody else noticing."""

    def __init__(self, world: AffinityWorld, waiting: PodBuilder, node_name: str) -> None:
        self._world, self._waiting, self._node_name = world, waiting, node_name
        self._state = CycleState()
        assert world.plugin.pre_filter(self._state, world.pod(waiting), world.cluster.nodes) is None
        view = world.cluster.node_view(node_name)
        assert view is not None
        self._node = ImaginedNode(view)

    def clone(self) -> Imagined:
        """Another dry run from the same start."""
        copy = Imagined(self._world, self._waiting, self._node_name)
        copy._state = self._state.clone()
        return copy

    def add(self, other: PodBuilder) -> Imagined:
        built = other.build()
        self._node.add(built)
        self._world.plugin.add_pod(self._state, self._world.pod(self._waiting), built, self._node)
        return self

    def remove(self, other: PodBuilder) -> Imagined:
        built = other.build()
        self._node.remove(built)
        self._world.plugin.remove_pod(self._state, self._world.pod(self._waiting), built, self._node)
        return self

    @property
    def rejection(self) -> str:
        """Why the node is rejected; "" if it is not. Columns see what is imagined, too."""
        plugin, pod, nodes = self._world.plugin, self._world.pod(self._waiting), self._world.cluster.nodes
        rejection = plugin.filter(self._state, pod, self._node)
        message = "" if rejection is None else rejection.reasons[0].message
        row = nodes.names.index(self._node.name)
        columns = plugin.filter_all(self._state, pod, nodes)
        assert [reason.message for mask, reason in columns if mask[row]] == ([message] if message else [])
        return message
