"""InterPodAffinity: the plugin, put together from its parts.

terms           what a pod's spec says
incoming        what the pod to be placed asks of the pods on the nodes
existing_terms  what the pods on the nodes ask of it
domains         counts per value of a topology key
filtering       required terms
scoring         preferred terms
hints           what helps a pod that was rejected
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from pilotage.api import (
    Action,
    Budget,
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
from pilotage.api.budget import UNLIMITED
from pilotage.api.results import SKIP
from pilotage.model import Node, Pod
from pilotage.model.policy import Namespace
from pilotage.plugins.args import InterPodAffinityArgs
from pilotage.plugins.inter_pod_affinity.domains import MISSING, AffinityDomains, AffinityTopology, Amounts, at_nodes
from pilotage.plugins.inter_pod_affinity.existing_terms import ExistingTerms
from pilotage.plugins.inter_pod_affinity.filtering import DomainCounts, FilterState
from pilotage.plugins.inter_pod_affinity.hints import (
    leaves_domain,
    namespace_change_helps,
    node_change_helps,
    pod_change_helps,
)
from pilotage.plugins.inter_pod_affinity.incoming import (
    Incoming,
    PodSelection,
    PreferredTerm,
    WidePreferredTerms,
    incoming,
)
from pilotage.plugins.inter_pod_affinity.namespaces import Namespaces
from pilotage.plugins.inter_pod_affinity.pods_per_domain import PodsPerDomain
from pilotage.plugins.inter_pod_affinity.tallies import Tally
from pilotage.plugins.inter_pod_affinity.term_groups import Subject
from pilotage.plugins.inter_pod_affinity.terms import terms_of
from pilotage.plugins.normalize import MAX_SCORE

_FILTER = StateKey[FilterState]("InterPodAffinity/filter")
_FEW_KEYS = 4

T = TypeVar("T")


class ScoreState:
    """Weights per topology key and domain."""

    __slots__ = ("_domains", "weights")

    def __init__(self, weights: Mapping[str, Amounts], domains: Mapping[str, AffinityDomains]) -> None:
        self.weights = weights
        self._domains = domains

    def score(self, node: NodeView) -> int:
        labels, domains = node.labels, self._domains
        return sum(int(amounts[domains[key].number(labels.get(key))]) for key, amounts in self.weights.items())

    def score_all(self, nodes: NodeTable) -> Scores:
        parts = [at_nodes(amounts, key, nodes) for key, amounts in self.weights.items()]
        return parts[0] if len(parts) == 1 else np.sum(parts, axis=0, dtype=np.int64)


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
    pure_hints = True
    args_type = InterPodAffinityArgs

    def __init__(self, handle: Handle, args: InterPodAffinityArgs) -> None:
        self._handle = handle
        self._args = args
        self._existing = handle.index(ExistingTerms)
        self._namespaces = handle.index(Namespaces)
        self._pods = PodsPerDomain(handle)
        self._topology = AffinityTopology()

    # --- filter ------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | Rejection | None:
        if pod.spec.affinity is None and self._existing.is_empty:
            return SKIP
        problem = terms_of(pod).problem
        if problem:
            return Reject(Reason("MalformedPodAffinity", f"parsing pod: {problem}", unresolvable=True))
        budget = state.budget
        asked = incoming(pod, self._namespaces, budget)
        subject = self._subject(pod)
        unwelcome = self._per_domain(self._existing.keeping_out(subject, budget), nodes)
        if asked.requires_nothing and not unwelcome:
            return SKIP
        near = self._near(asked, nodes, budget)
        apart = {key: self._count(question, key, nodes, budget) for key, question in self._in_use(asked.apart, budget)}
        state[_FILTER] = FilterState(
            asked, subject, None if near is None else DomainCounts(near), DomainCounts(apart), DomainCounts(unwelcome)
        )
        return None

    def _near(
        self, asked: Incoming, nodes: NodeTable, budget: Budget
    ) -> dict[str, tuple[AffinityDomains, Amounts]] | None:
        """Pods that are what the required affinity asks for; None if no node has all of its topology keys."""
        if asked.near is None:
            return {}
        if not all(map(self._existing.has_key, asked.near_keys)):
            return None
        if len(asked.near_keys) > _FEW_KEYS and not _some_node_has_all(asked.near_keys, nodes, budget):
            return None
        return {key: self._count(asked.near, key, nodes, budget) for key in asked.near_keys}

    def _in_use(self, by_key: Iterable[tuple[str, T]], budget: Budget) -> Iterator[tuple[str, T]]:
        """Only keys that a node has; the others can be neither near nor apart."""
        for key, question in by_key:
            budget.spend()
            if self._existing.has_key(key):
                yield key, question

    def _subject(self, pod: Pod) -> Subject:
        return Subject(pod.namespace, pod.labels, self._namespaces.labels_of(pod.namespace))

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> None:
        state.budget.spend(state[_FILTER].steps)
        state[_FILTER].change(added, node, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> None:
        state.budget.spend(state[_FILTER].steps)
        state[_FILTER].change(removed, node, -1)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        state.budget.spend(state[_FILTER].steps)
        reason = state[_FILTER].rejection(pod, node)
        return None if reason is None else Reject(reason)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        return state[_FILTER].rejections(pod, nodes)

    def _count(self, pods: PodSelection, key: str, nodes: NodeTable, budget: Budget) -> tuple[AffinityDomains, Amounts]:
        return self._topology.domains(key, nodes), self._pods.of(pods, key, budget)

    def _per_domain(self, tallies: Mapping[str, Tally], nodes: NodeTable) -> dict[str, tuple[AffinityDomains, Amounts]]:
        """Tallies as arrays; those without a pod are left out."""
        found = {}
        for key, tally in tallies.items():
            if tally.pods:
                domains = self._topology.domains(key, nodes)
                found[key] = (domains, tally.per_domain(domains))
        return found

    # --- score -------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | None:
        if pod.spec.affinity is None and self._existing.is_empty:
            return SKIP
        asked = incoming(pod, self._namespaces, state.budget)
        if not len(nodes) or (self._args.ignore_preferred_terms_of_existing_pods and not asked.preferred):
            return SKIP
        table = self._handle.nodes
        drawing = self._existing.drawing(self._subject(pod), self._args.hard_pod_affinity_weight, state.budget)
        weights = {key: amounts for key, (_, amounts) in self._per_domain(drawing, table).items()}
        preferred = self._in_use(asked.preferred, state.budget)
        for key, amounts in preferred_by_domain(preferred, self._pods, state.budget).items():
            weights[key] = amounts if key not in weights else weights[key] + amounts
        if not weights:
            return SKIP
        state[_SCORE] = ScoreState(weights, {key: self._topology.domains(key, table) for key in weights})
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
        return Hint.QUEUE if pod_change_helps(pod, old, new, self._subject) else Hint.SKIP

    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_LABEL)
    def after_own_labels(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        return Hint.QUEUE

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        if node_change_helps(pod, old, new):
            return Hint.QUEUE
        # The pods that keep this one out of their domains may not be able to do so there.
        keys = self._existing.keys_kept_out_of(self._subject(pod), UNLIMITED)
        return Hint.QUEUE if leaves_domain(keys, old, new) else Hint.SKIP

    @on_event(Resource.NAMESPACE, Action.ADD | Action.UPDATE | Action.DELETE)
    def after_namespace_change(self, pod: Pod, old: Namespace | None, new: Namespace | None) -> Hint:
        return Hint.QUEUE if namespace_change_helps(pod, old, new) else Hint.SKIP


def _some_node_has_all(keys: Sequence[str], nodes: NodeTable, budget: Budget) -> bool:
    """Most often one key that no node has decides it."""
    complete = nodes.everywhere(True)
    for key in keys:
        budget.spend(1 + len(nodes) // 16)
        complete &= nodes.labels(key)[0] != MISSING
        if not complete.any():
            return False
    return True


def preferred_by_domain(
    preferred: Iterable[tuple[str, PreferredTerm | WidePreferredTerms]], pods: PodsPerDomain, budget: Budget
) -> dict[str, Amounts]:
    """By topology key, how much the pod likes the pods of each domain; only keys for which it found any."""
    found: dict[str, Amounts] = {}
    for key, term in preferred:
        count = (
            pods.weighed(term, key, budget) if isinstance(term, WidePreferredTerms) else pods.of(term.pods, key, budget)
        )
        if count.any():
            liking = count if isinstance(term, WidePreferredTerms) else count * term.weight
            before = found.get(key)
            found[key] = liking if before is None else before + liking
    return found


def between_extremes(raw: Scores) -> Scores:
    """The lowest score becomes 0, the highest 100; if all are the same, 0."""
    lowest, highest = (int(raw.min()), int(raw.max())) if len(raw) else (0, 0)
    if lowest == highest:
        return np.zeros_like(raw)
    # In this order of floating point operations, so that the fractions that are cut off are kube-scheduler's.
    scaled: Scores = (MAX_SCORE * ((raw - lowest) / (highest - lowest))).astype(np.int64)
    return scaled
