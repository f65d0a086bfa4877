"""Fair sharing: who borrows least goes first, and who borrows most gives back first.

The share of a node below a cohort is the largest, over resources, of what it uses above its own quota in thousandths
of what the parent could lend, divided by the node's weight. Of nodes without weight those that borrow are above all
others, and among themselves the one that borrows more. Nodes are compared where their ways to the root meet.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.ordering import OrderKey, QueueOrder
from pilotage.jobs.preemption import (
    IN_CLUSTER_QUEUE,
    IN_COHORT_FAIR_SHARING,
    IN_COHORT_RECLAMATION,
    CandidateKind,
    ClassicalPreemption,
    PreemptionCandidate,
    PreemptionRequest,
    Victim,
    candidate_order,
    fits,
    spare,
)
from pilotage.jobs.quota import Amounts, QuotaNode
from pilotage.jobs.quota_tree import QuotaTree
from pilotage.jobs.quota_upper_bound import QuotaUpperBound

MOST = 2**63 - 1


class Share(NamedTuple):
    """How far a node is above its own quota; compares as the nodes do."""

    weighted: float = 0.0
    """Infinite if it borrows with weight 0."""
    of_weightless: float = 0.0
    """What tells nodes of weight 0 apart."""


NO_SHARE = Share()


def share(node: QuotaNode) -> Share:
    """`NO_SHARE` if the node does not borrow."""
    if node.parent is None:
        return NO_SHARE
    borrowed: dict[str, int] = {}
    for pair, account in node.accounts.items():
        above = account.usage - account.subtree
        if above > 0:
            borrowed[pair[1]] = borrowed.get(pair[1], 0) + above
    if not borrowed:
        return NO_SHARE
    lendable = _lendable(node.parent, borrowed)
    largest = max(
        (amount * 1000 / lendable[name] for name, amount in borrowed.items() if lendable[name] > 0), default=0.0
    )
    return Share(math.inf, largest) if node.weight == 0 else Share(largest / node.weight)


def weighted_share(node: QuotaNode) -> int:
    """As the status says it."""
    return math.ceil(min(share(node).weighted, MOST))


def _lendable(parent: QuotaNode, resources: Iterable[str]) -> dict[str, int]:
    found = dict.fromkeys(resources, 0)
    for pair in parent.root.accounts:
        if pair[1] in found:
            found[pair[1]] += parent.potential(pair)
    return found


# --- who goes first ---------------------------------------------------------------------------------------------------


class Contestant(Protocol):
    """A head with its assignment."""

    @property
    def queue(self) -> QueueState: ...

    @property
    def usage(self) -> Amounts: ...

    @property
    def leaving(self) -> Sequence[Amounts]:
        """What those of its own queue use that were preempted for it and are not gone yet."""

    @property
    def has_victims(self) -> bool:
        """Others were preempted for it."""

    @property
    def rank(self) -> OrderKey:
        """Priority, then age."""


C = TypeVar("C", bound=Contestant)


def drawn(contestants: Iterable[C]) -> Iterator[C]:
    """One winner at a time; shares are looked at anew for each, as winners change them."""
    waiting = {one.queue.name: one for one in contestants}
    while waiting:
        root = next(iter(waiting.values())).queue.node.root
        winner = _winner(root, waiting)
        assert winner is not None
        del waiting[winner.queue.name]
        yield winner


def _winner(node: QuotaNode, waiting: dict[str, C]) -> C | None:
    if node.is_queue:
        return waiting.get(node.name)
    finalists = [(child, one) for child in node.children if (one := _winner(child, waiting)) is not None]
    if not finalists:
        return None
    return min(finalists, key=_standing)[1]


def _standing(finalist: tuple[QuotaNode, C]) -> tuple[bool, bool, Share, OrderKey]:
    """As if the contestant were admitted: not borrowing first, then the lower share, then priority and age.

    Of those that borrow, one for whom others had to go is before all who would only take the place of these: or the
    victims' queue reclaims it from them, the preemptor has its victims again, and so on without end.
    """
    child, one = finalist
    node, leaving = one.queue.node, one.leaving
    for amounts in leaving:
        node.remove(amounts)
    node.add(one.usage)
    borrows = any(child.borrows_with(pair, 0) for pair in one.usage)
    found = share(child)
    node.remove(one.usage)
    for amounts in leaving:
        node.add(amounts)
    return borrows, borrows and not one.has_victims, found, one.rank


# --- who must give back -----------------------------------------------------------------------------------------------


class FairSharingPreemption(ClassicalPreemption):
    """Victims by share instead of by borrowWithinCohort."""

    def __init__(
        self, tree: QuotaTree, order: QueueOrder, upper_bound: QuotaUpperBound, strategies: Sequence[str]
    ) -> None:
        super().__init__(tree, order, upper_bound)
        self._strategies = strategies

    def victims(self, want: PreemptionRequest) -> list[Victim]:
        if not want.queue.can_preempt:
            return []
        contest = _Contest(want, self._by_queue(want))
        found = contest.run(self._strategies)
        return [Victim(one.record, one.queue, reason) for one, reason in found]

    def _by_queue(self, want: PreemptionRequest) -> dict[str, list[PreemptionCandidate]]:
        found: dict[str, list[PreemptionCandidate]] = {}
        own = [PreemptionCandidate(record, want.queue, CandidateKind.OWN) for record in self.own_candidates(want)]
        if own:
            found[want.queue.name] = sorted(own, key=candidate_order)
        node = want.queue.node
        if node.parent is not None and want.queue.obj.spec.preemption.reclaim_within_cohort != "Never":
            # Also in a cohort that borrows nothing itself: which ones give something back is decided by their shares.
            lenders = (one for one in node.root.leaves if one is not node and not one.is_within_quota(want.pairs))
            for queue in (self._tree.queues[one.name] for one in lenders):
                others = [
                    PreemptionCandidate(record, queue, CandidateKind.BORROWING)
                    for record in self.reclaimable(want, queue)
                ]
                if others:
                    found[queue.name] = sorted(others, key=candidate_order)
        return found


class _Contest:
    """The search for victims of one workload. All shares are those with that workload in its queue."""

    def __init__(self, want: PreemptionRequest, candidates: dict[str, list[PreemptionCandidate]]) -> None:
        self._want = want
        self._candidates = candidates
        self._node = want.queue.node
        self._taken: list[tuple[PreemptionCandidate, str]] = []
        self._spared: dict[str, list[PreemptionCandidate]] = {}
        self._terms: list[_Term] = []

    def run(self, strategies: Sequence[str]) -> list[tuple[PreemptionCandidate, str]]:
        stays_inside = not any(self._node.borrows_with(pair, amount) for pair, amount in self._want.usage.items())
        self._node.add(self._want.usage)
        enough = self._first_rule(strategies[0], stays_inside)
        if not enough and len(strategies) > 1:
            enough = self._second_rule()
        if enough:
            self._spare()
        for one, _ in self._taken:
            one.queue.node.add(one.record.usage)
        self._node.remove(self._want.usage)
        return self._taken if enough else []

    def _first_rule(self, rule: str, stays_inside: bool) -> bool:
        while (name := self._greediest(self._candidates)) is not None:
            line = self._candidates[name]
            if name == self._want.queue.name or stays_inside:
                reason = IN_CLUSTER_QUEUE if name == self._want.queue.name else IN_COHORT_RECLAMATION
                if self._take(line.pop(0), reason):
                    return True
            elif self._take_by_rule(rule, line):
                return True
            if not line:
                del self._candidates[name]
        return False

    def _take_by_rule(self, rule: str, line: list[PreemptionCandidate]) -> bool:
        """Take the first of a queue that the rule allows; whether there is room then."""
        mine, theirs = self._rivals(line[0].queue)
        before = share(theirs)
        while line:
            one = line.pop(0)
            is_final = rule == "LessThanOrEqualToFinalShare"
            term = _Term(mine, _share_without(theirs, one) if is_final else before, may_be_equal=is_final)
            if term.holds():
                return self._take_on(term, one)
            self._spared.setdefault(one.queue.name, []).append(one)
        return False

    def _second_rule(self) -> bool:
        while (name := self._greediest(self._spared)) is not None:
            one = self._spared.pop(name)[0]
            mine, theirs = self._rivals(one.queue)
            term = _Term(mine, share(theirs), may_be_equal=False)
            if term.holds() and self._take_on(term, one):
                return True
        return False

    def _take_on(self, term: _Term, one: PreemptionCandidate) -> bool:
        self._terms.append(term)
        return self._take(one, IN_COHORT_FAIR_SHARING)

    def _take(self, one: PreemptionCandidate, reason: str) -> bool:
        one.queue.node.remove(one.record.usage)
        self._taken.append((one, reason))
        return self._fits()

    def _fits(self) -> bool:
        self._node.remove(self._want.usage)
        found = fits(self._want, True)
        self._node.add(self._want.usage)
        return found

    def _spare(self) -> None:
        reasons = {one.record.uid: reason for one, reason in self._taken}
        kept = spare(self._want, [one for one, _ in self._taken], self._is_enough)
        self._taken = [(one, reasons[one.record.uid]) for one in kept]

    def _is_enough(self) -> bool:
        """There is room, and none of the own queue is spared at the cost of others: they would take it back."""
        return self._fits() and all(term.holds() for term in self._terms)

    def _greediest(self, lines: dict[str, list[PreemptionCandidate]]) -> str | None:
        """The queue to take from next: from the root down always the child with the highest share."""
        if not lines:
            return None
        if self._node.parent is None:
            return next(iter(lines))
        found = self._descend(self._node.root, lines)
        if found is None:
            for name in [name for name in lines if name != self._want.queue.name]:
                del lines[name]
            return next(iter(lines), None)
        return found

    def _descend(self, node: QuotaNode, lines: dict[str, list[PreemptionCandidate]]) -> str | None:
        if node.is_queue:
            return node.name if node.name in lines else None
        # Among equals a cohort is before a queue. A node inside its quota gives nothing back, except to itself.
        ranked = [(share(child), not child.is_queue, child) for child in node.children]
        ranked.sort(key=lambda one: one[2].name)
        for found_share, _, child in sorted(ranked, key=lambda one: one[:2], reverse=True):
            mine = child is self._node or self._node in child.leaves
            if found_share == NO_SHARE and not mine:
                continue
            found = self._descend(child, lines)
            if found is not None:
                return found
        return None

    def _rivals(self, queue: QueueState) -> tuple[QuotaNode, QuotaNode]:
        """The children of the lowest common ancestor on either side."""
        own = [self._node, *self._node.ancestors()]
        node = queue.node
        while node.parent is not None and node.parent not in own:
            node = node.parent
        assert node.parent is not None
        return own[own.index(node.parent) - 1], node


class _Term(NamedTuple):
    """On which something was taken from others: the preemptor's side must not be above the other one."""

    mine: QuotaNode
    theirs: Share
    may_be_equal: bool

    def holds(self) -> bool:
        own = share(self.mine)
        return own <= self.theirs if self.may_be_equal else own < self.theirs


def _share_without(node: QuotaNode, one: PreemptionCandidate) -> Share:
    one.queue.node.remove(one.record.usage)
    found = share(node)
    one.queue.node.add(one.record.usage)
    return found
