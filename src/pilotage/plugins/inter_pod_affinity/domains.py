"""Topology domains: the values of a node label, numbered, and amounts per domain.

The number of a domain is the code that the node table gave to the label's value. Amounts are an array with one entry
per domain and a last one, always 0, for nodes without the label: their code is -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from pilotage.api import NodeTable, Scores

Amounts: TypeAlias = Scores
"""One number per domain, and a 0 for nodes in none."""

MISSING = -1


_KEPT_KEYS = 256


class AffinityDomains:
    """The domains of one topology key. A value keeps its number, new values get new ones."""

    __slots__ = ("_number_of", "values")

    def __init__(self, values: Sequence[str]) -> None:
        self.values = values
        """As the table numbers them: it adds to this very sequence, and makes another one if it begins anew."""
        self._number_of: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._number_of)

    def follow(self) -> None:
        """Take in the values that the table has learnt since."""
        for number in range(len(self._number_of), len(self.values)):
            self._number_of[self.values[number]] = number

    def number(self, value: str | None) -> int:
        return MISSING if value is None else self._number_of.get(value, MISSING)


class AffinityTopology:
    """The domains of the topology keys in use."""

    def __init__(self) -> None:
        self._domains: dict[str, AffinityDomains] = {}

    def domains(self, key: str, nodes: NodeTable) -> AffinityDomains:
        """The domains of `key`, as of now."""
        values = nodes.labels(key)[1]
        known = self._domains.get(key)
        if known is None or known.values is not values:
            known = AffinityDomains(values)
            if len(self._domains) >= _KEPT_KEYS:
                del self._domains[next(iter(self._domains))]
            self._domains[key] = known
        if len(values) != len(known):
            known.follow()
        return known


def sum_by_domain(per_node: Scores, key: str, nodes: NodeTable) -> Amounts:
    """Amounts per node summed up per domain."""
    codes, values = nodes.labels(key)
    sums = np.bincount(codes + 1, weights=per_node, minlength=len(values) + 1)
    amounts = np.empty(len(sums), dtype=np.int64)
    amounts[:MISSING] = sums[1:]
    amounts[MISSING] = 0
    return amounts


def at_nodes(amounts: Amounts, key: str, nodes: NodeTable) -> Scores:
    """For each node the amount of its domain."""
    found: Scores = amounts.take(nodes.labels(key)[0])
    return found
