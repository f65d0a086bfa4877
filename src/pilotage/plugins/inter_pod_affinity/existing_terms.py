"""What the pods on the nodes say about the pods that may come: their (anti-)affinity is symmetric.

A pod on a node with a required anti-affinity term keeps the pods that the term means out of its domain. Its other
terms draw such pods to its domain or push them away when nodes are scored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from pilotage.api import ClusterIndex
from pilotage.model import Node, Pod
from pilotage.plugins.inter_pod_affinity.tallies import Tallies, Tally
from pilotage.plugins.inter_pod_affinity.term_book import TermBook
from pilotage.plugins.inter_pod_affinity.terms import NO_TERMS, Term, terms_of

_PER_POD = 1


class ExistingTerms(ClusterIndex):
    """The terms of all pods on nodes."""

    def __init__(self) -> None:
        self._repelling = TermBook()
        self._attracting = TermBook()
        self._tallies = Tallies(self._domain_of)
        self._node_labels: dict[str, Mapping[str, str]] = {}
        self._pods_on: Counter[str] = Counter()
        """How many pods with terms are on a node, known or not."""

    # --- questions ---------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """No pod on a node has any terms."""
        return not self._pods_on

    def keeping_out(self, pod: Pod, namespace_labels: Mapping[str, str]) -> Mapping[str, Tally]:
        """By topology key, how many pods in each domain do not tolerate `pod` there."""
        terms = self._repelling.matching(pod.namespace, pod.labels, namespace_labels)
        return self._tallies.of(terms, _PER_POD) if terms else {}

    def keys_kept_out_of(self, pod: Pod, namespace_labels: Mapping[str, str]) -> list[str]:
        """The topology keys by whose domains some pod on a node does not tolerate `pod`."""
        terms = self._repelling.matching(pod.namespace, pod.labels, namespace_labels)
        return list(dict.fromkeys(entry.term.topology_key for entry in terms))

    def drawing(self, pod: Pod, namespace_labels: Mapping[str, str], required_weight: int) -> Mapping[str, Tally]:
        """By topology key, how much the pods in each domain want `pod` there; each required term counts as given."""
        terms = self._attracting.matching(pod.namespace, pod.labels, namespace_labels)
        return self._tallies.of(terms, required_weight) if terms else {}

    # --- news --------------------------------------------------------------------------------------------------

    def pod_added(self, pod: Pod, node_name: str) -> None:
        if pod.spec.affinity is None:
            return
        labels = self._node_labels.get(node_name, {})
        for book, term, weight in self._terms(pod):
            book.entry(term, weight).change(node_name, labels.get(term.topology_key), 1)
            self._pods_on[node_name] += 1

    def pod_removed(self, pod: Pod, node_name: str) -> None:
        if pod.spec.affinity is None:
            return
        labels = self._node_labels.get(node_name, {})
        for book, term, weight in self._terms(pod):
            entry = book.entry(term, weight)
            entry.change(node_name, labels.get(term.topology_key), -1)
            if not entry.on_node:
                book.remove(entry)
            self._pods_on[node_name] -= 1
            if not self._pods_on[node_name]:
                del self._pods_on[node_name]

    def node_put(self, old: Node | None, new: Node) -> None:
        self._node_labels[new.name] = new.labels
        if new.name in self._pods_on and (old is None or old.labels != new.labels):
            self._tallies.clear()

    def node_removed(self, node: Node) -> None:
        del self._node_labels[node.name]
        if node.name in self._pods_on:
            self._tallies.clear()

    def _domain_of(self, node_name: str, key: str) -> str | None:
        labels = self._node_labels.get(node_name)
        return None if labels is None else labels.get(key)

    def _terms(self, pod: Pod) -> Iterator[tuple[TermBook, Term, int | None]]:
        """The pod's terms, each with the book it belongs in and its weight."""
        terms = terms_of(pod)
        if terms is NO_TERMS:
            return
        for term in terms.required_anti:
            yield self._repelling, term, _PER_POD
        for term in terms.required:
            yield self._attracting, term, None
        for term, weight in terms.preferred:
            yield self._attracting, term, weight
        for term, weight in terms.preferred_anti:
            yield self._attracting, term, -weight

    def check(self) -> None:
        """Verify the invariants; for tests."""
        self._repelling.check()
        self._attracting.check()
        self._tallies.check((*self._repelling.entries(), *self._attracting.entries()))
