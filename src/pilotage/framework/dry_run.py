"""Filters asked about one node as it would be: with pods nominated to it, or without pods that could be evicted.

`PodFilters` are one pod's filters with their cycle state; a `DryRunNode` is one node on which pods are imagined to
come and go. Its view is an `ImaginedNode`, its state a clone: nothing that others see is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from pilotage.api import points
from pilotage.api.budget import Budget
from pilotage.api.plugin import RAISED, Plugin, Sees
from pilotage.api.results import Reject, Rejection
from pilotage.api.state import CycleState
from pilotage.api.views import NodeView
from pilotage.cluster.lower_priority import LowerPriority
from pilotage.cluster.node_rows import ViewRows
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.cluster.node_view import ImaginedNode, RowView, ThinnedNode
from pilotage.cluster.state import Nominations
from pilotage.framework.diagnosis import Rejected
from pilotage.framework.errors import PluginError, error_text
from pilotage.framework.profile import Profile, name_of
from pilotage.model import Pod
from pilotage.model.pod_resources import assigned_requests

Question = Callable[[CycleState, Pod, NodeView], Rejection | None]

_STEPS_PER_NODE = 64


class FilterCall(NamedTuple):
    """A filter, ready to be asked about one node."""

    name: str
    ask: Question
    sees: Sees


class DryRun:
    """Tries pods on single nodes."""

    def __init__(self, profile: Profile, nodes: ClusterNodeTable, nominations: Nominations) -> None:
        self._nodes = nodes
        self._nominations = nominations
        self._filters = tuple(
            FilterCall(name_of(plugin), self._question(plugin), plugin.filter_sees) for plugin in profile.filters
        )
        self._extensions = tuple(
            (name_of(plugin), plugin) for plugin in profile.pre_filter if isinstance(plugin, points.PreFilterExtensions)
        )

    def filters_of(self, state: CycleState, pod: Pod) -> PodFilters:
        """The pod's filters as they are after its PreFilter."""
        skipped = state.skip_filter
        filters = [asked for asked in self._filters if asked.name not in skipped]
        extensions = [pair for pair in self._extensions if pair[0] not in skipped]
        return PodFilters(self._nodes, state, pod, filters, extensions)

    def rivals_on(self, pod: Pod, node_name: str) -> list[Pod]:
        """Other pods of the same or higher priority that are nominated to this node."""
        return [p for p in self._nominations.on(node_name) if p.priority >= pod.priority and p.uid != pod.uid]

    def rejection_as_nominated(self, state: CycleState, pod: Pod, row: int) -> Rejected | None:
        """What the filters say of the pod's own nominated node: beside its rivals first, then as it is."""
        rivals = self.rivals_on(pod, self._nodes.names[row])
        filters = self.filters_of(state, pod)
        return filters.rejection_beside(row, rivals) or filters.rejection_now(row)

    def _question(self, plugin: Plugin) -> Question:
        if isinstance(plugin, points.Filter):
            return plugin.filter
        assert isinstance(plugin, points.VectorFilter)
        by_column = plugin.filter_all

        def ask(state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
            row = self._nodes.row(node.name)
            assert row is not None
            # A filter that knows only columns sees imagined amounts; imagined pods it cannot see.
            table = ViewRows(self._nodes, row, node)
            reasons = [reason for mask, reason in by_column(state, pod, table) if mask[0]]
            return Reject(*reasons) if reasons else None

        return ask


class PodFilters:
    """One pod's filters, ready to be asked about nodes as they would be."""

    __slots__ = ("_all", "_by_sight", "_lower", "_nodes", "_state", "extensions", "pod")

    def __init__(
        self,
        nodes: ClusterNodeTable,
        state: CycleState,
        pod: Pod,
        filters: Sequence[FilterCall],
        extensions: Sequence[tuple[str, points.PreFilterExtensions]],
    ) -> None:
        self.pod = pod
        self.extensions = extensions
        self._nodes = nodes
        self._lower: LowerPriority | None = None
        self._by_sight: dict[Sees, list[FilterCall]] = {}
        self._state = state
        self._all = filters

    @property
    def budget(self) -> Budget:
        """Of the cycle in which the pod is tried."""
        return self._state.budget

    def node(self, row: int) -> DryRunNode:
        """A node to imagine things on; as it is to begin with."""
        return DryRunNode(self, ImaginedNode(RowView(self._nodes, row)), self.state_of_its_own(self._state))

    def node_without(self, row: int, lower: Sequence[Pod]) -> DryRunNode:
        """A node without its pods of lower priority than the pod's, which are `lower`."""
        if not self.extensions:
            return DryRunNode(self, ImaginedNode(self._thinned(row)), self._state)
        return self.node_without_pods(row, lower)

    def node_without_pods(self, row: int, gone: Iterable[Pod]) -> DryRunNode:
        """A node without any of these pods, some of which may be on other nodes."""
        node = self.node(row)
        node.remove_all(gone)
        return node

    def pods_on(self, row: int, is_wanted: Callable[[Pod], bool]) -> list[Pod]:
        """The pods on a node that preemption asks for."""
        return [pod for pod in self._nodes.pods_on(row).values() if is_wanted(pod)]

    def lower_pods(self, row: int) -> list[Pod]:
        """The pods on a node that have a lower priority."""
        priority = self.pod.priority
        return [pod for pod in self._nodes.pods_on(row).values() if pod.priority < priority]

    def all_pods(self, row: int) -> Iterable[Pod]:
        return self._nodes.pods_on(row).values()

    def is_too_full(self, row: int, others: Sequence[Pod]) -> bool:
        """Whether amounts alone show that the pod cannot be beside `others`, even without lower priorities."""
        node = ImaginedNode(self._thinned(row))
        for other in others:
            node.add(other)
        return self.is_rejected_for_amounts(node)

    def _thinned(self, row: int) -> ThinnedNode:
        if self._lower is None:
            self._lower = self._nodes.below(self.pod.priority)
        return ThinnedNode(self._nodes, row, self._lower)

    def rejection_now(self, row: int) -> Rejected | None:
        """What the filters say of a node as it is."""
        return self.rejection_on(RowView(self._nodes, row), self._state)

    def rejection_beside(self, row: int, others: Sequence[Pod]) -> Rejected | None:
        """What the filters say of a node if these pods were on it already; None if there are no such pods."""
        if not others:
            return None
        self.budget.spend(_STEPS_PER_NODE)
        node = self.node(row)
        for other in others:
            node.add(other)
        return node.rejection()

    def rejection_on(self, node: NodeView, state: CycleState) -> Rejected | None:
        """The first filter that rejects the node; None if the pod fits."""
        return self._first_rejection(self._all, node, state)

    def is_rejected_for_pods(self, node: NodeView, state: CycleState) -> bool:
        """Only the filters that look at pods."""
        return self._first_rejection(self._seeing(Sees.PODS), node, state) is not None

    def is_rejected_for_amounts(self, node: NodeView) -> bool:
        """Only the filters that look at amounts, which have no state that could follow pods."""
        return self._first_rejection(self._seeing(Sees.AMOUNTS), node, self._state) is not None

    def _seeing(self, sees: Sees) -> Sequence[FilterCall]:
        """The filters of one kind; most pods need none of these lists."""
        known = self._by_sight.get(sees)
        if known is None:
            known = self._by_sight[sees] = [asked for asked in self._all if asked.sees is sees]
        return known

    def _first_rejection(self, filters: Sequence[FilterCall], node: NodeView, state: CycleState) -> Rejected | None:
        for name, ask, _ in filters:
            try:
                rejection = ask(state, self.pod, node)
            except RAISED as error:
                raise filter_error(name, error) from error
            if rejection is not None:
                return Rejected(name, rejection)
        return None

    def state_of_its_own(self, state: CycleState) -> CycleState:
        """A state for one imagined node; only AddPod and RemovePod would change it."""
        return state.clone() if self.extensions else state


class DryRunNode:
    """A node as it would be, and the filters' state that goes with it."""

    __slots__ = ("_filters", "_state", "_too_much", "view")

    def __init__(self, filters: PodFilters, view: ImaginedNode, state: CycleState) -> None:
        self.view = view
        self._filters = filters
        self._state = state
        self._too_much: Mapping[str, int] | None = None
        """What could not be brought back, the node being as it is: replicas of a pod share their requests."""

    @property
    def budget(self) -> Budget:
        return self._filters.budget

    def add(self, pod: Pod) -> None:
        """Imagine one more pod on the node."""
        self.view.add(pod)
        self._run_add_pod(pod)

    def _run_add_pod(self, pod: Pod) -> None:
        for name, plugin in self._filters.extensions:
            try:
                plugin.add_pod(self._state, self._filters.pod, pod, self.view)
            except RAISED as error:
                raise PluginError(
                    name, "AddPod", f'running AddPod on PreFilter plugin "{name}": {error_text(error)}'
                ) from error

    def remove(self, pod: Pod) -> None:
        """Imagine one pod fewer on the node."""
        self.view.remove(pod)
        self._run_remove_pod(pod)

    def remove_all(self, pods: Iterable[Pod]) -> None:
        """Imagine that all these pods go, on this node and on others."""
        for pod in pods:
            if pod.node_name == self.view.name:
                self.view.remove(pod)
            self._run_remove_pod(pod)

    def _run_remove_pod(self, pod: Pod) -> None:
        for name, plugin in self._filters.extensions:
            try:
                plugin.remove_pod(self._state, self._filters.pod, pod, self.view)
            except RAISED as error:
                text = f'running RemovePod on PreFilter plugin "{name}": {error_text(error)}'
                raise PluginError(name, "RemovePod", text) from error

    def rejection(self) -> Rejected | None:
        """The first filter that rejects the node as it is imagined; None if the pod fits."""
        return self._filters.rejection_on(self.view, self._state)

    def rejection_beside(self, others: Sequence[Pod]) -> Rejected | None:
        """The same with some more pods, which are not kept."""
        return self._beside(others).rejection()

    def brings_back(self, pod: Pod, others: Sequence[Pod]) -> bool:
        """Imagine a pod back on a node that fitted without it; if it does not fit any more, the pod stays away.

        It must fit with the others as well as without them. Filters that look at the node alone are not asked again.
        """
        requests = assigned_requests(pod)
        if requests is self._too_much:
            return False
        self.view.add(pod)
        # Most pods that cannot come back are too big: then the filters' state need not follow.
        if self._filters.is_rejected_for_amounts(self.view):
            self.view.remove(pod)
            self._too_much = requests
            return False
        self._too_much = None
        self._run_add_pod(pod)
        is_rejected = self._filters.is_rejected_for_pods(self.view, self._state) or self._is_rejected_beside(others)
        if is_rejected:
            self.remove(pod)
        return not is_rejected

    def brings_all_back(self, pods: Sequence[Pod], others: Sequence[Pod]) -> bool:
        """The same of pods that come back together, on this node and on others, or stay away together."""
        for pod in pods:
            if pod.node_name == self.view.name:
                self.view.add(pod)
            self._run_add_pod(pod)
        is_rejected = self.rejection() is not None or self._is_rejected_beside(others)
        if is_rejected:
            self.remove_all(pods)
        return not is_rejected

    def _is_rejected_beside(self, others: Sequence[Pod]) -> bool:
        if not others:
            return False
        beside, filters = self._beside(others), self._filters
        return filters.is_rejected_for_amounts(beside.view) or filters.is_rejected_for_pods(beside.view, beside._state)

    def _beside(self, others: Sequence[Pod]) -> DryRunNode:
        beside = DryRunNode(self._filters, ImaginedNode(self.view), self._filters.state_of_its_own(self._state))
        for other in others:
            beside.add(other)
        return beside


def filter_error(name: str, error: BaseException) -> PluginError:
    return PluginError(name, "Filter", f'running "{name}" filter plugin: {error_text(error)}')
