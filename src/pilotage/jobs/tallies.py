"""Sums over many workloads that only metrics ask for; made when they are asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pilotage.jobs import conditions as c
from pilotage.jobs.fair_sharing import weighted_share
from pilotage.jobs.queues import Pending
from pilotage.jobs.record import WorkloadPlace, WorkloadRecord
from pilotage.jobs.reports import UnadmittedCount
from pilotage.jobs.shapes import PODS
from pilotage.jobs.workloads import Workloads


class QueueTallies:
    def __init__(self, workloads: Workloads) -> None:
        self._tree = workloads.tree
        self._queues = workloads.queues

    def unadmitted(self) -> list[UnadmittedCount]:
        """Those that are not finished and not admitted, by queue and reason."""
        counts: Counter[tuple[str, str, str, str, str]] = Counter()
        for local in self._queues.local_queues.values():
            for record in local.members.values():
                if not record.is_admitted:
                    reason, cause = _why(record)
                    counts[record.cluster_queue, record.namespace, record.queue_name, reason, cause] += 1
        return [UnadmittedCount(*key, count) for key, count in sorted(counts.items())]

    def pending_amounts(self) -> Mapping[tuple[str, str, str], int]:
        """(ClusterQueue, flavor, resource) -> what pending workloads ask for.

        The flavor is "" where the queue has several for the resource: which one it will be is not decided yet.
        """
        found: Counter[tuple[str, str, str]] = Counter()
        for queue in self._tree.queues.values():
            flavors = {resource: _only(names) for covered, names in queue.groups for resource in covered}
            for resource, amount in _asked(self._queues.pending(queue)).items():
                if resource in flavors:
                    found[queue.name, flavors[resource], resource] += amount
        return found

    def cohort_shares(self) -> Mapping[str, int]:
        """How far each cohort with ClusterQueues below it is above its share."""
        nodes = {node.name: node for queue in self._tree.queues.values() for node in queue.node.ancestors()}
        return {name: weighted_share(node) for name, node in sorted(nodes.items()) if not node.is_queue}


def _why(record: WorkloadRecord) -> tuple[str, str]:
    if record.place is WorkloadPlace.QUOTA_RESERVED:
        return c.UNSATISFIED_CHECKS, ""
    evicted = record.conditions.get(c.EVICTED)
    if record.place is WorkloadPlace.INACTIVE:
        return c.DEACTIVATED, evicted.reason.partition("DueTo")[2] if evicted is not None else ""
    return record.pending_reason[0], ""


def _only(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else ""


def _asked(pending: Pending) -> Counter[str]:
    """Workloads that cannot be told apart ask for the same."""
    asked: Counter[str] = Counter()
    for record, count in pending.kinds():
        for index, need in enumerate(record.shape.pod_sets):
            pods = record.count_of(index) * count
            asked[PODS] += pods
            for resource, amount in need.per_pod.items():
                asked[resource] += amount * pods
    return asked
