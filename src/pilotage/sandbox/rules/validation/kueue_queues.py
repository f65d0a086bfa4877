"""Rules for Kueue's queues, cohorts, flavors and classes.

In a real cluster these come from the schemas and webhooks of Kueue; the limits and choices are theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilotage.model.quantity import parse_quantity
from pilotage.sandbox.rules.validation.kind_rules import Change, KindRules
from pilotage.sandbox.rules.validation.metadata import Metadata
from pilotage.sandbox.rules.validation.names import labels_errors, subdomain_problem
from pilotage.sandbox.rules.validation.nodes import Taint, taints_errors
from pilotage.sandbox.rules.validation.placement import tolerations_errors
from pilotage.sandbox.rules.validation.pod_shapes import Anything, LabelSelector, Toleration
from pilotage.sandbox.rules.validation.problems import Errors, duplicate, invalid, one_of, required
from pilotage.sandbox.rules.validation.quantities import amount_problem
from pilotage.sandbox.rules.validation.selectors import label_selector_errors
from pilotage.sandbox.rules.validation.shapes import Int32, Labels, Quantity, Shape
from pilotage.sandbox.rules.validation.workloads import immutable_errors

_STOP_POLICIES: Final = ("Hold", "HoldAndDrain", "None")
_STRATEGIES: Final = ("BestEffortFIFO", "StrictFIFO")
# The first and third are the spellings of v1beta1.
_FUNGIBILITY: Final = ("Borrow", "MayStopSearch", "Preempt", "TryNextFlavor")
_WITHIN_QUEUE: Final = ("LowerOrNewerEqualPriority", "LowerPriority", "Never")
_WITHIN_COHORT: Final = ("Any", "LowerPriority", "Never")
_LONGEST_DESCRIPTION: Final = 2048
_MOST_FLAVOR_ITEMS: Final = 8


class ResourceQuota(Shape):
    name: str | None = None
    nominal_quota: Quantity | None = None
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class FlavorQuotas(Shape):
    name: str | None = None
    resources: list[ResourceQuota] | None = None


class ResourceGroup(Shape):
    covered_resources: list[str] | None = None
    flavors: list[FlavorQuotas] | None = None


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


class QueueSpec(Shape):
    """The specs of ClusterQueue, LocalQueue and Cohort together: they share most of their rules."""

    resource_groups: list[ResourceGroup] | None = None
    cohort_name: str | None = None
    cohort: str | None = None
    parent_name: str | None = None
    parent: str | None = None
    queueing_strategy: str | None = None
    namespace_selector: LabelSelector | None = None
    flavor_fungibility: FlavorFungibility | None = None
    preemption: Preemption | None = None
    admission_checks_strategy: AdmissionChecksStrategy | None = None
    stop_policy: str | None = None
    fair_sharing: FairSharing | None = None
    cluster_queue: str | None = None


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
    errors = _resource_groups_errors(spec.resource_groups or [], "spec.resourceGroups")
    errors += one_of("spec.queueingStrategy", spec.queueing_strategy, _STRATEGIES)
    errors += one_of("spec.stopPolicy", spec.stop_policy, _STOP_POLICIES)
    fungibility = spec.flavor_fungibility or FlavorFungibility()
    errors += one_of("spec.flavorFungibility.whenCanBorrow", fungibility.when_can_borrow, _FUNGIBILITY)
    errors += one_of("spec.flavorFungibility.whenCanPreempt", fungibility.when_can_preempt, _FUNGIBILITY)
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
    if not (spec.cohort_name or spec.cohort):
        errors += _limits_errors(spec, "must be nil when cohort is empty")
    return errors + _checks_errors(spec) + _weight_errors(spec)


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


def _limits_errors(spec: QueueSpec, problem: str) -> Errors:
    """Limits of what is lent and borrowed, where there is nobody to share with."""
    errors: Errors = []
    for group, item in enumerate(spec.resource_groups or ()):
        for at, flavor in enumerate(item.flavors or ()):
            for number, quota in enumerate(flavor.resources or ()):
                path = f"spec.resourceGroups[{group}].flavors[{at}].resources[{number}]"
                for field, limit in (("borrowingLimit", quota.borrowing_limit), ("lendingLimit", quota.lending_limit)):
                    if limit is not None:
                        errors.append(invalid(f"{path}.{field}", str(limit), problem))
    return errors


def _cohort_errors(cohort: Queue) -> Errors:
    spec = cohort.spec or QueueSpec()
    errors = _resource_groups_errors(spec.resource_groups or [], "spec.resourceGroups")
    if not (spec.parent_name or spec.parent):
        errors += _limits_errors(spec, "must be nil when parent is empty")
    return errors + _weight_errors(spec)


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
    problem = amount_problem("weight", weight) if weight is not None else ""
    return [invalid("spec.fairSharing.weight", str(weight), problem)] if problem else []


def _resource_groups_errors(groups: list[ResourceGroup], path: str) -> Errors:
    errors: Errors = []
    resources: set[str] = set()
    flavors: set[str] = set()
    for index, group in enumerate(groups):
        place = f"{path}[{index}]"
        covered = group.covered_resources or []
        if not covered:
            errors.append(required(f"{place}.coveredResources"))
        for at, name in enumerate(covered):
            if name in resources:
                errors.append(duplicate(f"{place}.coveredResources[{at}]", name))
            resources.add(name)
        if not group.flavors:
            errors.append(required(f"{place}.flavors"))
        for at, flavor in enumerate(group.flavors or ()):
            errors += _flavor_errors(flavor, covered, f"{place}.flavors[{at}]", flavors)
    return errors


def _flavor_errors(flavor: FlavorQuotas, covered: list[str], path: str, seen: set[str]) -> Errors:
    errors: Errors = []
    if not flavor.name:
        errors.append(required(f"{path}.name"))
    elif flavor.name in seen:
        errors.append(duplicate(f"{path}.name", flavor.name))
    seen.add(flavor.name or "")
    resources = flavor.resources or []
    if [resource.name for resource in resources] != covered:
        problem = "must list the resources of coveredResources in the same order"
        errors.append(invalid(f"{path}.resources", [resource.name for resource in resources], problem))
    for index, resource in enumerate(resources):
        errors += _quota_errors(resource, f"{path}.resources[{index}]")
    return errors


def _quota_errors(quota: ResourceQuota, path: str) -> Errors:
    if quota.nominal_quota is None:
        return [required(f"{path}.nominalQuota")]
    errors: Errors = []
    for field, amount in (
        ("nominalQuota", quota.nominal_quota),
        ("borrowingLimit", quota.borrowing_limit),
        ("lendingLimit", quota.lending_limit),
    ):
        if amount is not None and (problem := amount_problem("quota", amount)):
            errors.append(invalid(f"{path}.{field}", str(amount), problem))
    if errors or quota.lending_limit is None:
        return errors
    if parse_quantity(quota.lending_limit) > parse_quantity(quota.nominal_quota):
        problem = "must be less than or equal to the nominalQuota"
        errors.append(invalid(f"{path}.lendingLimit", str(quota.lending_limit), problem))
    return errors


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
