"""What the pods on the nodes say about the pods that may come: their (anti-)affinity is symmetric.

A pod on a node with a required anti-affinity term keeps the pods that the term means out of its domain. Its other
terms draw such pods to its domain or push them away when nodes are scored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from pilotage.api import Budget, ClusterIndex
from pilotage.model import Node, Pod
from pilotage.plugins.inter_pod_affinity.tallies import Tallies, Tally
from pilotage.plugins.inter_pod_affinity.term_book import TermBook
from pilotage.plugins.inter_pod_affinity.term_groups import Subject, TermGroup, groups_of

_NO_LABELS: Mapping[str, str] = {}


def _is_meant(group: TermGroup, pod: Subject, required_weight: int) -> int | None:
    """One term is enough to keep a pod out: the others need not be asked."""
    return 1 if group.means(pod) else None


class ExistingTerms(ClusterIndex):
    """The terms of all pods on nodes."""

    def __init__(self) -> None:
        self._repelling = TermBook(_is_meant)
        self._attracting = TermBook(TermGroup.weight)
        self._tallies = Tallies(self._domain_of)
        self._node_labels: dict[str, Mapping[str, str]] = {}
        self._nodes_with: Counter[str] = Counter()
        """How many nodes have a label."""
        self._pods_on: Counter[str] = Counter()
        """How many groups of terms pods have on a node, known or not."""

    # --- questions ---------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """No pod on a node has any terms."""
        return not self._pods_on

    def has_key(self, topology_key: str) -> bool:
        """Whether a node has this label."""
        return topology_key in self._nodes_with

    def keeping_out(self, pod: Subject, budget: Budget) -> Mapping[str, Tally]:
        """By topology key, in which domains pods do not tolerate `pod`."""
        meant = self._repelling.matching(pod, 1, budget)
        return self._tallies.of(meant, budget) if meant else {}

    def keys_kept_out_of(self, pod: Subject, budget: Budget) -> list[str]:
        """The topology keys by whose domains some pod on a node does not tolerate `pod`."""
        meant = self._repelling.matching(pod, 1, budget)
        return list(dict.fromkeys(entry.topology_key for entry, _ in meant))

    def drawing(self, pod: Subject, required_weight: int, budget: Budget) -> Mapping[str, Tally]:
        """By topology key, how much the pods in each domain want `pod` there; each required term counts as given."""
        meant = self._attracting.matching(pod, required_weight, budget)
        return self._tallies.of(meant, budget) if meant else {}

    # --- news --------------------------------------------------------------------------------------------------

    def pod_added(self, pod: Pod, node_name: str) -> None:
        if pod.spec.affinity is None:
            return
        labels = self._node_labels.get(node_name, _NO_LABELS)
        for book, key, group in self._groups(pod):
            book.entry(key, group, is_in_use=key in self._nodes_with).change(node_name, labels.get(key), 1)
            self._pods_on[node_name] += 1

    def pod_removed(self, pod: Pod, node_name: str) -> None:
        if pod.spec.affinity is None:
            return
        labels = self._node_labels.get(node_name, _NO_LABELS)
        for book, key, group in self._groups(pod):
            entry = book.entry(key, group, is_in_use=key in self._nodes_with)
            entry.change(node_name, labels.get(key), -1)
            if not entry.on_node:
                self._tallies.forget(entry)
                book.remove(entry)
            self._pods_on[node_name] -= 1
            if not self._pods_on[node_name]:
                del self._pods_on[node_name]

    def node_put(self, old: Node | None, new: Node) -> None:
        before = self._node_labels.get(new.name, _NO_LABELS)
        self._node_labels[new.name] = new.labels
        if old is None or old.labels != new.labels:
            self._note_keys(before, new.labels)
            if new.name in self._pods_on:
                self._tallies.clear()

    def node_removed(self, node: Node) -> None:
        self._note_keys(self._node_labels.pop(node.name), _NO_LABELS)
        if node.name in self._pods_on:
            self._tallies.clear()

    def _note_keys(self, before: Mapping[str, str], now: Mapping[str, str]) -> None:
        """A node has other labels than before."""
        counts, books = self._nodes_with, (self._repelling, self._attracting)
        for key in now.keys() - before.keys():
            counts[key] += 1
            if counts[key] == 1:
                for book in books:
                    book.key_appeared(key)
        for key in before.keys() - now.keys():
            counts[key] -= 1
            if not counts[key]:
                del counts[key]
                for book in books:
                    book.key_vanished(key)

    def _domain_of(self, node_name: str, key: str) -> str | None:
        labels = self._node_labels.get(node_name)
        return None if labels is None else labels.get(key)

    def _groups(self, pod: Pod) -> Iterator[tuple[TermBook, str, TermGroup]]:
        """The pod's terms, each group with the book it belongs in and its topology key."""
        groups = groups_of(pod)
        for key, group in groups.repelling:
            yield self._repelling, key, group
        for key, group in groups.attracting:
            yield self._attracting, key, group

    def check(self) -> None:
        """Verify the invariants; for tests."""
        self._repelling.check()
        self._attracting.check()
        self._tallies.check((*self._repelling.entries(), *self._attracting.entries()))
