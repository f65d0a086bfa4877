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
from typing import Any, ClassVar

from pilotage.api import (
    Action,
    Budget,
    ClusterEvent,
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
    Reject,
    Rejection,
    Resource,
    Score,
    Scores,
    Skip,
    StateKey,
    VectorFilter,
    VectorScore,
    on_event,
)
from pilotage.api.plugin import Registration
from pilotage.api.results import SKIP
from pilotage.model import Node, Pod
from pilotage.plugins.args import PodTopologySpreadArgs
from pilotage.plugins.node_selection import node_matches
from pilotage.plugins.pod_topology_spread.constraints import HARD, SOFT, ConstraintSource, SpreadConstraint
from pilotage.plugins.pod_topology_spread.domains import MISSING
from pilotage.plugins.pod_topology_spread.evenness import Evenness, NoEvenness
from pilotage.plugins.pod_topology_spread.layouts import NOWHERE, Layouts
from pilotage.plugins.pod_topology_spread.rules import Rules
from pilotage.plugins.pod_topology_spread.skew import Skew, spread_over

_TOO_MANY = Reason("TopologySpreadSkew", "node(s) didn't match pod topology spread constraints")
_NO_LABEL = Reason(
    "TopologyLabelMissing",
    "node(s) didn't match pod topology spread constraints (missing required label)",
    unresolvable=True,
)
_SKEW = StateKey[Skew]("PodTopologySpread/skew")
_EVENNESS = StateKey[Evenness | NoEvenness]("PodTopologySpread/evenness")
_STEPS_PER_CONSTRAINT = 64
_SELECTING = (Resource.SERVICE, Resource.REPLICATION_CONTROLLER, Resource.REPLICA_SET, Resource.STATEFUL_SET)
"""Whose selectors stand in for the one that a pod without constraints does not have."""


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
    pure_hints = True
    args_type: ClassVar[type] = PodTopologySpreadArgs

    def __init__(self, handle: Handle, args: PodTopologySpreadArgs) -> None:
        self._handle = handle
        self._constraints = ConstraintSource(handle, args)
        self._layouts = Layouts(handle)

    def sign(self, pod: Pod) -> Hashable | None:
        """Constraints look at all nodes; and a service that gives the pod default ones may come at any time."""
        return None if pod.spec.topology_spread_constraints or self._constraints.has_defaults else ()

    # --- hard constraints --------------------------------------------------------------------------------------

    def may_filter(self, pod: Pod) -> bool:
        return bool(pod.spec.topology_spread_constraints) or self._constraints.has_hard_defaults

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | None:
        hard = self._constraints.of(pod, HARD, state.budget)
        if not hard:
            return SKIP
        layout = self._layouts.of(pod, HARD, hard, state.budget, requires_all_keys=True)
        counting = () if layout is NOWHERE else zip(layout.counting, hard, strict=True)
        state[_SKEW] = Skew(hard, layout, [c.sums(self._pods(constraint, state.budget)) for c, constraint in counting])
        return None

    def _pods(self, constraint: SpreadConstraint, budget: Budget) -> Scores | None:
        """Per node, the pods that count for a constraint; None if there cannot be any."""
        census = constraint.census
        budget.spend(_STEPS_PER_CONSTRAINT)
        if census is None:
            return None
        if census.selector.is_wide:
            return self._handle.weigh_pods(census, budget)
        return self._handle.count_pods(census, census, budget)

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> None:
        state.budget.spend(len(state[_SKEW].constraints))
        state[_SKEW].change(pod, added, node, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> None:
        state.budget.spend(len(state[_SKEW].constraints))
        state[_SKEW].change(pod, removed, node, -1)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        skew = state[_SKEW]
        if skew.is_nowhere:
            return Reject(_NO_LABEL)
        for at, constraint in enumerate(skew.constraints):
            state.budget.spend()
            value = node.labels.get(constraint.topology_key)
            if value is None:
                return Reject(_NO_LABEL)
            if skew.exceeds(at, value):
                return Reject(_TOO_MANY)
        return None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        skew = state[_SKEW]
        if skew.is_nowhere:
            yield nodes.everywhere(True), _NO_LABEL
            return
        rejected: Mask | None = None
        for at, domains in enumerate(skew.layout.domains):
            state.budget.spend(_STEPS_PER_CONSTRAINT)
            excess = skew.excess(at)
            if domains.is_complete and not excess.any():
                continue
            slots = domains.slots_of(nodes)
            for mask, reason in ((slots == MISSING, _NO_LABEL), (spread_over(excess, slots), _TOO_MANY)):
                # A node is rejected by the first constraint that it breaks, as in `filter`.
                newly = mask if rejected is None else mask & ~rejected
                rejected = newly if rejected is None else rejected | newly
                yield newly, reason
            if rejected is not None and rejected.all():
                return

    # --- soft constraints --------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | None:
        soft = self._constraints.of(pod, SOFT, state.budget)
        if not soft:
            return SKIP
        requires_all_keys = self._constraints.requires_all_keys(pod)
        layout = self._layouts.of(pod, SOFT, soft, state.budget, requires_all_keys=requires_all_keys)
        if layout is NOWHERE:
            state[_EVENNESS] = NoEvenness()
            return None
        pods = [self._pods(constraint, state.budget) for constraint in soft]
        state[_EVENNESS] = Evenness(soft, layout, pods, nodes, requires_all_keys=requires_all_keys)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return state[_EVENNESS].score(node)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        return state[_EVENNESS].score_all(nodes)

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        return state[_EVENNESS].normalized(scores)

    # --- what may help a rejected pod ---------------------------------------------------------------------------

    @on_event(Resource.ASSIGNED_POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE)
    def after_pod_change(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        if any(not _is_counted(other, pod) for other in (old, new) if other is not None):
            return Hint.SKIP
        hard = self._constraints.rules(pod, HARD)
        if old is not None and new is not None:
            return _hint(_match_changed(pod, old, new, hard))
        other = new if new is not None else old
        return _hint(other is not None and bool(hard.matching(pod.labels, other.labels)))

    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION | Action.UPDATE_POD_LABEL)
    def after_own_change(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        hard = self._constraints.rules(pod, HARD)
        # The taints that it tolerates decide which nodes are counted.
        sees_other_nodes = hard.honors_taints and old.spec.tolerations != new.spec.tolerations
        return _hint(sees_other_nodes or _match_changed(pod, old, new, hard))

    @on_event(Resource.NODE, Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT)
    def after_node_change(self, pod: Pod, old: Node | None, new: Node | None) -> Hint:
        hard = self._constraints.rules(pod, HARD)
        keys = hard.keys
        was_in = old is not None and keys <= old.labels.keys()
        is_in = new is not None and keys <= new.labels.keys()
        if old is None or new is None or was_in != is_in:
            return _hint(was_in or is_in)
        if not is_in:
            return Hint.SKIP
        moved = any(old.labels[key] != new.labels[key] for key in keys)
        return _hint(moved or old.spec.taints != new.spec.taints or _choice_changed(pod, old, new, hard))

    def registrations(self) -> list[Registration]:
        """Services and controllers matter only to hard default constraints, for whose selector they decide."""
        found = super().registrations()
        if self._constraints.has_hard_defaults:
            change = Action.ADD | Action.UPDATE | Action.DELETE
            found += [Registration(ClusterEvent(kind, change), self.after_selector_change) for kind in _SELECTING]
        return found

    def after_selector_change(self, pod: Pod, old: Any | None, new: Any | None) -> Hint:
        subject, (before, after) = new or old, (None if one is None else one.spec.selector for one in (old, new))
        concerns = subject is not None and subject.namespace == pod.namespace
        return _hint(concerns and before != after and not pod.spec.topology_spread_constraints)


def _hint(is_worth_a_try: bool) -> Hint:
    return Hint.QUEUE if is_worth_a_try else Hint.SKIP


def _is_counted(other: Pod, pod: Pod) -> bool:
    """Whether the other pod can be one of those that are counted, on a node or nominated for one."""
    return other.namespace == pod.namespace and bool(other.node_name or other.status.nominated_node_name)


def _choice_changed(pod: Pod, old: Node, new: Node, hard: Rules) -> bool:
    """The node is one of those that the pod may choose now, or is not any more: that decides whether it is counted."""
    if old.labels == new.labels or not hard.honors_affinity:
        return False
    return node_matches(pod, old) != node_matches(pod, new)


def _match_changed(pod: Pod, old: Pod, new: Pod, hard: Rules) -> bool:
    if old.labels == new.labels:
        return False
    return hard.matching(pod.labels, old.labels) != hard.matching(pod.labels, new.labels)
