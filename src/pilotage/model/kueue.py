"""Workload queueing (kueue.x-k8s.io/v1beta2): workloads, the queues they wait in and the quota they wait for."""

from __future__ import annotations

import msgspec

from pilotage.model.meta import ApiObject, Shape, TimedCondition, TypedReference
from pilotage.model.node import Taint
from pilotage.model.pod_spec import Toleration
from pilotage.model.quantity import Quantity
from pilotage.model.selectors import LabelSelector
from pilotage.model.workloads import PodTemplate

# --- Workload ---------------------------------------------------------------------------------------------------------


class TopologyRequest(Shape, frozen=True):
    """Labels of nodes, one value of which is to hold all pods of the pod set."""

    required: str | None = None
    preferred: str | None = None


class PodSet(Shape, frozen=True):
    name: str = "main"
    template: PodTemplate = msgspec.field(default_factory=PodTemplate)
    count: int = 1
    min_count: int | None = None
    topology_request: TopologyRequest | None = None


class PriorityClassRef(Shape, frozen=True):
    group: str = ""
    kind: str = ""
    name: str = ""


class WorkloadSpec(Shape, frozen=True):
    pod_sets: tuple[PodSet, ...] = ()
    queue_name: str = ""
    priority_class_ref: PriorityClassRef | None = None
    priority: int | None = None
    active: bool = True
    maximum_execution_time_seconds: int | None = None


class LevelValues(Shape, frozen=True):
    """The values of one level; only the one that all domains share is read."""

    universal: str = ""


class DomainPodCounts(Shape, frozen=True):
    universal: int | None = None


class TopologySlice(Shape, frozen=True):
    domain_count: int = 0
    values_per_level: tuple[LevelValues, ...] = ()
    pod_counts: DomainPodCounts = DomainPodCounts()


class TopologyAssignment(Shape, frozen=True):
    """Where the pods of a pod set go. Written with one domain only."""

    levels: tuple[str, ...] = ()
    slices: tuple[TopologySlice, ...] = ()


class PodSetAssignment(Shape, frozen=True):
    name: str = "main"
    flavors: dict[str, str] = msgspec.field(default_factory=dict)
    resource_usage: dict[str, Quantity] = msgspec.field(default_factory=dict)
    count: int | None = None
    topology_assignment: TopologyAssignment | None = None


class Admission(Shape, frozen=True):
    cluster_queue: str = ""
    pod_set_assignments: tuple[PodSetAssignment, ...] = ()


class RequeueState(Shape, frozen=True):
    count: int | None = None
    requeue_at: str | None = None


class EvictionCount(Shape, frozen=True):
    reason: str = ""
    underlying_cause: str = ""
    count: int = 0


class SchedulingStats(Shape, frozen=True):
    evictions: tuple[EvictionCount, ...] = ()


class ReclaimablePod(Shape, frozen=True):
    name: str = ""
    count: int = 0


class PodSetUpdate(Shape, frozen=True):
    """What an admission check wants added to the pods of a pod set."""

    name: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()


class AdmissionCheckState(Shape, frozen=True):
    name: str = ""
    state: str = ""
    message: str = ""
    last_transition_time: str | None = None
    requeue_after_seconds: int | None = None
    retry_count: int | None = None
    pod_set_updates: tuple[PodSetUpdate, ...] = ()


class PodSetRequest(Shape, frozen=True):
    name: str = ""
    resources: dict[str, Quantity] = msgspec.field(default_factory=dict)


class WorkloadStatus(Shape, frozen=True):
    conditions: tuple[TimedCondition, ...] = ()
    admission: Admission | None = None
    requeue_state: RequeueState | None = None
    scheduling_stats: SchedulingStats | None = None
    reclaimable_pods: tuple[ReclaimablePod, ...] = ()
    admission_checks: tuple[AdmissionCheckState, ...] = ()
    resource_requests: tuple[PodSetRequest, ...] = ()
    accumulated_past_execution_time_seconds: int | None = None


class Workload(ApiObject, frozen=True):
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


# --- quota ------------------------------------------------------------------------------------------------------------


class ResourceQuota(Shape, frozen=True):
    """Quota of one resource in one flavor."""

    name: str = ""
    nominal_quota: Quantity = "0"
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class FlavorQuotas(Shape, frozen=True):
    name: str = ""
    resources: tuple[ResourceQuota, ...] = ()


class ResourceGroup(Shape, frozen=True):
    covered_resources: tuple[str, ...] = ()
    flavors: tuple[FlavorQuotas, ...] = ()


class FairSharing(Shape, frozen=True):
    weight: Quantity | None = None


class FlavorFungibility(Shape, frozen=True):
    when_can_borrow: str = "MayStopSearch"
    when_can_preempt: str = "TryNextFlavor"
    preference: str | None = None


class BorrowWithinCohort(Shape, frozen=True):
    policy: str = "Never"
    max_priority_threshold: int | None = None


class ClusterQueuePreemption(Shape, frozen=True):
    within_cluster_queue: str = "Never"
    reclaim_within_cohort: str = "Never"
    borrow_within_cohort: BorrowWithinCohort | None = None


class AdmissionCheckRule(Shape, frozen=True):
    name: str = ""
    on_flavors: tuple[str, ...] = ()


class AdmissionChecksStrategy(Shape, frozen=True):
    admission_checks: tuple[AdmissionCheckRule, ...] = ()


class AdmissionScope(Shape, frozen=True):
    admission_mode: str = ""


class ClusterQueueSpec(Shape, frozen=True):
    resource_groups: tuple[ResourceGroup, ...] = ()
    cohort_name: str = ""
    queueing_strategy: str = "BestEffortFIFO"
    namespace_selector: LabelSelector | None = None
    flavor_fungibility: FlavorFungibility = FlavorFungibility()
    preemption: ClusterQueuePreemption = ClusterQueuePreemption()
    admission_checks_strategy: AdmissionChecksStrategy | None = None
    stop_policy: str = "None"
    fair_sharing: FairSharing | None = None
    admission_scope: AdmissionScope | None = None


class ResourceUsage(Shape, frozen=True):
    name: str = ""
    total: Quantity = "0"
    borrowed: Quantity = "0"


class FlavorUsage(Shape, frozen=True):
    name: str = ""
    resources: tuple[ResourceUsage, ...] = ()


class AdmissionFairSharingStatus(Shape, frozen=True):
    """What a LocalQueue has used lately."""

    consumed_resources: dict[str, Quantity] = msgspec.field(default_factory=dict)
    last_update: str | None = None


class FairSharingStatus(Shape, frozen=True):
    weighted_share: int = 0
    admission_fair_sharing_status: AdmissionFairSharingStatus | None = None


class QueueStatus(Shape, frozen=True):
    """Status of a LocalQueue or a ClusterQueue."""

    conditions: tuple[TimedCondition, ...] = ()
    pending_workloads: int = 0
    reserving_workloads: int = 0
    admitted_workloads: int = 0
    flavors_reservation: tuple[FlavorUsage, ...] = ()
    flavors_usage: tuple[FlavorUsage, ...] = ()
    fair_sharing: FairSharingStatus | None = None


class ClusterQueue(ApiObject, frozen=True):
    spec: ClusterQueueSpec = ClusterQueueSpec()
    status: QueueStatus = QueueStatus()


class LocalQueueSpec(Shape, frozen=True):
    cluster_queue: str = ""
    stop_policy: str = "None"
    fair_sharing: FairSharing | None = None


class LocalQueue(ApiObject, frozen=True):
    spec: LocalQueueSpec = LocalQueueSpec()
    status: QueueStatus = QueueStatus()


class CohortSpec(Shape, frozen=True):
    parent_name: str = ""
    resource_groups: tuple[ResourceGroup, ...] = ()
    fair_sharing: FairSharing | None = None


class CohortStatus(Shape, frozen=True):
    fair_sharing: FairSharingStatus | None = None


class Cohort(ApiObject, frozen=True):
    spec: CohortSpec = CohortSpec()
    status: CohortStatus = CohortStatus()


class ResourceFlavorSpec(Shape, frozen=True):
    node_labels: dict[str, str] = msgspec.field(default_factory=dict)
    node_taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()


class ResourceFlavor(ApiObject, frozen=True):
    spec: ResourceFlavorSpec = msgspec.field(default_factory=ResourceFlavorSpec)


class WorkloadPriorityClass(ApiObject, frozen=True):
    value: int = 0
    description: str = ""


class AdmissionCheckSpec(Shape, frozen=True):
    controller_name: str = ""
    parameters: TypedReference | None = None


class AdmissionCheckStatus(Shape, frozen=True):
    conditions: tuple[TimedCondition, ...] = ()


class AdmissionCheck(ApiObject, frozen=True):
    spec: AdmissionCheckSpec = AdmissionCheckSpec()
    status: AdmissionCheckStatus = AdmissionCheckStatus()
