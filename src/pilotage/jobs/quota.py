"""The quota tree: ClusterQueues are leaves, cohorts are nodes, and unused quota flows through their common ancestors.

Every node has, per (flavor, resource), its own `nominal` quota and two optional limits. What a node keeps for itself
(`local`, because of its lending limit) is used first; the rest of its quota and of its usage counts in its parent.

    subtree    nominal + what the children pass up
    local      max(0, subtree - lending limit); 0 without a limit
    usage      a leaf: booked; a cohort: sum over children of max(0, usage - local)
    available  what can still be booked here, with what the ancestors can lend
    potential  the same if nobody used anything

Booking is one walk to the root. Dry runs book, look, and book back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pilotage.model.kueue import ResourceGroup
from pilotage.model.quantity import Quantity, quantity_milli, quantity_value

FlavorResource = tuple[str, str]
Amounts = Mapping[FlavorResource, int]


@dataclass(frozen=True, slots=True)
class Quota:
    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None


_NONE = Quota()


def amount_of(resource: str, quantity: Quantity) -> int:
    """cpu in thousandths, everything else in units."""
    return quantity_milli(quantity) if resource == "cpu" else quantity_value(quantity)


def quotas_of(groups: Iterable[ResourceGroup]) -> dict[FlavorResource, Quota]:
    found: dict[FlavorResource, Quota] = {}
    for group in groups:
        for flavor in group.flavors:
            for one in flavor.resources:
                borrow, lend = one.borrowing_limit, one.lending_limit
                found[flavor.name, one.name] = Quota(
                    amount_of(one.name, one.nominal_quota),
                    None if borrow is None else amount_of(one.name, borrow),
                    None if lend is None else amount_of(one.name, lend),
                )
    return found


class QuotaNode:
    """A ClusterQueue or a cohort in the tree."""

    __slots__ = ("children", "height", "is_queue", "local", "name", "parent", "quotas", "subtree", "usage", "weight")

    def __init__(self, name: str, quotas: dict[FlavorResource, Quota], *, is_queue: bool, weight: float = 1.0) -> None:
        self.name = name
        self.is_queue = is_queue
        self.quotas = quotas
        self.weight = weight
        self.parent: QuotaNode | None = None
        self.children: list[QuotaNode] = []
        self.height = 0
        """The longest way down to a leaf."""
        self.subtree: dict[FlavorResource, int] = {}
        self.local: dict[FlavorResource, int] = {}
        self.usage: dict[FlavorResource, int] = {}

    def attach(self, parent: QuotaNode) -> None:
        self.parent = parent
        parent.children.append(self)

    def ancestors(self) -> Iterator[QuotaNode]:
        """From the parent to the root."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    @property
    def root(self) -> QuotaNode:
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    def leaves(self) -> Iterator[QuotaNode]:
        if self.is_queue:
            yield self
        for child in self.children:
            yield from child.leaves()

    def quota(self, pair: FlavorResource) -> Quota:
        return self.quotas.get(pair, _NONE)

    def total_up(self) -> None:
        """Work out subtree, local, usage and height of a whole tree from its quotas and the usage of its leaves."""
        for child in self.children:
            child.total_up()
        self.subtree = {pair: quota.nominal for pair, quota in self.quotas.items()}
        if not self.is_queue:
            self.usage = {}
        self.height = 1 + max((child.height for child in self.children), default=-1)
        for child in self.children:
            for pair, amount in child.subtree.items():
                self.subtree[pair] = self.subtree.get(pair, 0) + amount - child.local.get(pair, 0)
            for pair, amount in child.usage.items():
                self.usage[pair] = self.usage.get(pair, 0) + max(0, amount - child.local.get(pair, 0))
        self.local = {
            pair: max(0, self.subtree[pair] - quota.lending_limit)
            for pair, quota in self.quotas.items()
            if quota.lending_limit is not None
        }

    # --- booking ------------------------------------------------------------------------------------------------------

    def add(self, amounts: Amounts) -> None:
        for pair, amount in amounts.items():
            self._add(pair, amount)

    def remove(self, amounts: Amounts) -> None:
        for pair, amount in amounts.items():
            self._add(pair, -amount)

    def _add(self, pair: FlavorResource, amount: int) -> None:
        node: QuotaNode | None = self
        while node is not None and amount:
            before = node.usage.get(pair, 0)
            after = before + amount
            node.usage[pair] = after
            kept = node.local.get(pair, 0)
            amount = max(0, after - kept) - max(0, before - kept)
            node = node.parent

    # --- what is left -------------------------------------------------------------------------------------------------

    def local_available(self, pair: FlavorResource) -> int:
        return max(0, self.local.get(pair, 0) - self.usage.get(pair, 0))

    def available(self, pair: FlavorResource) -> int:
        """May be negative after a quota was cut."""
        subtree, usage = self.subtree.get(pair, 0), self.usage.get(pair, 0)
        if self.parent is None:
            return subtree - usage
        above = self.parent.available(pair)
        local = self.local.get(pair, 0)
        limit = self.quota(pair).borrowing_limit
        if limit is not None:
            above = min(above, subtree - local - max(0, usage - local) + limit)
        return max(0, local - usage) + above

    def potential(self, pair: FlavorResource) -> int:
        subtree = self.subtree.get(pair, 0)
        if self.parent is None:
            return subtree
        most = self.local.get(pair, 0) + self.parent.potential(pair)
        limit = self.quota(pair).borrowing_limit
        return most if limit is None else min(most, subtree + limit)

    def fits(self, amounts: Amounts) -> bool:
        return all(amount <= max(0, self.available(pair)) for pair, amount in amounts.items())

    # --- borrowing ----------------------------------------------------------------------------------------------------

    def borrows_with(self, pair: FlavorResource, amount: int) -> bool:
        return self.usage.get(pair, 0) + amount > self.subtree.get(pair, 0)

    def borrowed(self, pair: FlavorResource) -> int:
        return max(0, self.usage.get(pair, 0) - self.subtree.get(pair, 0))

    def is_within_quota(self, pairs: Iterable[FlavorResource]) -> bool:
        return not any(self.borrows_with(pair, 0) for pair in pairs)

    def borrowing_level(self, pair: FlavorResource, amount: int) -> tuple[int, bool]:
        """How distant the quota is that `amount` more needs (0: the own one), and whether that is below the root."""
        if self.parent is None:
            return 0, False
        if not self.borrows_with(pair, amount):
            return 0, True
        rest = amount - self.local_available(pair)
        top = self.parent
        for node in self.ancestors():
            if not node.borrows_with(pair, rest):
                return node.height, node.parent is not None
            rest -= node.local_available(pair)
            top = node
        return top.height, False
