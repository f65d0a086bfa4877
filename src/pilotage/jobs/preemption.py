"""Preemption: the workloads to evict so that another gets its quota.

Candidates are workloads with quota that use what is lacking: of the own ClusterQueue by `withinClusterQueue`, of others
in the tree by `reclaimWithinCohort`, and only where a node on the way is above its own quota. A foreign candidate is

    ENTITLED      the request fits into quota that the preemptor's side owns: it may always be taken
    BORROWING     borrowWithinCohort allows it, also if the preemptor borrows
    NOT_BORROWING it may be taken only if the preemptor ends inside its nominal quota

Candidates are removed one by one until the workload fits; then those that are not needed after all are spared.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from pilotage.jobs.assignment import Mode
from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.ordering import QueueOrder
from pilotage.jobs.quota import Amounts, FlavorResource, QuotaNode
from pilotage.jobs.quota_tree import QuotaTree
from pilotage.jobs.quota_upper_bound import QuotaUpperBound
from pilotage.jobs.record import WorkloadRecord

IN_CLUSTER_QUEUE = "InClusterQueue"
IN_COHORT_RECLAMATION = "InCohortReclamation"
IN_COHORT_RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"
IN_COHORT_FAIR_SHARING = "InCohortFairSharing"


class CandidateKind(IntEnum):
    """In the order in which candidates are taken; the two foreign ones that are not entitled are one class."""

    ENTITLED = 0
    BORROWING = 1
    NOT_BORROWING = 2
    OWN = 3


_REASONS = {
    CandidateKind.OWN: IN_CLUSTER_QUEUE,
    CandidateKind.ENTITLED: IN_COHORT_RECLAMATION,
    CandidateKind.NOT_BORROWING: IN_COHORT_RECLAMATION,
    CandidateKind.BORROWING: IN_COHORT_RECLAIM_WHILE_BORROWING,
}


class Victim(NamedTuple):
    record: WorkloadRecord
    queue: QueueState
    reason: str


class PreemptionCandidate(NamedTuple):
    record: WorkloadRecord
    queue: QueueState
    kind: CandidateKind
    ancestor: QuotaNode | None = None
    """The lowest cohort that holds both queues; None for the own queue."""


class PreemptionRequest(NamedTuple):
    """A workload that needs room, and where."""

    record: WorkloadRecord
    queue: QueueState
    pairs: frozenset[FlavorResource]
    """What is lacking."""
    usage: Amounts
    """What must fit."""
    gone: Container[str] = ()
    """UIDs of workloads whose usage is taken off already: they cannot make room twice."""


class ClassicalPreemption:
    """Victims by priority and reclaim; also answers whether preemption could make room at all."""

    def __init__(self, tree: QuotaTree, order: QueueOrder, upper_bound: QuotaUpperBound) -> None:
        self._tree = tree
        self._order = order
        self._upper_bound = upper_bound

    def possibility(
        self, record: WorkloadRecord, queue: QueueState, pair: FlavorResource, amount: int
    ) -> tuple[Mode, int]:
        found: list[Victim] = []
        if amount <= self._upper_bound.within(queue, pair, record.priority):
            found = self.victims(PreemptionRequest(record, queue, frozenset([pair]), {pair: amount}))
        if not found:
            return Mode.NO_CANDIDATES, queue.node.borrowing_level(pair, amount)[0]
        with removed([(victim.queue, victim.record) for victim in found]):
            level, _ = queue.node.borrowing_level(pair, amount)
        own = any(victim.queue is queue for victim in found)
        return (Mode.PREEMPT if own else Mode.RECLAIM), level

    def victims(self, want: PreemptionRequest) -> list[Victim]:
        """As few as possible; none if that would not be enough."""
        if not want.queue.can_preempt:
            return []
        candidates = sorted(self._candidates(want), key=candidate_order)
        for may_borrow in _attempts(want, candidates):
            found = _take(want, candidates, may_borrow)
            if found:
                return found
        return []

    # --- candidates ---------------------------------------------------------------------------------------------------

    def _candidates(self, want: PreemptionRequest) -> Iterator[PreemptionCandidate]:
        for record in self.own_candidates(want):
            yield PreemptionCandidate(record, want.queue, CandidateKind.OWN)
        if want.queue.obj.spec.preemption.reclaim_within_cohort == "Never":
            return
        node = want.queue.node
        below: QuotaNode = node
        fits, rest = _fits_in_quota(node, want.usage)
        for ancestor in node.ancestors():
            for queue in self.borrowers(ancestor, below, want.pairs):
                for record in self.reclaimable(want, queue):
                    yield PreemptionCandidate(record, queue, _kind(want, record, fits), ancestor)
            fits_here, rest = _fits_in_quota(ancestor, rest)
            fits = fits or fits_here
            below = ancestor

    def own_candidates(self, want: PreemptionRequest) -> Iterator[WorkloadRecord]:
        policy = want.queue.obj.spec.preemption.within_cluster_queue
        if policy == "Never":
            return
        record, since = want.record, self._order.timestamp(want.record)
        for other in want.queue.reserving.values():
            if other.priority > record.priority or not _uses(other, want):
                continue
            is_lower = other.priority < record.priority
            if is_lower or (policy == "LowerOrNewerEqualPriority" and self._order.timestamp(other) > since):
                yield other

    def reclaimable(self, want: PreemptionRequest, queue: QueueState) -> Iterator[WorkloadRecord]:
        any_priority = want.queue.obj.spec.preemption.reclaim_within_cohort == "Any"
        for other in queue.reserving.values():
            if (any_priority or other.priority < want.record.priority) and _uses(other, want):
                yield other

    def borrowers(self, top: QuotaNode, skip: QuotaNode, pairs: frozenset[FlavorResource]) -> Iterator[QueueState]:
        """ClusterQueues below `top` but not below `skip` that are above their quota, as is every cohort between."""
        for child in top.children:
            if child is skip or child.is_within_quota(pairs):
                continue
            if child.is_queue:
                yield self._tree.queues[child.name]
            else:
                yield from self.borrowers(child, skip, pairs)


def candidate_order(candidate: PreemptionCandidate) -> tuple[bool, int, int, int, str]:
    """Who is on the way out already; entitled, other foreign, own; then lowest priority, latest reservation."""
    record, kind = candidate.record, candidate.kind
    foreign = CandidateKind.BORROWING if kind is CandidateKind.NOT_BORROWING else kind
    return not record.is_evicted, foreign, record.priority, -record.reserved_at, record.uid


def _uses(record: WorkloadRecord, want: PreemptionRequest) -> bool:
    """Whether it holds something of what is lacking."""
    return not want.pairs.isdisjoint(record.usage) and record.uid not in want.gone


def _kind(want: PreemptionRequest, candidate: WorkloadRecord, is_entitled: bool) -> CandidateKind:
    if is_entitled:
        return CandidateKind.ENTITLED
    borrow = want.queue.obj.spec.preemption.borrow_within_cohort
    if borrow is None or borrow.policy == "Never" or candidate.priority >= want.record.priority:
        return CandidateKind.NOT_BORROWING
    threshold = borrow.max_priority_threshold
    return (
        CandidateKind.BORROWING if threshold is None or candidate.priority <= threshold else CandidateKind.NOT_BORROWING
    )


def _fits_in_quota(node: QuotaNode, usage: Amounts) -> tuple[bool, dict[FlavorResource, int]]:
    """Whether the quota of the subtree covers it, and what the parent would have to give."""
    fits = not any(node.borrows_with(pair, amount) for pair, amount in usage.items())
    return fits, {pair: max(0, amount - node.account(pair).local_available) for pair, amount in usage.items()}


def _attempts(want: PreemptionRequest, candidates: Sequence[PreemptionCandidate]) -> tuple[bool, ...]:
    """In which order to try: the preemptor may borrow (True), or must end inside its nominal quota (False)."""
    borrow = want.queue.obj.spec.preemption.borrow_within_cohort
    forbidden = borrow is None or borrow.policy == "Never"
    node = want.queue.node
    is_below_nominal = all(node.used(pair) < node.quota(pair).nominal for pair in want.pairs)
    if all(one.kind is CandidateKind.OWN for one in candidates) or (forbidden and not is_below_nominal):
        return (True,)
    if forbidden and not any(one.kind is CandidateKind.ENTITLED for one in candidates):
        return False, True
    return True, False


def _take(want: PreemptionRequest, candidates: Sequence[PreemptionCandidate], may_borrow: bool) -> list[Victim]:
    taken: list[PreemptionCandidate] = []
    for one in candidates:
        if not _is_valid(want, one, may_borrow):
            continue
        one.queue.node.remove(one.record.usage)
        taken.append(one)
        if fits(want, may_borrow):
            break
    else:
        _put_back(taken)
        return []
    taken = spare(want, taken, lambda: fits(want, may_borrow))
    _put_back(taken)
    return [Victim(one.record, one.queue, _REASONS[one.kind]) for one in taken]


def spare(
    want: PreemptionRequest, taken: list[PreemptionCandidate], enough: Callable[[], bool]
) -> list[PreemptionCandidate]:
    """Put back, from the second last to the first, those that leave room enough; the others stay removed."""
    needed = taken[-1:]
    for one in reversed(taken[:-1]):
        one.queue.node.add(one.record.usage)
        if not enough():
            one.queue.node.remove(one.record.usage)
            needed.append(one)
    return needed[::-1]


def _is_valid(want: PreemptionRequest, candidate: PreemptionCandidate, may_borrow: bool) -> bool:
    if candidate.ancestor is None:
        return True
    if may_borrow and candidate.kind is CandidateKind.NOT_BORROWING:
        return False
    node: QuotaNode | None = candidate.queue.node
    while node is not None and node is not candidate.ancestor:
        if node.is_within_quota(want.pairs):
            return False
        node = node.parent
    return True


def fits(want: PreemptionRequest, may_borrow: bool) -> bool:
    node = want.queue.node
    if not may_borrow and any(node.borrows_with(pair, amount) for pair, amount in want.usage.items()):
        return False
    return node.fits(want.usage)


def _put_back(taken: Sequence[PreemptionCandidate]) -> None:
    for one in taken:
        one.queue.node.add(one.record.usage)


class removed:
    """Within the block the usage of these workloads does not count."""

    def __init__(self, records: Sequence[tuple[QueueState, WorkloadRecord]]) -> None:
        self._records = records

    def __enter__(self) -> None:
        for queue, record in self._records:
            queue.node.remove(record.usage)

    def __exit__(self, *_: object) -> None:
        for queue, record in self._records:
            queue.node.add(record.usage)
