"""Rules for PriorityClasses, PodDisruptionBudgets and Leases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilotage.sandbox.rules.admission import SYSTEM_PRIORITY_CLASSES
from pilotage.sandbox.rules.validation.kind_rules import KindRules, ObjectUpdate
from pilotage.sandbox.rules.validation.metadata import AnyObject
from pilotage.sandbox.rules.validation.pod_shapes import LabelSelector
from pilotage.sandbox.rules.validation.problems import Errors, at_least, forbidden, invalid, one_of
from pilotage.sandbox.rules.validation.selectors import label_selector_errors
from pilotage.sandbox.rules.validation.shapes import Int32, IntOrString, Shape
from pilotage.sandbox.rules.validation.workloads import int_or_percent_errors

_HIGHEST_USER_PRIORITY: Final = 1_000_000_000


class PriorityClass(AnyObject):
    value: Int32 | None = None
    preemption_policy: str | None = None


class DisruptionBudgetSpec(Shape):
    min_available: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class DisruptionBudgetStatus(Shape):
    disruptions_allowed: Int32 | None = None
    current_healthy: Int32 | None = None
    desired_healthy: Int32 | None = None
    expected_pods: Int32 | None = None


class DisruptionBudget(AnyObject):
    spec: DisruptionBudgetSpec | None = None
    status: DisruptionBudgetStatus | None = None


class LeaseSpec(Shape):
    lease_duration_seconds: Int32 | None = None
    lease_transitions: Int32 | None = None


class Lease(AnyObject):
    spec: LeaseSpec | None = None


def _priority_class_errors(priority_class: PriorityClass) -> Errors:
    errors = one_of("preemptionPolicy", priority_class.preemption_policy, ("Never", "PreemptLowerPriority"))
    name = (priority_class.metadata.name or "") if priority_class.metadata is not None else ""
    if name.startswith("system-"):
        if priority_class.value != SYSTEM_PRIORITY_CLASSES.get(name):
            problem = "priority class names with 'system-' prefix are reserved for system use only"
            errors.append(forbidden("metadata.name", problem))
    elif (priority_class.value or 0) > _HIGHEST_USER_PRIORITY:
        problem = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
        errors.append(forbidden("value", problem))
    return errors


def _priority_class_update_errors(change: ObjectUpdate) -> Errors:
    errors: Errors = []
    if (change.before.value or 0) != (change.after.value or 0):
        errors.append(forbidden("value", "may not be changed in an update."))
    if change.before.preemption_policy != change.after.preemption_policy:
        errors.append(forbidden("preemptionPolicy", "may not be changed in an update."))
    return errors


def _disruption_budget_errors(budget: DisruptionBudget) -> Errors:
    spec = budget.spec
    if spec is None:
        return []
    errors: Errors = []
    if spec.min_available is not None and spec.max_unavailable is not None:
        errors.append(invalid("spec", {}, "minAvailable and maxUnavailable cannot be both set"))
    for field, value in (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable)):
        errors += int_or_percent_errors(f"spec.{field}", value)
        if isinstance(value, str) and value[:-1].isdigit() and int(value[:-1]) > 100:
            errors.append(invalid(f"spec.{field}", value, "must not be greater than 100%"))
    policies = ("AlwaysAllow", "IfHealthyBudget")
    errors += one_of("spec.unhealthyPodEvictionPolicy", spec.unhealthy_pod_eviction_policy, policies)
    return errors + label_selector_errors(spec.selector, "spec.selector") if spec.selector is not None else errors


def _lease_errors(lease: Lease) -> Errors:
    if lease.spec is None:
        return []
    errors = at_least("spec.leaseDurationSeconds", lease.spec.lease_duration_seconds, 1, "must be greater than 0")
    return errors + at_least("spec.leaseTransitions", lease.spec.lease_transitions, 0)


POLICY_RULES: Final[Mapping[str, KindRules]] = {
    "PriorityClass": KindRules(PriorityClass, _priority_class_errors, update=_priority_class_update_errors),
    "PodDisruptionBudget": KindRules(DisruptionBudget, _disruption_budget_errors),
    "Lease": KindRules(Lease, _lease_errors),
}
