"""Rules for Kueue's queues, cohorts, flavors and classes.

In a real cluster these come from the schemas and webhooks of Kueue; the limits and choices are theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from pilotage.model.quantity import parse_quantity
from pilotage.sandbox.rules.validation.kind_rules import Change, KindRules
from pilotage.sandbox.rules.validation.kueue_quota import ResourceGroup, limits_errors, resource_groups_errors
from pilotage.sandbox.rules.validation.metadata import Metadata
from pilotage.sandbox.rules.validation.names import labels_errors, subdomain_problem
from pilotage.sandbox.rules.validation.nodes import Taint, taints_errors
from pilotage.sandbox.rules.validation.placement import tolerations_errors
from pilotage.sandbox.rules.validation.pod_shapes import Anything, LabelSelector, Toleration
from pilotage.sandbox.rules.validation.problems import Errors, invalid, one_of, required
from pilotage.sandbox.rules.validation.quantities import amount_problem
from pilotage.sandbox.rules.validation.selectors import label_selector_errors
from pilotage.sandbox.rules.validation.shapes import Int32, Labels, Quantity, Shape
from pilotage.sandbox.rules.validation.workloads import immutable_errors

_STOP_POLICIES: Final = ("Hold", "HoldAndDrain", "None")
_STRATEGIES: Final = ("BestEffortFIFO", "StrictFIFO")
_FUNGIBILITY: Final = ("MayStopSearch", "TryNextFlavor")
_PREFERENCES: Final = ("BorrowingOverPreemption", "PreemptionOverBorrowing")
_ADMISSION_MODES: Final = ("UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing")
_LEAST_WEIGHT: Final = Fraction(1, 10**9)
_WITHIN_QUEUE: Final = ("LowerOrNewerEqualPriority", "LowerPriority", "Never")
_WITHIN_COHORT: Final = ("Any", "LowerPriority", "Never")
_LONGEST_DESCRIPTION: Final = 2048
_MOST_FLAVOR_ITEMS: Final = 8


class FlavorFungibility(Shape):
    when_can_borrow: str | None = None
    when_can_preempt: str | None = None
    preference: str | None = None


class BorrowWithinCohort(Shape):
    policy: str | None = None
    max_priority_threshold: Int32 | None = None


class Preemption(Shape):
    within_cluster_queue: str | None = None
    reclaim_within_cohort: str | None = None
    borrow_within_cohort: BorrowWithinCohort | None = None


class FairSharing(Shape):
    weight: Quantity | None = None


class AdmissionCheckRule(Shape):
    name: str | None = None
    on_flavors: list[str] | None = None


class AdmissionChecksStrategy(Shape):
    admission_checks: list[AdmissionCheckRule] | None = None


class AdmissionScope(Shape):
    admission_mode: str | None = None


class QueueSpec(Shape):
    """The specs of ClusterQueue, LocalQueue and Cohort together: they share most of their rules."""

    resource_groups: list[ResourceGroup] | None = None
    cohort_name: str | None = None
    parent_name: str | None = None
    queueing_strategy: str | None = None
    namespace_selector: LabelSelector | None = None
    flavor_fungibility: FlavorFungibility | None = None
    preemption: Preemption | None = None
    admission_checks_strategy: AdmissionChecksStrategy | None = None
    stop_policy: str | None = None
    fair_sharing: FairSharing | None = None
    cluster_queue: str | None = None
    admission_scope: AdmissionScope | None = None


class Queue(Shape):
    api_version: str | None = None
    kind: str | None = None
    metadata: Metadata | None = None
    spec: QueueSpec | None = None
    status: Anything | None = None


class FlavorSpec(Shape):
    node_labels: Labels | None = None
    node_taints: list[Taint] | None = None
    tolerations: list[Toleration] | None = None


class ResourceFlavor(Shape):
    api_version: str | None = None
    kind: str | None = None
    metadata: Metadata | None = None
    spec: FlavorSpec | None = None


class WorkloadPriorityClass(Shape):
    api_version: str | None = None
    kind: str | None = None
    metadata: Metadata | None = None
    value: Int32 | None = None
    description: str | None = None


class AdmissionCheckSpec(Shape):
    controller_name: str | None = None
    parameters: Anything | None = None


class AdmissionCheck(Shape):
    api_version: str | None = None
    kind: str | None = None
    metadata: Metadata | None = None
    spec: AdmissionCheckSpec | None = None
    status: Anything | None = None


def _cluster_queue_errors(queue: Queue) -> Errors:
    spec = queue.spec or QueueSpec()
    errors = resource_groups_errors(spec.resource_groups or [], "spec.resourceGroups")
    errors += one_of("spec.queueingStrategy", spec.queueing_strategy, _STRATEGIES)
    errors += one_of("spec.stopPolicy", spec.stop_policy, _STOP_POLICIES)
    fungibility = spec.flavor_fungibility or FlavorFungibility()
    errors += one_of("spec.flavorFungibility.whenCanBorrow", fungibility.when_can_borrow, _FUNGIBILITY)
    errors += one_of("spec.flavorFungibility.whenCanPreempt", fungibility.when_can_preempt, _FUNGIBILITY)
    errors += _preference_errors(fungibility)
    preemption = spec.preemption or Preemption()
    errors += one_of("spec.preemption.withinClusterQueue", preemption.within_cluster_queue, _WITHIN_QUEUE)
    errors += one_of("spec.preemption.reclaimWithinCohort", preemption.reclaim_within_cohort, _WITHIN_COHORT)
    if preemption.borrow_within_cohort is not None:
        policy = preemption.borrow_within_cohort.policy
        errors += one_of("spec.preemption.borrowWithinCohort.policy", policy, ("LowerPriority", "Never"))
        if policy == "LowerPriority" and preemption.reclaim_within_cohort in ("Never", None):
            problem = "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never"
            errors.append(invalid("spec.preemption", {}, problem))
    if spec.namespace_selector is not None:
        errors += label_selector_errors(spec.namespace_selector, "spec.namespaceSelector")
    if spec.admission_scope is not None:
        errors += one_of("spec.admissionScope.admissionMode", spec.admission_scope.admission_mode, _ADMISSION_MODES)
    errors += _reference_errors("spec.cohortName", spec.cohort_name)
    if not spec.cohort_name:
        errors += limits_errors(spec.resource_groups or [], "must be nil when cohort is empty")
    return errors + _checks_errors(spec) + _weight_errors(spec)


def _preference_errors(fungibility: FlavorFungibility) -> Errors:
    """Only who looks at all flavors has a choice."""
    path, preference = "spec.flavorFungibility.preference", fungibility.preference
    errors = one_of(path, preference, _PREFERENCES)
    choices = (fungibility.when_can_borrow, fungibility.when_can_preempt)
    if preference and choices != ("TryNextFlavor", "TryNextFlavor"):
        errors.append(invalid(path, preference, "needs TryNextFlavor for whenCanBorrow and whenCanPreempt"))
    return errors


def _checks_errors(spec: QueueSpec) -> Errors:
    """A check on a flavor that the queue does not have would never be asked."""
    strategy = spec.admission_checks_strategy
    known = {flavor.name for group in spec.resource_groups or () for flavor in group.flavors or ()}
    errors: Errors = []
    for index, rule in enumerate((strategy.admission_checks if strategy is not None else None) or ()):
        for at, flavor in enumerate(rule.on_flavors or ()):
            if flavor not in known:
                path = f"spec.admissionChecksStrategy.admissionChecks[{index}].onFlavors[{at}]"
                errors.append(invalid(path, flavor, "is no flavor of this ClusterQueue"))
    return errors


def _cohort_errors(cohort: Queue) -> Errors:
    spec = cohort.spec or QueueSpec()
    errors = resource_groups_errors(spec.resource_groups or [], "spec.resourceGroups")
    errors += _reference_errors("spec.parentName", spec.parent_name)
    if not spec.parent_name:
        errors += limits_errors(spec.resource_groups or [], "must be nil when parent is empty")
    return errors + _weight_errors(spec)


def _reference_errors(path: str, name: str | None) -> Errors:
    problem = subdomain_problem(name) if name else ""
    return [invalid(path, name, problem)] if problem else []


def _local_queue_errors(queue: Queue) -> Errors:
    spec = queue.spec or QueueSpec()
    errors = one_of("spec.stopPolicy", spec.stop_policy, _STOP_POLICIES) + _weight_errors(spec)
    if not spec.cluster_queue:
        errors.append(required("spec.clusterQueue"))
    elif problem := subdomain_problem(spec.cluster_queue):
        errors.append(invalid("spec.clusterQueue", spec.cluster_queue, problem))
    return errors


def _weight_errors(spec: QueueSpec) -> Errors:
    weight = spec.fair_sharing.weight if spec.fair_sharing is not None else None
    if weight is None:
        return []
    problem = amount_problem("weight", weight)
    if not problem and 0 < parse_quantity(weight) <= _LEAST_WEIGHT:
        problem = "must be 0 or greater than 1e-9"
    return [invalid("spec.fairSharing.weight", str(weight), problem)] if problem else []


def _flavor_object_errors(flavor: ResourceFlavor) -> Errors:
    spec = flavor.spec or FlavorSpec()
    errors = labels_errors("spec.nodeLabels", spec.node_labels) if spec.node_labels else []
    errors += taints_errors(spec.node_taints or [], "spec.nodeTaints")
    errors += tolerations_errors(spec.tolerations or [], "spec.tolerations")
    for field, items in (
        ("nodeLabels", spec.node_labels),
        ("nodeTaints", spec.node_taints),
        ("tolerations", spec.tolerations),
    ):
        if len(items or ()) > _MOST_FLAVOR_ITEMS:
            errors.append(invalid(f"spec.{field}", len(items or ()), f"must have at most {_MOST_FLAVOR_ITEMS} items"))
    return errors


def _priority_class_errors(priority_class: WorkloadPriorityClass) -> Errors:
    errors: Errors = [required("value")] if priority_class.value is None else []
    if len(priority_class.description or "") > _LONGEST_DESCRIPTION:
        errors.append(invalid("description", "", f"may not be more than {_LONGEST_DESCRIPTION} bytes"))
    return errors


def _admission_check_errors(check: AdmissionCheck) -> Errors:
    return [] if check.spec is not None and check.spec.controller_name else [required("spec.controllerName")]


def _local_queue_update_errors(change: Change) -> Errors:
    return immutable_errors(change, "clusterQueue")


def _admission_check_update_errors(change: Change) -> Errors:
    return immutable_errors(change, "controllerName")


KUEUE_QUEUE_RULES: Final[Mapping[str, KindRules]] = {
    "ClusterQueue": KindRules(Queue, _cluster_queue_errors),
    "LocalQueue": KindRules(Queue, _local_queue_errors, update=_local_queue_update_errors),
    "Cohort": KindRules(Queue, _cohort_errors),
    "ResourceFlavor": KindRules(ResourceFlavor, _flavor_object_errors),
    "WorkloadPriorityClass": KindRules(WorkloadPriorityClass, _priority_class_errors),
    "AdmissionCheck": KindRules(AdmissionCheck, _admission_check_errors, update=_admission_check_update_errors),
}
