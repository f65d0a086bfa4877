"""Required terms: which nodes they leave.

Three counts decide, each per topology domain (a topology key and a value of it):

    near      pods that are meant by all required affinity terms of the incoming pod: every key needs one
    apart     pods that are meant by a required anti-affinity term of the incoming pod: there must be none
    unwelcome pods with a required anti-affinity term that means the incoming pod: there must be none

The first pod of a group that wants to be near itself finds none; it may go to any node that has all keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pilotage.api import Mask, NodeTable, NodeView, Reason
from pilotage.model import Pod
from pilotage.plugins.inter_pod_affinity.domains import MISSING, AffinityDomains, Amounts, at_nodes
from pilotage.plugins.inter_pod_affinity.incoming import Incoming
from pilotage.plugins.inter_pod_affinity.term_groups import Subject, groups_of

AFFINITY = Reason("PodAffinityMismatch", "node(s) didn't match pod affinity rules", unresolvable=True)
ANTI_AFFINITY = Reason("PodAntiAffinityMismatch", "node(s) didn't match pod anti-affinity rules")
EXISTING = Reason("ExistingPodAntiAffinity", "node(s) didn't satisfy existing pods anti-affinity rules")


class DomainCounts:
    """Pods per topology key and domain: as they are, and as a dry run would have them."""

    __slots__ = ("_amounts", "_changes")

    def __init__(self, amounts: Mapping[str, tuple[AffinityDomains, Amounts]]) -> None:
        self._amounts = amounts
        self._changes: dict[str, dict[str, int]] = {}

    def clone(self) -> DomainCounts:
        copy = DomainCounts(self._amounts)
        copy._changes = {key: dict(by_value) for key, by_value in self._changes.items()}
        return copy

    def change(self, key: str, labels: Mapping[str, str], by: int) -> None:
        """One pod more or fewer on a node with these labels."""
        value = labels.get(key)
        if value is not None:
            by_value = self._changes.setdefault(key, {})
            by_value[value] = by_value.get(value, 0) + by

    def __bool__(self) -> bool:
        """Whether there is any pod."""
        known = sum(int(amounts.sum()) for _, amounts in self._amounts.values())
        return known + sum(sum(by_value.values()) for by_value in self._changes.values()) > 0

    def topology_keys(self) -> list[str]:
        return list(dict.fromkeys((*self._amounts, *self._changes)))

    def around(self, key: str, labels: Mapping[str, str]) -> int:
        """The pods in the domain of a node with these labels."""
        value = labels.get(key)
        if value is None:
            return 0
        counted = self._amounts.get(key)
        number = MISSING if counted is None else counted[0].number(value)
        known = 0 if counted is None or number == MISSING else int(counted[1][number])
        changes = self._changes.get(key)
        return known if changes is None else known + changes.get(value, 0)

    def around_all(self, key: str, nodes: NodeTable) -> Amounts:
        """The same for every node of a table."""
        counted, changes = self._amounts.get(key), self._changes.get(key)
        if counted is not None and changes is None:
            return at_nodes(counted[1], key, nodes)
        codes, values = nodes.labels(key)
        amounts = np.zeros(len(values) + 1, dtype=np.int64) if counted is None else counted[1].copy()
        for number, value in enumerate(values):
            amounts[number] += (changes or {}).get(value, 0)
        found: Amounts = amounts.take(codes)
        return found

    def are_around(self, key: str, nodes: NodeTable) -> Mask:
        """Where there are any."""
        counted = self._amounts.get(key)
        if counted is None or key in self._changes:
            return self.around_all(key, nodes) > 0
        # To look at domains first moves an eighth of the memory.
        found: Mask = (counted[1] > 0).take(nodes.labels(key)[0])
        return found


class FilterState:
    """What PreFilter found out about a pod."""

    __slots__ = ("_incoming", "_is_out_of_reach", "_subject", "apart", "near", "unwelcome")

    def __init__(
        self,
        incoming: Incoming,
        subject: Subject,
        near: DomainCounts | None,
        apart: DomainCounts,
        unwelcome: DomainCounts,
    ) -> None:
        self._incoming = incoming
        self._subject = subject
        self._is_out_of_reach = near is None
        self.near = DomainCounts({}) if near is None else near
        """None is given if no node has all topology keys of the required affinity: nothing needs to be counted."""
        self.apart = apart
        self.unwelcome = unwelcome

    def clone(self) -> FilterState:
        near = None if self._is_out_of_reach else self.near.clone()
        return FilterState(self._incoming, self._subject, near, self.apart.clone(), self.unwelcome.clone())

    @property
    def steps(self) -> int:
        """About how many steps it takes to look at one node."""
        return 1 + len(self._incoming.near_keys) + len(self._incoming.apart)

    def change(self, other: Pod, node: NodeView, by: int) -> None:
        """As if `other` came to the node (+1) or left it (-1)."""
        labels = node.labels
        if self._incoming.near is not None and not self._is_out_of_reach and self._incoming.near(other):
            for key in self._incoming.near_keys:
                self.near.change(key, labels, by)
        for key, question in self._incoming.apart:
            if key in labels and question(other):
                self.apart.change(key, labels, by)
        for key, group in groups_of(other).repelling:
            if key in labels and group.means(self._subject):
                self.unwelcome.change(key, labels, by)

    def rejection(self, pod: Pod, node: NodeView) -> Reason | None:
        """Why the pod cannot go to a node; None if it can."""
        labels = node.labels
        if not self._is_near(pod, labels):
            return AFFINITY
        if any(self.apart.around(key, labels) > 0 for key in self.apart.topology_keys()):
            return ANTI_AFFINITY
        if any(self.unwelcome.around(key, labels) > 0 for key in self.unwelcome.topology_keys()):
            return EXISTING
        return None

    def rejections(self, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        """The same for all nodes of a table: a node has at most one reason."""
        closed: Mask | None = None
        parts = (
            (self._far_away(pod, nodes), AFFINITY),
            (_occupied(self.apart, self.apart.topology_keys(), nodes), ANTI_AFFINITY),
            (_occupied(self.unwelcome, self.unwelcome.topology_keys(), nodes), EXISTING),
        )
        for rejected, reason in parts:
            if rejected is None:
                continue
            if closed is not None:
                rejected = rejected & ~closed
            if rejected.any():
                yield rejected, reason
                closed = rejected if closed is None else closed | rejected

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
        if self._is_out_of_reach:
            return nodes.everywhere(True)
        far = ~_all([self.near.are_around(key, nodes) for key in keys])
        if far.any() and self._starts_a_group(pod):
            return _any([nodes.labels(key)[0] == MISSING for key in keys])
        return far

    def _starts_a_group(self, pod: Pod) -> bool:
        near = self._incoming.near
        return near is not None and not self.near and near(pod)


def _occupied(counts: DomainCounts, keys: Sequence[str], nodes: NodeTable) -> Mask | None:
    """Nodes in whose domain there is such a pod; None if there are no keys to look at."""
    return _any([counts.are_around(key, nodes) for key in keys]) if keys else None


def _any(masks: Sequence[Mask]) -> Mask:
    return masks[0] if len(masks) == 1 else np.logical_or.reduce(masks)


def _all(masks: Sequence[Mask]) -> Mask:
    return masks[0] if len(masks) == 1 else np.logical_and.reduce(masks)
