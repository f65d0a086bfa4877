"""The distinct terms of the pods on the nodes, and which of them mean a given pod.

A workload of a thousand replicas has one set of terms: a term is kept once, with the number of its pods per node. To
find the terms that mean a pod, not all are tried. A term is filed under addresses, each a namespace together with a
label that a pod must have to be meant; a pod is then looked up at the few addresses that follow from its labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pilotage.model.frozen_map import FrozenMap
from pilotage.model.selectors import LabelSelector
from pilotage.plugins.inter_pod_affinity.tallies import ExistingTerm
from pilotage.plugins.inter_pod_affinity.terms import Term

Pair = tuple[str, str]
Address = tuple[str | None, Pair | None]
"""Namespace and label; None stands for any."""

_KEPT_ANSWERS = 4096


class TermBook:
    """Terms of one role, e.g. all required anti-affinity terms."""

    def __init__(self) -> None:
        self._entries: dict[tuple[Term, int | None], ExistingTerm] = {}
        self._addresses: dict[ExistingTerm, list[Address]] = {}
        self._filed: dict[Address, dict[ExistingTerm, None]] = {}
        self._answers: dict[tuple[str, FrozenMap], tuple[Mapping[str, str], tuple[ExistingTerm, ...]]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, term: Term, weight: int | None) -> ExistingTerm:
        """The entry of this term; made if there is none yet."""
        known = self._entries.get((term, weight))
        if known is None:
            known = self._entries[term, weight] = ExistingTerm(term, weight)
            self._file(known)
        return known

    def entries(self) -> Iterable[ExistingTerm]:
        return self._entries.values()

    def remove(self, entry: ExistingTerm) -> None:
        """No pod has this term any more."""
        del self._entries[entry.term, entry.weight]
        for address in self._addresses.pop(entry):
            filed = self._filed[address]
            del filed[entry]
            if not filed:
                del self._filed[address]
        self._answers.clear()

    def matching(
        self, namespace: str, labels: FrozenMap, namespace_labels: Mapping[str, str]
    ) -> tuple[ExistingTerm, ...]:
        """The terms that mean a pod in this namespace with these labels."""
        if not self._entries:
            return ()
        known = self._answers.get((namespace, labels))
        if known is not None and known[0] is namespace_labels:
            return known[1]
        found = tuple(
            entry
            for entry in self._candidates(namespace, labels)
            if entry.term.selects(namespace, labels, namespace_labels)
        )
        if len(self._answers) >= _KEPT_ANSWERS:
            self._answers.clear()
        self._answers[namespace, labels] = (namespace_labels, found)
        return found

    def _candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterator[ExistingTerm]:
        """Terms at the addresses of the pod: each once, since a label has one value."""
        for where in (namespace, None):
            for pair in (*labels.items(), None):
                yield from self._filed.get((where, pair), ())

    def _file(self, entry: ExistingTerm) -> None:
        self._addresses[entry] = addresses = self._addresses_for(entry.term)
        for address in addresses:
            self._filed.setdefault(address, {})[entry] = None
        self._answers.clear()

    def _addresses_for(self, term: Term) -> list[Address]:
        if term.selector is None:
            return []
        namespaces = [None] if term.namespace_selector is not None else sorted(term.namespaces)
        choices = [
            [(where, pair) for where in namespaces for pair in pairs] for pairs in _telling_labels(term.selector)
        ]
        # Of several labels that a pod must have, the one that tells most terms apart.
        return min(choices, key=lambda addresses: sum(len(self._filed.get(a, ())) for a in addresses))

    def check(self) -> None:
        """Verify the invariants; for tests."""
        assert set(self._addresses) == set(self._entries.values())
        assert all(entry.on_node and min(entry.on_node.values()) > 0 for entry in self._entries.values())
        filed = {(address, entry) for address, entries in self._filed.items() for entry in entries}
        assert filed == {(address, entry) for entry, addresses in self._addresses.items() for address in addresses}


def _telling_labels(selector: LabelSelector) -> Sequence[Sequence[Pair | None]]:
    """Sets of labels; a pod that is selected has one label of each set."""
    found: list[Sequence[Pair | None]] = [[pair] for pair in selector.match_labels.items()]
    for expression in selector.match_expressions:
        if expression.operator == "In":
            found.append([(expression.key, value) for value in dict.fromkeys(expression.values)])
    return found or [[None]]
