"""A head of a queue in a scheduling cycle: how it was judged, what it is owed, what may help it if it is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pilotage.jobs import conditions as c
from pilotage.jobs.assignment import Assignment
from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.ordering import OrderKey
from pilotage.jobs.pending import NEVER, WakeCondition
from pilotage.jobs.preemption import Victim
from pilotage.jobs.quota import Amounts, FlavorResource
from pilotage.jobs.record import WorkloadRecord


@dataclass(slots=True)
class AdmissionEntry:
    """A head with the outcome of judging it."""

    record: WorkloadRecord
    queue: QueueState
    rank: OrderKey
    assignment: Assignment
    victims: list[Victim] = field(default_factory=list)

    @property
    def usage(self) -> Amounts:
        return self.assignment.usage

    @property
    def has_victims(self) -> bool:
        return bool(self.record.waits_for)

    def standing(self) -> tuple[bool, bool, int, OrderKey]:
        """Inside the own quota first, then what borrows least far away, then priority and age.

        Of those that borrow, one for whom others had to go is before the rest: or its victims, who may borrow from
        nearer, take their place back, are preempted again, and so on without end.
        """
        borrows = self.assignment.level > 0
        return borrows, borrows and not self.has_victims, self.assignment.level, self.rank

    @property
    def leaving(self) -> Sequence[Amounts]:
        held = (self.queue.reserving.get(uid) for uid in sorted(self.record.waits_for))
        return [other.usage for other in held if other is not None]


def owed(entry: AdmissionEntry) -> dict[FlavorResource, int]:
    """What is kept free for a head that nobody makes room for: up to its nominal quota, or up to what it may borrow."""
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
    if assignment.resumed or len(assignment.pod_sets) > 1 or entry.record.shape.can_shrink:
        return WakeCondition(any_release=True)  # how much it would need, and where, is not known
    if assignment.reason != c.WAITING_FOR_QUOTA:
        return NEVER
    lacks: dict[FlavorResource, int] = {}
    for obstacle in assignment.obstacles:
        if obstacle.code == c.WAITING_FOR_QUOTA:
            lacks[obstacle.flavor, obstacle.resource] = obstacle.need
    return WakeCondition(tuple(lacks.items()))
