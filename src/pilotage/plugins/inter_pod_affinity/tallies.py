"""How much the terms of existing pods weigh in each topology domain, kept up to date.

Every pod of a workload is meant by the same groups of terms of existing pods. What these add up to is remembered per
set of groups: one amount per domain. A pod that comes or goes then changes one amount in the tallies that its terms
take part in. Changes are noted by label value and written into the array when it is next read, because only then the
node table can be asked for the numbers of the values.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from msgspec import Struct

from pilotage.api import Budget
from pilotage.plugins.inter_pod_affinity.domains import MISSING, AffinityDomains, Amounts
from pilotage.plugins.inter_pod_affinity.term_groups import TermGroup

_KEPT_TALLIES = 512


class TermEntry:
    """A distinct group of terms, and how many pods have it on which node. Compared by identity."""

    __slots__ = ("group", "listeners", "on_node", "topology_key")

    def __init__(self, topology_key: str, group: TermGroup) -> None:
        self.topology_key = topology_key
        self.group = group
        self.on_node: dict[str, int] = {}
        self.listeners: dict[Summed, tuple[Tally, int]] = {}
        """Sums that this group takes part in: the tally of its key, and the amount per pod."""

    def change(self, node_name: str, domain: str | None, by: int) -> None:
        """One pod more or fewer on a node, which is in this domain (None: in no domain, or not known)."""
        left = self.on_node.get(node_name, 0) + by
        if left:
            self.on_node[node_name] = left
        else:
            del self.on_node[node_name]
        if domain is not None:
            for tally, amount in self.listeners.values():
                tally.change(domain, amount, by)


Meant = tuple[tuple[TermEntry, int], ...]
"""Groups that mean a pod, each with the amount per pod that has it."""


class Tally:
    """Amounts per domain of one topology key."""

    __slots__ = ("_amounts", "_by_value", "_numbered_by", "_pending", "pods")

    def __init__(self) -> None:
        self._by_value: dict[str, int] = {}
        self._pending: dict[str, int] = {}
        self._amounts: Amounts = np.zeros(1, dtype=np.int64)
        self._numbered_by: AffinityDomains | None = None
        self.pods = 0
        """How many times a pod was counted, whatever the amounts add up to."""

    def change(self, domain: str, amount: int, pods: int) -> None:
        self.pods += pods
        self._pending[domain] = self._pending.get(domain, 0) + amount * pods

    def per_domain(self, domains: AffinityDomains) -> Amounts:
        """The amounts as of now; to be read only, and only until the cluster changes."""
        if self._numbered_by is not domains:
            self._number_anew(domains)
        elif len(self._amounts) != len(domains) + 1:
            grown = np.zeros(len(domains) + 1, dtype=np.int64)
            grown[: len(self._amounts) - 1] = self._amounts[:MISSING]
            self._amounts = grown
        for domain, amount in self._pending.items():
            self._amounts[domains.number(domain)] += amount
            self._by_value[domain] = self._by_value.get(domain, 0) + amount
        self._pending.clear()
        return self._amounts

    def _number_anew(self, domains: AffinityDomains) -> None:
        self._amounts = np.zeros(len(domains) + 1, dtype=np.int64)
        for domain, amount in self._by_value.items():
            self._amounts[domains.number(domain)] += amount
        self._amounts[MISSING] = 0
        self._numbered_by = domains


class Summed(Struct, frozen=True, eq=False):
    """What some groups add up to, by topology key."""

    meant: Meant
    tallies: Mapping[str, Tally]


class Tallies:
    """The tallies of the sets of groups that were asked for."""

    def __init__(self, domain_of: Callable[[str, str], str | None]) -> None:
        self._domain_of = domain_of
        """(node name, topology key) -> label value."""
        self._known: OrderedDict[Meant, Summed] = OrderedDict()

    def of(self, meant: Meant, budget: Budget) -> Mapping[str, Tally]:
        """By topology key, what all these groups add up to."""
        known = self._known.get(meant)
        if known is not None:
            self._known.move_to_end(meant)
            return known.tallies
        known = self._known[meant] = Summed(meant, self._sum_up(meant, budget))
        for entry, amount in meant:
            entry.listeners[known] = (known.tallies[entry.topology_key], amount)
        if len(self._known) > _KEPT_TALLIES:
            self._drop(next(iter(self._known.values())))
        return known.tallies

    def clear(self) -> None:
        """Nodes moved between domains: count anew when asked."""
        for meant in self._known:
            for entry, _ in meant:
                entry.listeners.clear()
        self._known.clear()

    def forget(self, entry: TermEntry) -> None:
        """This group is gone, and will not be asked for again."""
        for summed in list(entry.listeners):
            self._drop(summed)

    def check(self, entries: Iterable[TermEntry]) -> None:
        """Verify that these groups, which are all there are, give exactly the tallies that are kept; for tests."""
        heard = {(id(entry), id(summed)) for entry in entries for summed in entry.listeners}
        assert heard == {(id(entry), id(summed)) for summed in self._known.values() for entry, _ in summed.meant}

    def _sum_up(self, meant: Meant, budget: Budget) -> Mapping[str, Tally]:
        tallies: dict[str, Tally] = {}
        for entry, amount in meant:
            key = entry.topology_key
            tally = tallies.setdefault(key, Tally())
            budget.spend(1 + len(entry.on_node))
            for node_name, pods in entry.on_node.items():
                domain = self._domain_of(node_name, key)
                if domain is not None:
                    tally.change(domain, amount, pods)
        return tallies

    def _drop(self, summed: Summed) -> None:
        del self._known[summed.meant]
        for entry, _ in summed.meant:
            del entry.listeners[summed]
