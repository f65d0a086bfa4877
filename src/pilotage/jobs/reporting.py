"""Answers to what people ask: made from the engine's state when asked, never kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from pilotage.clock import rfc3339
from pilotage.escaping import visible
from pilotage.jobs import conditions as c
from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.fair_sharing import weighted_share
from pilotage.jobs.queue_lines import queue_place
from pilotage.jobs.queues import LocalQueueState, Pending
from pilotage.jobs.quota import Amounts, FlavorResource, QuotaNode
from pilotage.jobs.record import READY, CheckState, WorkloadPlace, WorkloadRecord
from pilotage.jobs.rejections import Obstacle, shown
from pilotage.jobs.reports import (
    CheckReport,
    ClusterQueueReport,
    CohortQuotaReport,
    CohortReport,
    LocalQueueReport,
    QuotaReport,
    Shortage,
    UnadmittedCount,
    WorkloadReport,
    WorkloadState,
)
from pilotage.jobs.shapes import PODS
from pilotage.jobs.status import state_of
from pilotage.jobs.workloads import Workloads
from pilotage.model.kueue import FairSharingStatus, FlavorUsage, QueueStatus, ResourceUsage
from pilotage.model.meta import TimedCondition


class Reporting:
    def __init__(self, workloads: Workloads) -> None:
        self._workloads = workloads
        self._tree = workloads.tree
        self._queues = workloads.queues

    # --- ClusterQueues ------------------------------------------------------------------------------------------------

    def cluster_queues(self) -> list[ClusterQueueReport]:
        return [self._cluster_queue(queue) for _, queue in sorted(self._tree.queues.items())]

    def _cluster_queue(self, queue: QueueState) -> ClusterQueueReport:
        pending, admitted = self._queues.pending(queue), _admitted_usage(queue)
        return ClusterQueueReport(
            name=queue.name,
            cohort=queue.obj.spec.cohort_name,
            strategy=queue.obj.spec.queueing_strategy,
            is_active=queue.is_active,
            reason=queue.reason,
            message=queue.message + _remarks(queue),
            pending=len(pending),
            inadmissible=pending.inadmissible_count + len(pending.backoff),
            reserving=len(queue.reserving),
            admitted=queue.admitted,
            weighted_share=weighted_share(queue.node),
            quotas=tuple(_quota(queue, pair, admitted) for pair in queue.node.quotas),
            preemption_skips=self._queues.preemption_skips(queue),
        )

    def cohorts(self) -> list[CohortReport]:
        """Cohorts with ClusterQueues below them, by name."""
        nodes = {node.name: node for queue in self._tree.queues.values() for node in queue.node.ancestors()}
        return [_cohort(node) for _, node in sorted(nodes.items())]

    def cluster_queue_status(self, name: str) -> QueueStatus:
        queue = self._tree.queues[name]
        fair = self._workloads.configuration.fair_sharing is not None
        return QueueStatus(
            conditions=self._active(queue.obj.status, queue.is_active, queue.reason, queue.message + _remarks(queue)),
            pending_workloads=len(self._queues.pending(queue)),
            reserving_workloads=len(queue.reserving),
            admitted_workloads=queue.admitted,
            flavors_reservation=_flavor_usage(queue, queue.node.usage),
            flavors_usage=_flavor_usage(queue, _admitted_usage(queue)),
            fair_sharing=FairSharingStatus(weighted_share(queue.node)) if fair else None,
        )

    def _active(self, old: QueueStatus, is_active: bool, reason: str, message: str) -> tuple[TimedCondition, ...]:
        before = next((one for one in old.conditions if one.type == "Active"), None)
        status = "True" if is_active else "False"
        same = before is not None and before.status == status
        since = before.last_transition_time if same and before is not None else rfc3339(self._workloads.timers.now())
        return (TimedCondition("Active", status, reason, visible(message), last_transition_time=since),)

    # --- LocalQueues --------------------------------------------------------------------------------------------------

    def local_queues(self) -> list[LocalQueueReport]:
        known = sorted(self._queues.local_queues.items())
        return [self._local_queue(local) for _, local in known if local.obj is not None]

    def _local_queue(self, local: LocalQueueState) -> LocalQueueReport:
        assert local.obj is not None
        reason, message = self._local_reason(local)
        reserving = [record for record in local.members.values() if record.place is WorkloadPlace.QUOTA_RESERVED]
        admitted = [record for record in reserving if record.is_admitted]
        usage = _summed(reserving)
        waiting = [record for record in local.members.values() if record.is_waiting]
        return LocalQueueReport(
            namespace=local.obj.namespace,
            name=local.obj.name,
            cluster_queue=local.obj.spec.cluster_queue,
            is_active=reason == "Ready",
            reason=reason,
            message=message,
            pending=len(waiting),
            reserving=len(reserving),
            admitted=len(admitted),
            inadmissible=sum(queue_place(record) != "active" for record in waiting),
            reserved_usage=usage,
            admitted_usage=usage if len(admitted) == len(reserving) else _summed(admitted),
        )

    def _local_reason(self, local: LocalQueueState) -> tuple[str, str]:
        assert local.obj is not None
        if local.is_stopped:
            return "Stopped", "LocalQueue is stopped"
        queue = self._tree.queues.get(local.obj.spec.cluster_queue)
        if queue is None:
            return "ClusterQueueDoesNotExist", "Can't submit new workloads to clusterQueue"
        if not queue.is_active:
            return "ClusterQueueIsInactive", "Can't submit new workloads to clusterQueue"
        return "Ready", "Can submit new workloads to localQueue"

    def local_queue_status(self, key: str) -> QueueStatus:
        local = self._queues.local_queues[key]
        assert local.obj is not None
        report = self._local_queue(local)
        queue = self._tree.queues.get(report.cluster_queue)
        return QueueStatus(
            conditions=self._active(local.obj.status, report.is_active, report.reason, report.message),
            pending_workloads=report.pending,
            reserving_workloads=report.reserving,
            admitted_workloads=report.admitted,
            flavors_reservation=_flavor_usage(queue, report.reserved_usage, is_local=True),
            flavors_usage=_flavor_usage(queue, report.admitted_usage, is_local=True),
            fair_sharing=self._admission_share(key),
        )

    def _admission_share(self, key: str) -> FairSharingStatus | None:
        found = self._queues.share_status(key)
        return None if found is None else FairSharingStatus(admission_fair_sharing_status=found)

    # --- workloads ----------------------------------------------------------------------------------------------------

    def explain(self, key: str) -> WorkloadReport | None:
        record = self._workloads.records.get(key)
        if record is None:
            return None
        queue = self._tree.queues.get(record.cluster_queue)
        reason, message = _said(record)
        is_queued = queue is not None and record.is_queued
        rejection = record.shape.rejection or record.rejection
        by_uid = (
            {other.uid: other.key for other in self._workloads.records.values()} if record.attempt.waits_for else {}
        )
        return WorkloadReport(
            key=record.key,
            uid=record.uid,
            state=cast(WorkloadState, state_of(record)),
            place=queue_place(record),
            local_queue=record.queue_name,
            cluster_queue=record.cluster_queue,
            priority=record.priority,
            position=self._position(queue, record) if is_queued and queue is not None else None,
            reason=reason,
            message=message,
            requeue_count=record.requeue_count,
            requeue_at=record.requeue_at,
            next_due=self._workloads.timers.due(record),
            waits_for=_events(record, reason),
            shortages=tuple(self._shortage(queue, one) for one in rejection.obstacles)
            if rejection and is_queued
            else (),
            victims=tuple(by_uid[uid] for uid in sorted(record.attempt.waits_for) if uid in by_uid),
            blocked_by=self._blockers() if reason == c.WAITING_FOR_PODS_READY else (),
            behind=self._strict_head(queue, record) if is_queued and queue is not None else "",
            checks=tuple(self._check(name, one) for name, one in record.checks.items()),
            not_ready=_not_ready(record),
        )

    def _check(self, name: str, state: CheckState) -> CheckReport:
        known = self._tree.check_of(name)
        return CheckReport(name, "" if known is None else known.spec.controller_name, state.state, state.message)

    def _position(self, queue: QueueState, record: WorkloadRecord) -> int:
        waiting = self._queues.pending(queue).in_order(self._queues.order.key)
        return next(at for at, one in enumerate(waiting) if one is record)

    def _strict_head(self, queue: QueueState, record: WorkloadRecord) -> str:
        """The workload that keeps another from being tried, if there is one."""
        if not queue.is_strict or queue_place(record) != "active":
            return ""
        head = self._queues.pending(queue).head()
        return head.key if head is not None and head is not record else ""

    def _blockers(self) -> tuple[str, ...]:
        return tuple(record.key for record in self._workloads.unready.values())

    def _shortage(self, queue: QueueState | None, obstacle: Obstacle) -> Shortage:
        pair = (obstacle.flavor, obstacle.resource)
        holders: list[tuple[str, int]] = []
        if queue is not None and obstacle.code == c.WAITING_FOR_QUOTA:
            holders = [(record.key, amount) for _, record, amount in self._tree.reserving_of(pair, queue)]
        free = queue.node.available(pair) if queue is not None else obstacle.have
        return Shortage(
            pod_set=obstacle.pod_set,
            flavor=obstacle.flavor,
            resource=obstacle.resource,
            code=obstacle.code,
            message=obstacle.sentence,
            need=obstacle.need,
            have=max(0, free),
            most=obstacle.most,
            exceeded_by=max(0, -free),
            holders=tuple(sorted(holders, key=lambda item: (-item[1], item[0]))),
        )


def _said(record: WorkloadRecord) -> tuple[str, str]:
    """Reason and message of what keeps it from running; of a deactivation the cause."""
    evicted, reserved = record.conditions.get(c.EVICTED), record.conditions.get(c.QUOTA_RESERVED)
    if record.place is WorkloadPlace.INACTIVE and evicted is not None and evicted.is_true:
        return evicted.reason, evicted.message
    if reserved is not None and reserved.is_true and not record.is_admitted:
        open_checks = [f"{name} is {one.state}" for name, one in record.checks.items() if one.state != READY]
        return c.UNSATISFIED_CHECKS, f"Waits for admission checks: {', '.join(open_checks)}"
    if record.is_evicted and record.has_reservation and evicted is not None:
        return evicted.reason, evicted.message
    return record.pending_reason


def _not_ready(record: WorkloadRecord) -> str:
    found = record.conditions.get(c.PODS_READY)
    if found is None or found.is_true or not record.is_admitted or record.is_evicted or record.is_finished:
        return ""
    return found.message


def _events(record: WorkloadRecord, reason: str) -> tuple[str, ...]:
    """What would make the workload be tried again."""
    if record.place is WorkloadPlace.BACKOFF:
        return ("back-off over",) if record.requeue_at is not None else ("queue restarted",)
    if record.place is WorkloadPlace.INACTIVE:
        return ("spec.active set to true",)
    if record.place not in (WorkloadPlace.UNQUEUED, WorkloadPlace.QUEUED):
        return ()
    if reason == c.MISCONFIGURED and record.shape.rejection is not None and record.place is WorkloadPlace.QUEUED:
        return ("a LimitRange of its namespace or its RuntimeClass changes", "the workload asks for something else")
    return {
        c.WAITING_FOR_QUOTA: ("quota released in the cohort tree", "quota raised"),
        c.EXCEEDS_MAX_QUOTA: ("quota or limits raised", "the workload asks for less"),
        c.NO_MATCHING_FLAVOR: ("flavor or ClusterQueue changed", "the workload changed"),
        c.WAITING_FOR_NODES: ("a pod leaves its node", "a node comes or changes"),
        c.WAITING_FOR_PREEMPTED: ("the preempted workloads are gone",),
        c.WAITING_FOR_PODS_READY: ("all admitted workloads are ready",),
        c.MISCONFIGURED: ("the queue or namespace is put right",),
        c.SUSPENDED: ("the queue becomes active",),
        c.ADMISSION_GATED: ("replacement pods are created",),
    }.get(reason, ())


def _summed(records: Iterable[WorkloadRecord]) -> dict[FlavorResource, int]:
    total: dict[FlavorResource, int] = {}
    for record in records:
        for pair, amount in record.usage.items():
            total[pair] = total.get(pair, 0) + amount
    return total


def _admitted_usage(queue: QueueState) -> Amounts:
    if queue.admitted == len(queue.reserving):
        return queue.node.usage
    return _summed(record for record in queue.reserving.values() if record.is_admitted)


def _quota(queue: QueueState, pair: FlavorResource, admitted: Amounts) -> QuotaReport:
    node, quota = queue.node, queue.node.quota(pair)
    return QuotaReport(
        flavor=pair[0],
        resource=pair[1],
        nominal=quota.nominal,
        borrowing_limit=quota.borrowing_limit,
        lending_limit=quota.lending_limit,
        used=node.used(pair),
        borrowed=node.borrowed(pair) if node.parent is not None else 0,
        available=max(0, node.available(pair)),
        admitted=admitted.get(pair, 0),
    )


def _cohort(node: QuotaNode) -> CohortReport:
    pairs = dict.fromkeys(pair for part in _subtree(node) for pair in part.quotas)
    return CohortReport(
        name=node.name,
        parent="" if node.parent is None else node.parent.name,
        weighted_share=weighted_share(node),
        quotas=tuple(
            CohortQuotaReport(
                flavor=pair[0],
                resource=pair[1],
                nominal=node.quota(pair).nominal,
                total=sum(part.quota(pair).nominal for part in _subtree(node)),
                used=sum(leaf.usage.get(pair, 0) for leaf in node.leaves),
            )
            for pair in pairs
        ),
    )


def _subtree(node: QuotaNode) -> Iterator[QuotaNode]:
    waiting = [node]
    while waiting:
        yield (part := waiting.pop())
        waiting += part.children


def _remarks(queue: QueueState) -> str:
    return _overdrawn(queue) + "".join(f"; {one}" for one in queue.oversights)


def _overdrawn(queue: QueueState) -> str:
    """More is in use than there is: the quota was lowered. No workload is evicted for it, but people should see it."""
    node = queue.node
    above = [pair for pair in node.quotas if node.borrowed(pair)]
    over = [(pair, -node.available(pair)) for pair in above if node.available(pair) < 0]
    if not over:
        return ""
    amounts = (f"{resource} in flavor {flavor} by {shown(resource, amount)}" for (flavor, resource), amount in over)
    return f"; usage exceeds the quota: {', '.join(amounts)}"


def _flavor_usage(queue: QueueState | None, usage: Amounts, *, is_local: bool = False) -> tuple[FlavorUsage, ...]:
    """In the order of the ClusterQueue."""
    if queue is None:
        return ()
    found = []
    for covered, flavors in queue.groups:
        for flavor in flavors:
            resources = []
            for resource in covered:
                used = usage.get((flavor, resource), 0)
                nominal = queue.node.quota((flavor, resource)).nominal
                borrowed = 0 if is_local or queue.node.parent is None else max(0, used - nominal)
                resources.append(ResourceUsage(resource, shown(resource, used), shown(resource, borrowed)))
            found.append(FlavorUsage(flavor, tuple(resources)))
    return tuple(found)


class QueueTallies:
    """Sums over many workloads that only metrics ask for."""

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
    """Workloads with equal keys ask for the same."""
    asked: Counter[str] = Counter()
    for record, count in pending.kinds():
        for index, need in enumerate(record.shape.pod_sets):
            pods = record.count_of(index) * count
            asked[PODS] += pods
            for resource, amount in need.per_pod.items():
                asked[resource] += amount * pods
    return asked
