"""One plugin on a small cluster, asked node by node and in columns: both must say the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pilotage.api import Action, ClusterEvent, CycleState, Hint, Plugin, Reason, Resource, Skip
from pilotage.cluster.node_view import RowView
from pilotage.cluster.state import Cluster
from pilotage.observe.metrics import Metrics
from pilotage.queue.hints import HintTable
from pilotage.testing import NodeBuilder, PodBuilder


class OnePlugin:
    """What a plugin says about pods on these nodes, by node name."""

    def __init__(self, plugin: Any, *nodes: NodeBuilder, pods: Sequence[PodBuilder] = ()) -> None:
        self.plugin = plugin
        self.cluster = Cluster()
        for node in nodes:
            self.cluster.put_node(node.build())
        for pod in pods:
            self.cluster.put_pod(pod.build())

    def reasons(self, pod: PodBuilder) -> dict[str, list[Reason]]:
        """Why each node is rejected; an empty list if it is not."""
        state, built, nodes = self._state(pod), pod.build(), self.cluster.nodes
        by_column: dict[str, list[Reason]] = {name: [] for name in nodes.names}
        for mask, reason in self.plugin.filter_all(state, built, nodes):
            for name, is_rejected in zip(nodes.names, mask, strict=True):
                if is_rejected:
                    by_column[name].append(reason)
        by_node = {}
        for row, name in enumerate(nodes.names):
            rejection = self.plugin.filter(state, built, RowView(nodes, row))
            by_node[name] = [] if rejection is None else list(rejection.reasons)
        assert by_column == by_node
        return by_node

    def rejected(self, pod: PodBuilder) -> list[str]:
        """Names of the nodes that are rejected."""
        return [name for name, reasons in self.reasons(pod).items() if reasons]

    def raw_scores(self, pod: PodBuilder) -> dict[str, int]:
        state, built, nodes = self._state(pod), pod.build(), self.cluster.nodes
        by_column = dict(zip(nodes.names, self.plugin.score_all(state, built, nodes).tolist(), strict=True))
        by_node = {name: self.plugin.score(state, built, RowView(nodes, row)) for row, name in enumerate(nodes.names)}
        assert by_column == by_node
        return by_node

    def normalized(self, pod: PodBuilder) -> dict[str, int]:
        nodes = self.cluster.nodes
        raw = self.plugin.score_all(self._state(pod), pod.build(), nodes)
        before = raw.copy()
        scores = self.plugin.normalize(CycleState(), pod.build(), raw)
        assert (raw == before).all(), "a plugin must not write into what it is given"
        return dict(zip(nodes.names, scores.tolist(), strict=True))

    def pre_filter(self, pod: PodBuilder) -> Any:
        return self.plugin.pre_filter(CycleState(), pod.build(), self.cluster.nodes)

    def skips_score(self, pod: PodBuilder) -> bool:
        return isinstance(self.plugin.pre_score(CycleState(), pod.build(), self.cluster.nodes), Skip)

    def _state(self, pod: PodBuilder) -> CycleState:
        state = CycleState()
        for point in ("pre_filter", "pre_score"):
            if hasattr(self.plugin, point):
                getattr(self.plugin, point)(state, pod.build(), self.cluster.nodes)
        return state


def hint(plugin: Plugin, resource: Resource, action: Action, pod: PodBuilder, old: Any, new: Any) -> Hint | None:
    """What the plugin answers to an event for a pod that it rejected; None if it did not register for it."""
    table = HintTable({"default-scheduler": [plugin]}, Metrics())
    judges = table.judges("default-scheduler", ClusterEvent(resource, action))
    if not judges:
        return None
    ((name, hints),) = judges.items()
    built = [None if thing is None else thing.build() for thing in (old, new)]
    answer = table.ask(name, hints, pod.build(), *built)
    assert not table.failures, "the hint raised"
    return answer


def registered(plugin: Plugin) -> list[tuple[Resource, Action]]:
    """The events that the plugin asked for."""
    return [(r.event.resource, r.event.action) for r in plugin.registrations()]
