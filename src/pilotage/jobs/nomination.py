"""How a head is judged: which flavors, at which size, and who would have to go for it.

A workload for whom victims were chosen is judged at the size, and if need be from the flavors, for which they were
chosen: else the victims would have gone for nothing, and it would ask for them again.
"""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.jobs.assignment import Assigner, Assignment, Mode
from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.preemption import ClassicalPreemption, PreemptionRequest, Victim, removed
from pilotage.jobs.record import AFRESH, Chosen, WorkloadRecord
from pilotage.jobs.world import World


class Nominator:
    def __init__(self, world: World, assigner: Assigner, preemption: ClassicalPreemption) -> None:
        self._world = world
        self._assigner = assigner
        self._preemption = preemption

    def judge(self, record: WorkloadRecord, queue: QueueState) -> tuple[Assignment, list[Victim]]:
        """The best assignment under the present usage, and the victims that it needs."""
        if record.chosen is not None:
            # At its full size it might borrow, and those it made way for would go before it again.
            if (found := self._as_chosen(record, queue, record.chosen)) is not None:
                return found, []
            if (waiting := self._still_waiting(record, queue, record.chosen)) is not None:
                return waiting
        counts = [record.count_of(index) for index in range(len(record.shape.pod_sets))]
        assignment = self._assigner.assign(record, queue, counts)
        victims = self._victims(record, queue, assignment)
        if assignment.mode is Mode.FIT or victims or not record.shape.can_shrink:
            return assignment, victims
        return self._shrunk(record, queue, counts) or (assignment, victims)

    def _as_chosen(self, record: WorkloadRecord, queue: QueueState, chosen: Chosen) -> Assignment | None:
        """What fits at the size for which victims were chosen: with the first flavors if they do, else with those."""
        assignment = self._assigner.assign(record, queue, chosen.counts)
        if assignment.mode is not Mode.FIT and chosen.resumption is not AFRESH:
            present, record.resumption = record.resumption, chosen.resumption
            assignment = self._assigner.assign(record, queue, chosen.counts)
            record.resumption = present
        return assignment if assignment.mode is Mode.FIT else None

    def _still_waiting(
        self, record: WorkloadRecord, queue: QueueState, chosen: Chosen
    ) -> tuple[Assignment, list[Victim]] | None:
        """Victims that are on their way out count as gone, whatever their queue uses by now: if that is enough, nobody
        else has to go, and the preemptor does not lose its place."""
        holders = [(other, holder) for other in self._world.tree_of(queue) for holder in other.reserving.values()]
        leaving = [(other, holder) for other, holder in holders if holder.uid in record.waits_for and holder.is_evicted]
        if not leaving:
            return None
        with removed(leaving):
            assignment = self._as_chosen(record, queue, chosen)
        if assignment is None:
            # Others may have got what they left, because somebody else's victims are going to make room for all.
            evicted = [(other, holder) for other, holder in holders if holder.is_evicted]
            if len(evicted) > len(leaving):
                leaving = evicted
                with removed(leaving):
                    assignment = self._as_chosen(record, queue, chosen)
        if assignment is None:
            return None
        assignment.mode = Mode.PREEMPT
        return assignment, [Victim(holder, other, "") for other, holder in leaving]

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
