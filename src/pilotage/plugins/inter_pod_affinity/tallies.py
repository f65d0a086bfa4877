"""How much the terms of existing pods weigh in each topology domain, kept up to date.

Every pod of a workload is meant by the same terms of existing pods. What these terms add up to is remembered per set
of terms: one amount per domain. A pod that comes or goes then changes one amount in the tallies that its terms take
part in. Changes are noted by label value and written into the array when it is next read, because only then the node
table can be asked for the numbers of the values.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from pilotage.plugins.inter_pod_affinity.domains import MISSING, Amounts, Domains
from pilotage.plugins.inter_pod_affinity.terms import Term

_KEPT_TALLIES = 512


class ExistingTerm:
    """A distinct term, and how many pods have it on which node. Compared by identity."""

    __slots__ = ("listeners", "on_node", "term", "weight")

    def __init__(self, term: Term, weight: int | None) -> None:
        self.term = term
        self.weight = weight
        """None if the weight is not the term's own but a matter of configuration."""
        self.on_node: dict[str, int] = {}
        self.listeners: list[tuple[Tally, int]] = []
        """Tallies that this term takes part in, each with the amount per pod."""

    def amount(self, default_weight: int) -> int:
        """What one pod with this term adds to its domain."""
        return default_weight if self.weight is None else self.weight

    def change(self, node_name: str, domain: str | None, by: int) -> None:
        """One pod more or fewer on a node, which is in this domain (None: in no domain, or not known)."""
        left = self.on_node.get(node_name, 0) + by
        if left:
            self.on_node[node_name] = left
        else:
            del self.on_node[node_name]
        if domain is not None:
            for tally, amount in self.listeners:
                tally.change(domain, amount, by)


class Tally:
    """Amounts per domain of one topology key."""

    __slots__ = ("_amounts", "_pending", "pods")

    def __init__(self) -> None:
        self._amounts: Amounts = np.zeros(1, dtype=np.int64)
        self._pending: dict[str, int] = {}
        self.pods = 0
        """How many times a pod's term was counted, whatever the amounts add up to."""

    def change(self, domain: str, amount: int, pods: int) -> None:
        self.pods += pods
        self._pending[domain] = self._pending.get(domain, 0) + amount * pods

    def per_domain(self, domains: Domains) -> Amounts:
        """The amounts as of now; to be read only, and only until the cluster changes."""
        if len(self._amounts) != len(domains) + 1:
            grown = np.zeros(len(domains) + 1, dtype=np.int64)
            grown[: len(self._amounts) - 1] = self._amounts[:MISSING]
            self._amounts = grown
        for domain, amount in self._pending.items():
            self._amounts[domains.number(domain)] += amount
        self._pending.clear()
        return self._amounts


class Tallies:
    """The tallies of the sets of terms that were asked for."""

    def __init__(self, domain_of: Callable[[str, str], str | None]) -> None:
        self._domain_of = domain_of
        """(node name, topology key) -> label value."""
        self._known: OrderedDict[tuple[Sequence[ExistingTerm], int], Mapping[str, Tally]] = OrderedDict()

    def of(self, terms: tuple[ExistingTerm, ...], default_weight: int) -> Mapping[str, Tally]:
        """By topology key, what all these terms add up to; terms that weigh nothing are left out."""
        key = (terms, default_weight)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._sum_up(terms, default_weight)
            if len(self._known) > _KEPT_TALLIES:
                self._drop(*self._known.popitem(last=False))
        else:
            self._known.move_to_end(key)
        return known

    def clear(self) -> None:
        """Nodes moved between domains: count anew when asked."""
        for (terms, _), _ in self._known.items():
            for entry in terms:
                entry.listeners.clear()
        self._known.clear()

    def check(self, terms: Iterable[ExistingTerm]) -> None:
        """Verify that these terms, which are all there are, tell exactly the tallies that are kept; for tests."""
        heard = {(id(entry), id(tally)) for entry in terms for tally, _ in entry.listeners}
        kept = {
            (id(entry), id(tallies[entry.term.topology_key]))
            for (members, default_weight), tallies in self._known.items()
            for entry in members
            if entry.on_node and entry.amount(default_weight)
        }
        assert heard == kept

    def _sum_up(self, terms: Sequence[ExistingTerm], default_weight: int) -> Mapping[str, Tally]:
        tallies: dict[str, Tally] = {}
        for entry in terms:
            amount = entry.amount(default_weight)
            if not amount:
                continue
            key = entry.term.topology_key
            tally = tallies.setdefault(key, Tally())
            entry.listeners.append((tally, amount))
            for node_name, pods in entry.on_node.items():
                domain = self._domain_of(node_name, key)
                if domain is not None:
                    tally.change(domain, amount, pods)
        return tallies

    @staticmethod
    def _drop(key: tuple[Sequence[ExistingTerm], int], tallies: Mapping[str, Tally]) -> None:
        for entry in key[0]:
            own = tallies.get(entry.term.topology_key)
            entry.listeners = [(tally, amount) for tally, amount in entry.listeners if tally is not own]
