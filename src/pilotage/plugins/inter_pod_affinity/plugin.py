"""InterPodAffinity: the plugin, put together from its parts.

terms           what a pod's spec says
incoming        what the pod to be placed asks of the pods on the nodes
existing_terms  what the pods on the nodes ask of it
domains         counts per value of a topology key
filtering       required terms
scoring         preferred terms
hints           what helps a pod that was refused
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
from pilotage.plugins.args import InterPodAffinityArgs
from pilotage.plugins.inter_pod_affinity.domains import Amounts, Topology
from pilotage.plugins.inter_pod_affinity.existing_terms import ExistingTerms
from pilotage.plugins.inter_pod_affinity.filtering import DomainCounts, FilterState
from pilotage.plugins.inter_pod_affinity.hints import leaves_domain, node_change_helps, pod_change_helps
from pilotage.plugins.inter_pod_affinity.incoming import Question, incoming
from pilotage.plugins.inter_pod_affinity.namespaces import Namespaces
from pilotage.plugins.inter_pod_affinity.pods_per_domain import PodsPerDomain
from pilotage.plugins.inter_pod_affinity.scoring import ScoreState, between_extremes, wishes_by_domain
from pilotage.plugins.inter_pod_affinity.tallies import Tally
from pilotage.plugins.inter_pod_affinity.terms import terms_of

_FILTER = StateKey[FilterState]("InterPodAffinity/filter")
_SCORE = StateKey[ScoreState]("InterPodAffinity/score")


class InterPodAffinity(
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
    name = "InterPodAffinity"
    args_type = InterPodAffinityArgs

    def __init__(self, handle: Handle, args: InterPodAffinityArgs) -> None:
        self._handle = handle
        self._args = args
        self._existing = handle.index(ExistingTerms)
        self._namespaces = handle.index(Namespaces)
        self._pods = PodsPerDomain(handle)
        self._topology = Topology()

    # --- filter ------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | Refusal | None:
        if pod.spec.affinity is None and self._existing.is_empty:
            return SKIP
        problem = terms_of(pod).problem
        if problem:
            return Reject(Reason("MalformedPodAffinity", f"parsing pod: {problem}", unresolvable=True))
        asked = incoming(pod, self._namespaces)
        namespace_labels = self._namespaces.labels_of(pod.namespace)
        unwelcome = self._per_domain(self._existing.keeping_out(pod, namespace_labels), nodes)
        if asked.requires_nothing and not unwelcome:
            return SKIP
        near = {} if asked.near is None else {key: self._count(asked.near, key, nodes) for key in asked.near_keys}
        apart = {key: self._count(question, key, nodes) for key, question in asked.apart}
        counts = (DomainCounts(amounts, self._topology) for amounts in (near, apart, unwelcome))
        state[_FILTER] = FilterState(asked, namespace_labels, *counts)
        return None

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> None:
        state[_FILTER].change(pod, added, node, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> None:
        state[_FILTER].change(pod, removed, node, -1)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Refusal | None:
        reason = state[_FILTER].refusal(pod, node)
        return None if reason is None else Reject(reason)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        return state[_FILTER].refusals(pod, nodes)

    def _count(self, pods: Question, key: str, nodes: NodeTable) -> Amounts:
        self._topology.domains(key, nodes)
        return self._pods.of(pods, key)

    def _per_domain(self, tallies: Mapping[str, Tally], nodes: NodeTable) -> dict[str, Amounts]:
        """Tallies as arrays; those without a pod are left out."""
        return {
            key: tally.per_domain(self._topology.domains(key, nodes)) for key, tally in tallies.items() if tally.pods
        }

    # --- score -------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | None:
        if pod.spec.affinity is None and self._existing.is_empty:
            return SKIP
        asked = incoming(pod, self._namespaces)
        if not len(nodes) or (self._args.ignore_preferred_terms_of_existing_pods and not asked.wishes):
            return SKIP
        labels = self._namespaces.labels_of(pod.namespace)
        drawing = self._existing.drawing(pod, labels, self._args.hard_pod_affinity_weight)
        weights = self._per_domain(drawing, self._handle.nodes)
        for key, amounts in wishes_by_domain(asked.wishes, self._pods).items():
            self._topology.domains(key, self._handle.nodes)
            weights[key] = amounts if key not in weights else weights[key] + amounts
        if not weights:
            return SKIP
        state[_SCORE] = ScoreState(weights, self._topology)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return state[_SCORE].score(node)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        return state[_SCORE].score_all(nodes)

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        return between_extremes(scores)

    # --- what helps --------------------------------------------------------------------------------------------

    @on_event(Resource.ASSIGNED_POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE)
    def after_pod_change(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        return Hint.QUEUE if pod_change_helps(pod, old, new) else Hint.SKIP

    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_LABEL)
    def after_own_labels(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        return Hint.QUEUE

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        if node_change_helps(pod, old, new):
            return Hint.QUEUE
        # The pods that keep this one out of their domains may not be able to do so there.
        keys = self._existing.keys_kept_out_of(pod, self._namespaces.labels_of(pod.namespace))
        return Hint.QUEUE if leaves_domain(keys, old, new) else Hint.SKIP
