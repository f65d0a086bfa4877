"""PodTopologySpread: the plugin. How it decides is in the files beside it:

    constraints  the pod's own constraints, or the defaults with a selector deduced from services and controllers
    domains      which node is in which topology domain
    layouts      which nodes count, and how pods per node become pods per domain
    skew         hard constraints: which domains have too many pods already (Filter)
    evenness     soft constraints: which domains have few (Score)

Pods per node come from the cluster's maintained counts, one per question (`Census`), so nothing here walks over pods,
and over nodes only in columns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import ClassVar

from pilotage.api import (
    Action,
    CycleState,
    Filter,
    Handle,
    Hint,
    Mask,
    NodeTable,
    NodeView,
    NormalizeScore,
    Plugin,
    PreFilter,
    PreFilterExtensions,
    PreScore,
    Reason,
    Refusal,
    Reject,
    Resource,
    Score,
    Scores,
    Skip,
    StateKey,
    VectorFilter,
    VectorScore,
    on_event,
)
from pilotage.api.results import SKIP
from pilotage.model import Node, Pod
from pilotage.plugins.args import PodTopologySpreadArgs
from pilotage.plugins.node_selection import node_matches
from pilotage.plugins.pod_topology_spread.constraints import HARD, SOFT, Constraint, Constraints, ConstraintSource
from pilotage.plugins.pod_topology_spread.domains import MISSING
from pilotage.plugins.pod_topology_spread.evenness import Evenness
from pilotage.plugins.pod_topology_spread.layouts import Layouts
from pilotage.plugins.pod_topology_spread.skew import Skew, spread_over

_TOO_MANY = Reason("TopologySpreadSkew", "node(s) didn't match pod topology spread constraints")
_NO_LABEL = Reason(
    "TopologyLabelMissing",
    "node(s) didn't match pod topology spread constraints (missing required label)",
    unresolvable=True,
)
_SKEW = StateKey[Skew]("PodTopologySpread/skew")
_EVENNESS = StateKey[Evenness]("PodTopologySpread/evenness")


class PodTopologySpread(
    Plugin,
    PreFilter,
    PreFilterExtensions,
    Filter,
    VectorFilter,
    PreScore,
    Score,
    VectorScore,
    NormalizeScore,
):
    name = "PodTopologySpread"
    args_type: ClassVar[type] = PodTopologySpreadArgs

    def __init__(self, handle: Handle, args: PodTopologySpreadArgs) -> None:
        self._handle = handle
        self._constraints = ConstraintSource(handle, args)
        self._layouts = Layouts(handle)

    def sign(self, pod: Pod) -> Hashable | None:
        """Constraints look at all nodes; and a service that gives the pod default ones may come at any time."""
        return None if pod.spec.topology_spread_constraints or self._constraints.has_defaults else ()

    # --- hard constraints --------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | None:
        hard = self._constraints.of(pod, HARD)
        if not hard:
            return SKIP
        layout = self._layouts.of(pod, HARD, hard, requires_all_keys=True)
        counts = [c.sums(self._pods(constraint)) for c, constraint in zip(layout.counting, hard, strict=True)]
        state[_SKEW] = Skew(hard, layout, counts)
        return None

    def _pods(self, constraint: Constraint) -> Scores | None:
        """Per node, the pods that count for a constraint; None if there cannot be any."""
        census = constraint.census
        return None if census is None else self._handle.count_pods(census, census)

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> None:
        state[_SKEW].change(pod, added, node, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> None:
        state[_SKEW].change(pod, removed, node, -1)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Refusal | None:
        skew = state[_SKEW]
        for at, constraint in enumerate(skew.constraints):
            value = node.labels.get(constraint.topology_key)
            if value is None:
                return Reject(_NO_LABEL)
            if skew.exceeds(at, value):
                return Reject(_TOO_MANY)
        return None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        skew = state[_SKEW]
        refused: Mask | None = None
        for at, domains in enumerate(skew.layout.domains):
            excess = skew.excess(at)
            if domains.is_complete and not excess.any():
                continue
            slots = domains.slots_of(nodes)
            for mask, reason in ((slots == MISSING, _NO_LABEL), (spread_over(excess, slots), _TOO_MANY)):
                # A node is refused by the first constraint that it breaks, as in `filter`.
                newly = mask if refused is None else mask & ~refused
                refused = newly if refused is None else refused | newly
                yield newly, reason

    # --- soft constraints --------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | None:
        soft = self._constraints.of(pod, SOFT)
        if not soft:
            return SKIP
        requires_all_keys = self._constraints.requires_all_keys(pod)
        layout = self._layouts.of(pod, SOFT, soft, requires_all_keys=requires_all_keys)
        pods = [self._pods(constraint) for constraint in soft]
        state[_EVENNESS] = Evenness(soft, layout, pods, nodes, requires_all_keys=requires_all_keys)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return state[_EVENNESS].score(node)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        return state[_EVENNESS].score_all(nodes)

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        return state[_EVENNESS].normalized(scores)

    # --- what may help a refused pod ---------------------------------------------------------------------------

    @on_event(Resource.ASSIGNED_POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE)
    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION | Action.UPDATE_POD_LABEL)
    def after_pod_change(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        if any(not _concerns(other, pod) for other in (old, new) if other is not None):
            return Hint.SKIP
        hard = self._constraints.of(pod, HARD)
        if old is not None and new is not None:
            return _hint(_own_taints_view_changed(pod, old, new, hard) or _match_changed(old, new, hard))
        other = new if new is not None else old
        return _hint(other is not None and any(constraint.matches(other.labels) for constraint in hard))

    @on_event(Resource.NODE, Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT)
    def after_node_change(self, pod: Pod, old: Node | None, new: Node | None) -> Hint:
        hard = self._constraints.of(pod, HARD)
        keys = [constraint.topology_key for constraint in hard]
        was_in = old is not None and all(key in old.labels for key in keys)
        is_in = new is not None and all(key in new.labels for key in keys)
        if old is None or new is None or was_in != is_in:
            return _hint(was_in or is_in)
        if not is_in:
            return Hint.SKIP
        moved = any(old.labels[key] != new.labels[key] for key in keys)
        return _hint(moved or old.spec.taints != new.spec.taints or _choice_changed(pod, old, new, hard))


def _hint(is_worth_a_try: bool) -> Hint:
    return Hint.QUEUE if is_worth_a_try else Hint.SKIP


def _concerns(other: Pod, pod: Pod) -> bool:
    """Can a pod be one of those that are counted, on a node or promised one, or is it the waiting pod itself?"""
    if other.uid == pod.uid:
        return True
    return other.namespace == pod.namespace and bool(other.node_name or other.status.nominated_node_name)


def _own_taints_view_changed(pod: Pod, old: Pod, new: Pod, hard: Constraints) -> bool:
    """The pod tolerates other taints now, and that decides which nodes are counted."""
    if new.uid != pod.uid or new.spec.tolerations == old.spec.tolerations:
        return False
    return any(constraint.honors_taints for constraint in hard)


def _choice_changed(pod: Pod, old: Node, new: Node, hard: Constraints) -> bool:
    """The node is one of those that the pod may choose now, or is not any more: that decides whether it is counted."""
    if old.labels == new.labels or not any(constraint.honors_affinity for constraint in hard):
        return False
    return node_matches(pod, old) != node_matches(pod, new)


def _match_changed(old: Pod, new: Pod, hard: Constraints) -> bool:
    return old.labels != new.labels and any(c.matches(old.labels) != c.matches(new.labels) for c in hard)
