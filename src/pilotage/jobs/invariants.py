"""What is always true between two calls of the engine."""

from __future__ import annotations

from pilotage.jobs import conditions as c
from pilotage.jobs.quota_tree import QuotaTree
from pilotage.jobs.record import WorkloadPlace
from pilotage.jobs.workloads import Workloads


def check_invariants(workloads: Workloads) -> None:
    _check_places(workloads)
    _check_usage(workloads.tree)
    for queue in workloads.tree.queues.values():
        workloads.queues.pending(queue).check()
    unfinished = (one for one in workloads.records.values() if one.place is not WorkloadPlace.FINISHED)
    workloads.pod_rules.check(unfinished)


def _check_places(workloads: Workloads) -> None:
    """Every workload is in exactly one place, and the places know only workloads that there are."""
    homes: dict[str, list[str]] = {}
    for queue in workloads.tree.queues.values():
        for record in workloads.queues.pending(queue).records():
            homes.setdefault(record.key, []).append(f"pending in {queue.name}")
            assert record.cluster_queue == queue.name
        for record in queue.reserving.values():
            homes.setdefault(record.key, []).append(f"quota reserved in {queue.name}")
            assert record.place is WorkloadPlace.QUOTA_RESERVED and record.cluster_queue == queue.name
    assert homes.keys() <= workloads.records.keys(), "only workloads that exist are kept"
    for key, record in workloads.records.items():
        expected = int(record.place in (WorkloadPlace.QUEUED, WorkloadPlace.BACKOFF, WorkloadPlace.QUOTA_RESERVED))
        assert len(homes.get(key, ())) == expected, f"{key} is {record.place.value} and {homes.get(key)}"
        local = workloads.queues.local_queues.get(record.local_queue_key)
        is_member = local is not None and record.uid in local.members
        assert is_member is not (record.place is WorkloadPlace.FINISHED), "who is finished is in no queue"
        record.check()
        if record.place is WorkloadPlace.QUOTA_RESERVED:
            assert record.has_reservation and record.admission is not None and record.is_active
        else:
            assert not record.usage and record.uid not in workloads.unready
        if record.place in (WorkloadPlace.QUEUED, WorkloadPlace.BACKOFF):
            assert record.is_active and not record.has_reservation and not record.conditions.is_true(c.FINISHED)
        if record.place is WorkloadPlace.QUEUED:
            assert record.is_eligible(workloads.timers.now())


def _check_usage(tree: QuotaTree) -> None:
    """Usage is the sum of what is reserved, in every node of every tree."""
    for queue in tree.queues.values():
        total: dict[tuple[str, str], int] = {}
        for record in queue.reserving.values():
            for pair, amount in record.usage.items():
                total[pair] = total.get(pair, 0) + amount
        assert {pair: n for pair, n in queue.node.usage.items() if n} == {p: n for p, n in total.items() if n}
        assert queue.admitted == sum(record.is_admitted for record in queue.reserving.values())
    for queue in tree.queues.values():
        for node in queue.node.ancestors():
            for pair in node.usage:
                parts = (child.account(pair).passed_up for child in node.children)
                assert node.used(pair) == sum(parts), f"usage of cohort {node.name} is that of its children"
