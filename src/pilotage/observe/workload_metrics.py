"""Every metric of workload queueing, in one table: Kueue's names, types and labels."""

from __future__ import annotations

from typing import ClassVar, Final

from pilotage.observe.declaration import ALPHA, MetricTable, counter, gauge, histogram
from pilotage.observe.instruments import exponential

_WAIT: Final = (1.0, *exponential(2.5, 2, 13))
_ATTEMPT: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_QUEUE: Final = ("cluster_queue", "priority_class", "replica_role")
_EVICTION: Final = ("cluster_queue", "reason", "underlying_cause", "priority_class", "replica_role")
_LOCAL: Final = ("name", "namespace", "priority_class", "replica_role")
_QUOTA: Final = ("cohort", "cluster_queue", "flavor", "resource", "replica_role")


class WorkloadMetrics(MetricTable):
    """One attribute per metric: its name without the `kueue_` prefix. `replica_role` is the last label everywhere."""

    prefix: ClassVar[str] = "kueue_"

    # --- admission ---------------------------------------------------------------------------------------------
    admission_attempts_total = counter(ALPHA, "Attempts to admit workloads.", "result", "replica_role")
    admission_attempt_duration_seconds = histogram(
        ALPHA, "Time that an attempt to admit workloads took.", _ATTEMPT, "result", "replica_role"
    )
    pending_workloads = gauge(ALPHA, "Workloads that wait for quota.", "cluster_queue", "status", "replica_role")
    unadmitted_workloads = gauge(
        ALPHA, "Workloads that are not admitted, by reason.",
        "cluster_queue", "reason", "underlying_cause", "replica_role",
    )  # fmt: skip
    quota_reserved_workloads_total = counter(ALPHA, "Workloads that got their quota.", *_QUEUE)
    quota_reserved_wait_time_seconds = histogram(ALPHA, "Time from queued to quota reserved.", _WAIT, *_QUEUE)
    admitted_workloads_total = counter(ALPHA, "Workloads that were admitted.", *_QUEUE)
    admission_wait_time_seconds = histogram(ALPHA, "Time from queued to admitted.", _WAIT, *_QUEUE)
    admission_checks_wait_time_seconds = histogram(ALPHA, "Time from quota reserved to admitted.", _WAIT, *_QUEUE)
    ready_wait_time_seconds = histogram(ALPHA, "Time from queued to all pods ready.", _WAIT, *_QUEUE)
    admitted_until_ready_wait_time_seconds = histogram(ALPHA, "Time from admitted to all pods ready.", _WAIT, *_QUEUE)
    reserving_active_workloads = gauge(ALPHA, "Workloads that hold quota.", "cluster_queue", "replica_role")
    admitted_active_workloads = gauge(ALPHA, "Workloads that are admitted.", "cluster_queue", "replica_role")
    finished_workloads_total = counter(ALPHA, "Workloads that have finished.", *_QUEUE)
    execution_time_seconds = histogram(ALPHA, "Time from admitted to finished.", _WAIT, *_QUEUE)

    # --- eviction ----------------------------------------------------------------------------------------------
    evicted_workloads_total = counter(ALPHA, "Workloads that lost their admission.", *_EVICTION)
    evicted_workloads_once_total = counter(
        ALPHA, "Workloads that lost their admission for the first time for this reason.", *_EVICTION
    )
    pods_ready_to_evicted_time_seconds = histogram(
        ALPHA, "Time from all pods ready to evicted.", _WAIT,
        "cluster_queue", "reason", "underlying_cause", "replica_role",
    )  # fmt: skip
    workload_eviction_latency_seconds = histogram(
        ALPHA, "Time from the decision to evict to the quota being free.", _WAIT,
        "cluster_queue", "reason", "replica_role",
    )  # fmt: skip
    preempted_workloads_total = counter(
        ALPHA, "Workloads that made room for others.", "preempting_cluster_queue", "reason", "replica_role"
    )
    admission_cycle_preemption_skips = gauge(
        ALPHA, "Workloads whose preemption had to wait for another cycle.", "cluster_queue", "replica_role"
    )

    # --- queues and quota --------------------------------------------------------------------------------------
    cluster_queue_status = gauge(ALPHA, "1 for the status that a queue has.", "cluster_queue", "status", "replica_role")
    cluster_queue_resource_reservation = gauge(ALPHA, "Quota that is reserved.", *_QUOTA)
    cluster_queue_resource_usage = gauge(ALPHA, "Quota of admitted workloads.", *_QUOTA)
    cluster_queue_resource_pending = gauge(ALPHA, "What pending workloads ask for.", *_QUOTA)
    cluster_queue_nominal_quota = gauge(ALPHA, "Quota of a queue.", *_QUOTA)
    cluster_queue_borrowing_limit = gauge(ALPHA, "What a queue may borrow.", *_QUOTA)
    cluster_queue_lending_limit = gauge(ALPHA, "What a queue may lend.", *_QUOTA)
    cluster_queue_weighted_share = gauge(
        ALPHA, "How far a queue is above its share.", "cluster_queue", "cohort", "replica_role"
    )
    cohort_weighted_share = gauge(ALPHA, "How far a cohort is above its share.", "cohort", "replica_role")

    # --- LocalQueues -------------------------------------------------------------------------------------------
    local_queue_pending_workloads = gauge(
        ALPHA, "Workloads of a LocalQueue that wait for quota.", "name", "namespace", "status", "replica_role"
    )
    local_queue_unadmitted_workloads = gauge(
        ALPHA, "Workloads of a LocalQueue that are not admitted, by reason.",
        "name", "namespace", "reason", "underlying_cause", "replica_role",
    )  # fmt: skip
    local_queue_quota_reserved_workloads_total = counter(ALPHA, "Workloads of a LocalQueue that got quota.", *_LOCAL)
    local_queue_quota_reserved_wait_time_seconds = histogram(
        ALPHA, "Time from queued to quota reserved in a LocalQueue.", _WAIT, *_LOCAL
    )
    local_queue_admitted_workloads_total = counter(ALPHA, "Workloads of a LocalQueue that were admitted.", *_LOCAL)
    local_queue_admission_wait_time_seconds = histogram(
        ALPHA, "Time from queued to admitted in a LocalQueue.", _WAIT, *_LOCAL
    )
    local_queue_admission_checks_wait_time_seconds = histogram(
        ALPHA, "Time from quota reserved to admitted in a LocalQueue.", _WAIT, *_LOCAL
    )
    local_queue_ready_wait_time_seconds = histogram(
        ALPHA, "Time from queued to all pods ready in a LocalQueue.", _WAIT, *_LOCAL
    )
    local_queue_admitted_until_ready_wait_time_seconds = histogram(
        ALPHA, "Time from admitted to all pods ready in a LocalQueue.", _WAIT, *_LOCAL
    )
    local_queue_evicted_workloads_total = counter(
        ALPHA, "Workloads of a LocalQueue that lost their admission.",
        "name", "namespace", "reason", "underlying_cause", "priority_class", "replica_role",
    )  # fmt: skip
    local_queue_evicted_workloads_once_total = counter(
        ALPHA, "Workloads of a LocalQueue that lost their admission for the first time for this reason.",
        "name", "namespace", "reason", "underlying_cause", "priority_class", "replica_role",
    )  # fmt: skip
    local_queue_finished_workloads_total = counter(ALPHA, "Workloads of a LocalQueue that have finished.", *_LOCAL)
    local_queue_execution_time_seconds = histogram(
        ALPHA, "Time from admitted to finished in a LocalQueue.", _WAIT, *_LOCAL
    )
    local_queue_reserving_active_workloads = gauge(
        ALPHA, "Workloads of a LocalQueue that hold quota.", "name", "namespace", "replica_role"
    )
    local_queue_admitted_active_workloads = gauge(
        ALPHA, "Workloads of a LocalQueue that are admitted.", "name", "namespace", "replica_role"
    )
    local_queue_status = gauge(
        ALPHA, "1 for the status that a LocalQueue has.", "name", "namespace", "active", "replica_role"
    )
    local_queue_resource_reservation = gauge(
        ALPHA, "Quota that workloads of a LocalQueue have reserved.",
        "name", "namespace", "flavor", "resource", "replica_role",
    )  # fmt: skip
    local_queue_resource_usage = gauge(
        ALPHA, "Quota of admitted workloads of a LocalQueue.",
        "name", "namespace", "flavor", "resource", "replica_role",
    )  # fmt: skip
