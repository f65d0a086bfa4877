"""Required terms: which nodes they leave.

Three counts decide, each per topology domain (a topology key and a value of it):

    near      pods that are meant by all required affinity terms of the incoming pod: every key needs one
    apart     pods that are meant by a required anti-affinity term of the incoming pod: there must be none
    unwelcome pods with a required anti-affinity term that means the incoming pod: there must be none

The first pod of a group that wants to be near itself finds nobody; it may go to any node that has all keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pilotage.api import Mask, NodeTable, NodeView, Reason
from pilotage.model import Pod
from pilotage.plugins.inter_pod_affinity.domains import MISSING, Amounts, Topology, at_nodes
from pilotage.plugins.inter_pod_affinity.incoming import Incoming
from pilotage.plugins.inter_pod_affinity.terms import terms_of

AFFINITY = Reason("PodAffinityMismatch", "node(s) didn't match pod affinity rules", unresolvable=True)
ANTI_AFFINITY = Reason("PodAntiAffinityMismatch", "node(s) didn't match pod anti-affinity rules")
EXISTING = Reason("ExistingPodAntiAffinity", "node(s) didn't satisfy existing pods anti-affinity rules")


class DomainCounts:
    """Pods per topology key and domain: as they are, and as a dry run would have them."""

    __slots__ = ("_amounts", "_changes", "_topology")

    def __init__(self, amounts: Mapping[str, Amounts], topology: Topology) -> None:
        self._amounts = amounts
        self._topology = topology
        self._changes: dict[tuple[str, str], int] = {}

    def clone(self) -> DomainCounts:
        copy = DomainCounts(self._amounts, self._topology)
        copy._changes = dict(self._changes)
        return copy

    def change(self, key: str, labels: Mapping[str, str], by: int) -> None:
        """One pod more or fewer on a node with these labels."""
        value = labels.get(key)
        if value is not None:
            self._changes[key, value] = self._changes.get((key, value), 0) + by

    def __bool__(self) -> bool:
        """Is there any pod?"""
        return sum(int(amounts.sum()) for amounts in self._amounts.values()) + sum(self._changes.values()) > 0

    def topology_keys(self) -> list[str]:
        return list(dict.fromkeys((*self._amounts, *(key for key, _ in self._changes))))

    def around(self, key: str, labels: Mapping[str, str]) -> int:
        """The pods in the domain of a node with these labels."""
        value = labels.get(key)
        if value is None:
            return 0
        amounts = self._amounts.get(key)
        number = self._topology.number(key, value)
        known = 0 if amounts is None or number == MISSING else int(amounts[number])
        return known + self._changes.get((key, value), 0)

    def around_all(self, key: str, nodes: NodeTable) -> Amounts:
        """The same for every node of a table."""
        amounts = self._amounts.get(key)
        if amounts is None:
            amounts = np.zeros(len(self._topology.domains(key, nodes)) + 1, dtype=np.int64)
        changes = [(value, by) for (changed, value), by in self._changes.items() if changed == key]
        if changes:
            amounts = amounts.copy()
            for value, by in changes:
                amounts[self._topology.number(key, value)] += by
        return at_nodes(amounts, key, nodes)


class FilterState:
    """What PreFilter found out about a pod."""

    __slots__ = ("_incoming", "_namespace_labels", "apart", "near", "unwelcome")

    def __init__(
        self,
        incoming: Incoming,
        namespace_labels: Mapping[str, str],
        near: DomainCounts,
        apart: DomainCounts,
        unwelcome: DomainCounts,
    ) -> None:
        self._incoming = incoming
        self._namespace_labels = namespace_labels
        self.near = near
        self.apart = apart
        self.unwelcome = unwelcome

    def clone(self) -> FilterState:
        return FilterState(
            self._incoming, self._namespace_labels, self.near.clone(), self.apart.clone(), self.unwelcome.clone()
        )

    def change(self, pod: Pod, other: Pod, node: NodeView, by: int) -> None:
        """As if `other` came to the node (+1) or left it (-1)."""
        labels = node.labels
        if self._incoming.near is not None and self._incoming.near(other):
            for key in self._incoming.near_keys:
                self.near.change(key, labels, by)
        for key, question in self._incoming.apart:
            if question(other):
                self.apart.change(key, labels, by)
        for term in terms_of(other).required_anti:
            if term.selects(pod.namespace, pod.labels, self._namespace_labels):
                self.unwelcome.change(term.topology_key, labels, by)

    def refusal(self, pod: Pod, node: NodeView) -> Reason | None:
        """Why the pod cannot go to a node; None if it can."""
        labels = node.labels
        if not self._is_near(pod, labels):
            return AFFINITY
        if any(self.apart.around(key, labels) > 0 for key, _ in self._incoming.apart):
            return ANTI_AFFINITY
        if any(self.unwelcome.around(key, labels) > 0 for key in self.unwelcome.topology_keys()):
            return EXISTING
        return None

    def refusals(self, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        """The same for all nodes of a table: a node has at most one reason."""
        closed: Mask | None = None
        parts = (
            (self._far_away(pod, nodes), AFFINITY),
            (_occupied(self.apart, [key for key, _ in self._incoming.apart], nodes), ANTI_AFFINITY),
            (_occupied(self.unwelcome, self.unwelcome.topology_keys(), nodes), EXISTING),
        )
        for refused, reason in parts:
            if refused is None:
                continue
            if closed is not None:
                refused = refused & ~closed
            if refused.any():
                yield refused, reason
                closed = refused if closed is None else closed | refused

    def _is_near(self, pod: Pod, labels: Mapping[str, str]) -> bool:
        keys = self._incoming.near_keys
        if any(key not in labels for key in keys):
            return False
        return all(self.near.around(key, labels) > 0 for key in keys) or self._starts_a_group(pod)

    def _far_away(self, pod: Pod, nodes: NodeTable) -> Mask | None:
        """Nodes that required affinity rules out; None if there is no such affinity."""
        keys = self._incoming.near_keys
        if not keys:
            return None
        far = _any([self.near.around_all(key, nodes) <= 0 for key in keys])
        if far.any() and self._starts_a_group(pod):
            return _any([nodes.labels(key)[0] == MISSING for key in keys])
        return far

    def _starts_a_group(self, pod: Pod) -> bool:
        near = self._incoming.near
        return near is not None and not self.near and near(pod)


def _occupied(counts: DomainCounts, keys: Sequence[str], nodes: NodeTable) -> Mask | None:
    """Nodes in whose domain there is such a pod; None if there are no keys to look at."""
    return _any([counts.around_all(key, nodes) > 0 for key in keys]) if keys else None


def _any(masks: Sequence[Mask]) -> Mask:
    return masks[0] if len(masks) == 1 else np.logical_or.reduce(masks)
