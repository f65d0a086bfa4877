"""Filters asked about one node as it would be: with pods promised to it, or without pods that could be evicted.

The node is an `ImaginedNode`, the cycle state a clone: nothing that others see is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pilotage.api import points
from pilotage.api.plugin import Plugin
from pilotage.api.results import Refusal, Reject
from pilotage.api.state import CycleState
from pilotage.api.views import NodeView
from pilotage.cluster.node_rows import NodeRows
from pilotage.cluster.node_table import NodeTable
from pilotage.cluster.node_view import ImaginedNode, RowView
from pilotage.cluster.nominations import Nominations
from pilotage.framework.diagnosis import Refused
from pilotage.framework.errors import PluginError
from pilotage.framework.profile import Profile, name_of
from pilotage.model import Pod


class DryRun:
    """Tries a pod on single nodes."""

    def __init__(self, profile: Profile, nodes: NodeTable, nominations: Nominations) -> None:
        self._profile = profile
        self._nodes = nodes
        self._nominations = nominations

    def contested_rows(self, pod: Pod) -> dict[int, list[Pod]]:
        """Rows that are promised to other pods of the same or higher priority, with these pods."""
        contested: dict[int, list[Pod]] = {}
        for node_name in self._nominations.nodes():
            rivals = [p for p in self._nominations.on(node_name) if p.priority >= pod.priority and p.uid != pod.uid]
            row = self._nodes.row(node_name)
            if rivals and row is not None:
                contested[row] = rivals
        return contested

    def refusal_as_promised(self, state: CycleState, pod: Pod, row: int) -> Refused | None:
        """What the filters say of the pod's own nominated node: beside its rivals first, then as it is."""
        rivals = self.contested_rows(pod).get(row, [])
        refused = self.refusal_beside(state, pod, row, rivals) if rivals else None
        return refused or self.refusal_on(state, pod, RowView(self._nodes, row))

    def refusal_beside(self, state: CycleState, pod: Pod, row: int, rivals: Sequence[Pod]) -> Refused | None:
        """What the filters say of a node if these pods were on it already."""
        state = state.clone()
        node = ImaginedNode(RowView(self._nodes, row))
        for rival in rivals:
            self.add(state, pod, rival, node)
        return self.refusal_on(state, pod, node)

    def add(self, state: CycleState, pod: Pod, added: Pod, node: ImaginedNode) -> None:
        """Imagine one more pod on the node, and let the filters' state follow."""
        node.add(added)
        for name, plugin in self._extensions(state):
            try:
                plugin.add_pod(state, pod, added, node)
            except Exception as error:
                raise PluginError(name, "AddPod", f'running AddPod on PreFilter plugin "{name}": {error}') from error

    def remove(self, state: CycleState, pod: Pod, removed: Pod, node: ImaginedNode) -> None:
        """Imagine one pod fewer on the node, and let the filters' state follow."""
        node.remove(removed)
        for name, plugin in self._extensions(state):
            try:
                plugin.remove_pod(state, pod, removed, node)
            except Exception as error:
                text = f'running RemovePod on PreFilter plugin "{name}": {error}'
                raise PluginError(name, "RemovePod", text) from error

    def _extensions(self, state: CycleState) -> Iterator[tuple[str, points.PreFilterExtensions]]:
        for plugin in self._profile.pre_filter:
            name = name_of(plugin)
            if isinstance(plugin, points.PreFilterExtensions) and name not in state.skip_filter:
                yield name, plugin

    def refusal_on(self, state: CycleState, pod: Pod, node: NodeView) -> Refused | None:
        """The first filter that refuses the node; None if the pod fits."""
        for plugin in self._profile.filters:
            name = name_of(plugin)
            if name in state.skip_filter:
                continue
            try:
                refusal = self._refusal_of(state, pod, plugin, node)
            except Exception as error:
                raise filter_error(name, error) from error
            if refusal is not None:
                return Refused(name, refusal)
        return None

    def _refusal_of(self, state: CycleState, pod: Pod, plugin: Plugin, node: NodeView) -> Refusal | None:
        if isinstance(plugin, points.Filter):
            return plugin.filter(state, pod, node)
        # A filter that knows only columns cannot see what is imagined; it is asked about the node as it is.
        assert isinstance(plugin, points.VectorFilter)
        row = self._nodes.row(node.name)
        assert row is not None
        some = NodeRows(self._nodes, np.array([row], dtype=np.int64))
        reasons = [reason for mask, reason in plugin.filter_all(state, pod, some) if mask[0]]
        return Reject(*reasons) if reasons else None


def filter_error(name: str, error: Exception) -> PluginError:
    return PluginError(name, "Filter", f'running "{name}" filter plugin: {error}')
