"""Nomination of a head: which flavors, at which size, and which workloads would have to go for it.

A workload for which victims were chosen is nominated at the size, and if need be from the flavors, for which they were
chosen: else the victims would have gone for nothing, and it would ask for them again. An `AdmissionEntry` is the
outcome that takes part in the rest of the admission cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pilotage.jobs import conditions as c
from pilotage.jobs.assignment import Assigner, Assignment, Mode
from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.ordering import OrderKey
from pilotage.jobs.pending import NEVER, WakeCondition
from pilotage.jobs.preemption import ClassicalPreemption, PreemptionRequest, Victim, removed
from pilotage.jobs.quota import Amounts, FlavorResource
from pilotage.jobs.quota_tree import QuotaTree
from pilotage.jobs.record import AFRESH, Chosen, WorkloadRecord


class Nominator:
    def __init__(self, tree: QuotaTree, assigner: Assigner, preemption: ClassicalPreemption) -> None:
        self._tree = tree
        self._assigner = assigner
        self._by_quota = assigner.by_quota_alone()
        self._preemption = preemption

    def nominate(self, record: WorkloadRecord, queue: QueueState) -> tuple[Assignment, list[Victim]]:
        """The best assignment under the present usage, and the victims that it needs."""
        if record.attempt.chosen is not None:
            # At its full size it might borrow, and those it made way for would go before it again.
            if (found := self._as_chosen(self._assigner, record, queue, record.attempt.chosen)) is not None:
                return found, []
            if (waiting := self._still_waiting(record, queue, record.attempt.chosen)) is not None:
                return waiting
        counts = [record.count_of(index) for index in range(len(record.shape.pod_sets))]
        assignment = self._assigner.assign(record, queue, counts)
        victims = self._victims(record, queue, assignment)
        if assignment.mode is Mode.FIT or victims or not record.shape.can_shrink:
            return assignment, victims
        return self._shrunk(record, queue, counts) or (assignment, victims)

    def _as_chosen(
        self, assigner: Assigner, record: WorkloadRecord, queue: QueueState, chosen: Chosen
    ) -> Assignment | None:
        """What fits at the size for which victims were chosen: with the first flavors if they do, else with those."""
        assignment = assigner.assign(record, queue, chosen.counts)
        if assignment.mode is not Mode.FIT and chosen.resumption is not AFRESH:
            assignment = assigner.assign(record, queue, chosen.counts, chosen.resumption)
        return assignment if assignment.mode is Mode.FIT else None

    def _still_waiting(
        self, record: WorkloadRecord, queue: QueueState, chosen: Chosen
    ) -> tuple[Assignment, list[Victim]] | None:
        """Victims that are on their way out count as gone, whatever their queue uses by now: if that is enough, no
        other has to go, and the preemptor does not lose its place. Their room on nodes is free when they are gone."""
        reserving = [(other, one) for other in self._tree.tree_of(queue) for one in other.reserving.values()]
        waits_for = record.attempt.waits_for
        leaving = [(other, one) for other, one in reserving if one.uid in waits_for and one.is_evicted]
        if not leaving:
            return None
        with removed(leaving):
            assignment = self._as_chosen(self._by_quota, record, queue, chosen)
        if assignment is None:
            # Others may have got what they left, because victims of others are going to make room for all.
            evicted = [(other, one) for other, one in reserving if one.is_evicted]
            if len(evicted) > len(leaving):
                leaving = evicted
                with removed(leaving):
                    assignment = self._as_chosen(self._by_quota, record, queue, chosen)
        if assignment is None:
            return None
        assignment.mode = Mode.PREEMPT
        return assignment, [Victim(one, other, "") for other, one in leaving]

    def _victims(self, record: WorkloadRecord, queue: QueueState, assignment: Assignment) -> list[Victim]:
        if assignment.mode in (Mode.FIT, Mode.NO_FIT):
            return []
        return self._preemption.victims(
            PreemptionRequest(record, queue, frozenset(assignment.preempting), assignment.usage)
        )

    def _shrunk(
        self, record: WorkloadRecord, queue: QueueState, counts: Sequence[int]
    ) -> tuple[Assignment, list[Victim]] | None:
        """The largest number of pods that fits or finds victims, between minCount and count."""
        needs = record.shape.pod_sets
        index = next(i for i, need in enumerate(needs) if need.min_count is not None and need.min_count < need.count)
        least = min(needs[index].min_count or 0, counts[index])
        best = None
        low, high = 1, counts[index] - least
        while low <= high:
            cut = (low + high) // 2
            smaller = [*counts[:index], counts[index] - cut, *counts[index + 1 :]]
            assignment = self._assigner.assign(record, queue, smaller)
            victims = self._victims(record, queue, assignment)
            if assignment.mode is Mode.FIT or victims:
                best, high = (assignment, victims), cut - 1
            else:
                low = cut + 1
        return best


@dataclass(slots=True)
class AdmissionEntry:
    """A head with the outcome of its nomination."""

    record: WorkloadRecord
    queue: QueueState
    rank: OrderKey
    assignment: Assignment
    victims: list[Victim] = field(default_factory=list)

    @property
    def usage(self) -> Amounts:
        return self.assignment.usage

    @property
    def flavors(self) -> frozenset[str]:
        """The flavors of its pod sets."""
        return frozenset(name for one in self.assignment.pod_sets for name in one.flavors.values())

    @property
    def has_victims(self) -> bool:
        return bool(self.record.attempt.waits_for)

    def standing(self) -> tuple[bool, bool, int, OrderKey]:
        """Inside the own quota first, then what borrows least far away, then priority and age.

        Of those that borrow, one for whom others had to go is before the rest: or its victims, who may borrow from
        nearer, take their place back, are preempted again, and so on without end.
        """
        borrows = self.assignment.level > 0
        return borrows, borrows and not self.has_victims, self.assignment.level, self.rank

    @property
    def leaving(self) -> Sequence[Amounts]:
        held = (self.queue.reserving.get(uid) for uid in sorted(self.record.attempt.waits_for))
        return [other.usage for other in held if other is not None]


def owed(entry: AdmissionEntry) -> dict[FlavorResource, int]:
    """What is kept free for a head that preemption cannot help: its nominal quota, or what it may borrow."""
    node, found = entry.queue.node, {}
    for pair, amount in entry.usage.items():
        quota, used = node.quota(pair), node.used(pair)
        if entry.assignment.level == 0:
            found[pair] = max(0, min(amount, quota.nominal - used))
        elif quota.borrowing_limit is None:
            found[pair] = amount
        else:
            found[pair] = max(0, min(amount, quota.nominal + quota.borrowing_limit - used))
    return found


def wake_for(entry: AdmissionEntry) -> WakeCondition:
    """What must be free before it is worth another look."""
    assignment = entry.assignment
    if assignment.reason == c.NO_MATCHING_FLAVOR and not assignment.resumed:
        return NEVER
    nodes = tuple(one.nodes for one in assignment.obstacles if one.nodes is not None)
    if assignment.resumed or len(assignment.pod_sets) > 1 or entry.record.shape.can_shrink:
        return WakeCondition(any_release=True, nodes=nodes)  # how much it would need, and where, is not known
    if assignment.reason not in (c.WAITING_FOR_QUOTA, c.WAITING_FOR_NODES):
        return NEVER
    lacks: dict[FlavorResource, int] = {}
    for obstacle in assignment.obstacles:
        if obstacle.code == c.WAITING_FOR_QUOTA:
            lacks[obstacle.flavor, obstacle.resource] = obstacle.need
    return WakeCondition(tuple(lacks.items()), nodes=nodes)
