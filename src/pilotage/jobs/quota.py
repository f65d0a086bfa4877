"""The quota tree: ClusterQueues are leaves, cohorts are nodes, and unused quota flows through their common ancestors.

Every node has, per (flavor, resource), its own `nominal` quota and two optional limits. What a node keeps for itself
(`local`, because of its lending limit) is used first; the rest of its quota and of its usage counts in its parent.

    subtree    nominal + what the children pass up
    local      max(0, subtree - lending limit); 0 without a limit
    usage      a leaf: booked; a cohort: sum over children of max(0, usage - local)
    available  what can still be booked here, with what the ancestors can lend
    potential  the same if nothing were in use

A node keeps an `Account` for each pair, and an account knows the one of its parent: booking is one walk to the root
without looking anything up. Dry runs book, look, and book back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from pilotage.model.kueue import FairSharing, ResourceGroup
from pilotage.model.quantity import MAX_INT64, Quantity, parse_quantity, quantity_milli, quantity_value

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


def weight_of(sharing: FairSharing | None) -> float:
    """The weight in fair sharing: 1 if none is said, never below 0; quantities end at the largest int64."""
    if sharing is None or sharing.weight is None:
        return 1.0
    return float(min(max(parse_quantity(sharing.weight), Fraction(0)), Fraction(MAX_INT64)))


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


class Account:
    """One (flavor, resource) of one node."""

    __slots__ = ("borrowing_limit", "lending_limit", "local", "nominal", "parent", "subtree", "usage")

    def __init__(self, quota: Quota, parent: Account | None) -> None:
        self.nominal = quota.nominal
        self.borrowing_limit = quota.borrowing_limit
        self.lending_limit = quota.lending_limit
        self.parent = parent
        self.subtree = quota.nominal
        self.local = 0
        self.usage = 0

    def add(self, amount: int) -> None:
        """Book, or take back if negative."""
        account: Account | None = self
        while account is not None and amount:
            before, kept = account.usage, account.local
            account.usage = after = before + amount
            amount = (after - kept if after > kept else 0) - (before - kept if before > kept else 0)
            account = account.parent

    def available(self) -> int:
        """May be negative after a quota was cut."""
        usage, parent = self.usage, self.parent
        if parent is None:
            return self.subtree - usage
        above, local, limit = parent.available(), self.local, self.borrowing_limit
        if limit is not None:
            above = min(above, self.subtree - local - max(0, usage - local) + limit)
        return above + local - usage if local > usage else above

    def potential(self) -> int:
        if self.parent is None:
            return self.subtree
        most, limit = self.local + self.parent.potential(), self.borrowing_limit
        return most if limit is None else min(most, self.subtree + limit)

    @property
    def local_available(self) -> int:
        return max(0, self.local - self.usage)

    @property
    def passed_up(self) -> int:
        """The part of the usage that counts in the parent."""
        return max(0, self.usage - self.local)


class QuotaNode:
    """A ClusterQueue or a cohort in the tree."""

    __slots__ = ("accounts", "children", "height", "is_queue", "leaves", "name", "parent", "quotas", "weight")

    def __init__(self, name: str, quotas: dict[FlavorResource, Quota], *, is_queue: bool, weight: float = 1.0) -> None:
        self.name = name
        self.is_queue = is_queue
        self.quotas = quotas
        self.weight = weight
        self.parent: QuotaNode | None = None
        self.children: list[QuotaNode] = []
        self.height = 0
        """The longest way down to a leaf."""
        self.leaves: list[QuotaNode] = [self] if is_queue else []
        """The ClusterQueues of the subtree."""
        self.accounts: dict[FlavorResource, Account] = {pair: Account(quota, None) for pair, quota in quotas.items()}

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

    def quota(self, pair: FlavorResource) -> Quota:
        return self.quotas.get(pair, _NONE)

    def account(self, pair: FlavorResource) -> Account:
        found = self.accounts.get(pair)
        if found is None:
            # There is no quota for it, but it may be in use: the quota was taken away.
            above = None if self.parent is None else self.parent.account(pair)
            found = self.accounts[pair] = Account(_NONE, above)
        return found

    def total_up(self) -> None:
        """Work out leaves, subtree, local, usage and height of a whole tree from its quotas and the usage of leaves."""
        for child in self.children:
            child.total_up()
            self.leaves += child.leaves
            self.height = max(self.height, 1 + child.height)
            for pair, below in child.accounts.items():
                account = self.account(pair)
                below.parent = account
                account.subtree += below.subtree - below.local
                account.usage += below.passed_up
        for account in self.accounts.values():
            if account.lending_limit is not None:
                account.local = max(0, account.subtree - account.lending_limit)

    # --- booking ------------------------------------------------------------------------------------------------------

    @property
    def usage(self) -> dict[FlavorResource, int]:
        return {pair: account.usage for pair, account in self.accounts.items()}

    def used(self, pair: FlavorResource) -> int:
        return self.account(pair).usage

    def add(self, amounts: Amounts) -> None:
        accounts = self.accounts
        for pair, amount in amounts.items():
            (accounts.get(pair) or self.account(pair)).add(amount)

    def remove(self, amounts: Amounts) -> None:
        accounts = self.accounts
        for pair, amount in amounts.items():
            (accounts.get(pair) or self.account(pair)).add(-amount)

    # --- what is left -------------------------------------------------------------------------------------------------

    def available(self, pair: FlavorResource) -> int:
        """May be negative after a quota was cut."""
        return self.account(pair).available()

    def potential(self, pair: FlavorResource) -> int:
        return self.account(pair).potential()

    def fits(self, amounts: Amounts) -> bool:
        accounts = self.accounts
        for pair, amount in amounts.items():
            if amount > 0 and amount > (accounts.get(pair) or self.account(pair)).available():
                return False
        return True

    # --- borrowing ----------------------------------------------------------------------------------------------------

    def borrows_with(self, pair: FlavorResource, amount: int) -> bool:
        account = self.account(pair)
        return account.usage + amount > account.subtree

    def borrowed(self, pair: FlavorResource) -> int:
        account = self.account(pair)
        return max(0, account.usage - account.subtree)

    @property
    def borrows(self) -> int:
        """What it uses above its quota, of everything together."""
        return sum(
            account.usage - account.subtree for account in self.accounts.values() if account.usage > account.subtree
        )

    def is_within_quota(self, pairs: Iterable[FlavorResource]) -> bool:
        accounts = self.accounts
        for pair in pairs:
            account = accounts.get(pair) or self.account(pair)
            if account.usage > account.subtree:
                return False
        return True

    def borrowing_level(self, pair: FlavorResource, amount: int) -> tuple[int, bool]:
        """How distant the quota is that `amount` more needs (0: the own one), and whether that is below the root."""
        if self.parent is None:
            return 0, False
        account = self.account(pair)
        if account.usage + amount <= account.subtree:
            return 0, True
        rest = amount - account.local_available
        top = self.parent
        for node in self.ancestors():
            account = node.account(pair)
            if account.usage + rest <= account.subtree:
                return node.height, node.parent is not None
            rest -= account.local_available
            top = node
        return top.height, False
