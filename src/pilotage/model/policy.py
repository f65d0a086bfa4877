"""Objects that say how pods may be treated: disruption budgets, priority and runtime classes, namespaces."""

from __future__ import annotations

import msgspec

from pilotage.model.meta import ApiObject, IntOrString, Shape, TimedCondition
from pilotage.model.quantity import Quantity
from pilotage.model.selectors import LabelSelector


class PodDisruptionBudgetSpec(Shape, frozen=True):
    min_available: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Shape, frozen=True):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed_generation: int = 0
    disrupted_pods: dict[str, str] = msgspec.field(default_factory=dict)
    conditions: tuple[TimedCondition, ...] = ()


class PodDisruptionBudget(ApiObject, frozen=True):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)


class PriorityClass(ApiObject, frozen=True):
    value: int = 0
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None


class Overhead(Shape, frozen=True):
    pod_fixed: dict[str, Quantity] = msgspec.field(default_factory=dict)


class RuntimeClass(ApiObject, frozen=True):
    overhead: Overhead = Overhead()


class NamespaceSpec(Shape, frozen=True):
    finalizers: tuple[str, ...] = ()


class NamespaceStatus(Shape, frozen=True):
    phase: str = ""


class Namespace(ApiObject, frozen=True):
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()
