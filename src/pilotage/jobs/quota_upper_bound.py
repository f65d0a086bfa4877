"""The most that a workload could get of a flavor: what is free, and what it might preempt.

An upper bound that costs a few additions. What asks for more need not be nominated: neither woken after a release,
nor given a search for victims. Good for one look at all queues: what was added up is kept until `forget`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.quota import FlavorResource
from pilotage.jobs.quota_tree import QuotaTree

_UNLIMITED: Final = 2**62
"""Above all priorities, and more than any workload can hold."""


@dataclass(slots=True)
class _Lent:
    """What could be taken back from one queue that uses more than its own."""

    by_priority: Mapping[int, int]
    """What workloads of each priority hold."""
    most: int
    """Not more than this: nothing is preempted any more once the queue is inside its quota."""

    def below(self, priority: int) -> int:
        return min(_below(self.by_priority, priority), self.most)


class QuotaUpperBound:
    def __init__(self, tree: QuotaTree, *, is_fair: bool) -> None:
        """`is_fair`: with fair sharing."""
        self._tree = tree
        self._is_fair = is_fair
        self._lent: dict[tuple[int, FlavorResource], list[_Lent]] = {}
        self._totals: dict[tuple[int, FlavorResource, int], int] = {}
        """Of what was lent, by tree, pair and priority."""

    def forget(self) -> None:
        """Usage has changed."""
        self._lent.clear()
        self._totals.clear()

    def within(self, queue: QueueState, pair: FlavorResource, priority: int) -> int:
        """What a workload of this priority could get."""
        policy = queue.obj.spec.preemption
        total = queue.node.available(pair)
        if policy.within_cluster_queue != "Never":
            takes_equal = policy.within_cluster_queue == "LowerOrNewerEqualPriority"
            total += _below(queue.by_priority.get(pair, {}), priority + takes_equal)
        if policy.reclaim_within_cohort != "Never" and queue.node.parent is not None:
            limit = _UNLIMITED if policy.reclaim_within_cohort == "Any" else priority
            total += self._lent_below(queue, pair, limit)
        return total

    def _lent_below(self, queue: QueueState, pair: FlavorResource, priority: int) -> int:
        root = id(queue.node.root)
        total = self._totals.get((root, pair, priority))
        if total is None:
            lent = self._lent_in_tree(queue, pair, root)
            total = self._totals[root, pair, priority] = sum(one.below(priority) for one in lent)
        return total

    def _lent_in_tree(self, queue: QueueState, pair: FlavorResource, root: int) -> list[_Lent]:
        place = (root, pair)
        found = self._lent.get(place)
        if found is None:
            tree = (other for other in self._tree.tree_of(queue) if other.node.borrows)
            found = self._lent[place] = [_Lent(one.by_priority.get(pair, {}), self._most(one, pair)) for one in tree]
        return found

    def _most(self, queue: QueueState, pair: FlavorResource) -> int:
        borrowed = queue.node.borrowed(pair)
        if self._is_fair or borrowed != queue.node.borrows:
            return _UNLIMITED  # it may stay above its quota by another resource
        # The last one who goes may take it far below its quota.
        return borrowed + queue.largest(pair)


def _below(held: Mapping[int, int], priority: int) -> int:
    total = 0
    for other, amount in held.items():
        if other < priority:
            total += amount
    return total
