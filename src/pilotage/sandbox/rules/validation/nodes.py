"""Rules for nodes."""

from __future__ import annotations

from typing import Final

from msgspec import field

from pilotage.sandbox.rules.validation.kind_rules import KindRules, ObjectUpdate
from pilotage.sandbox.rules.validation.metadata import AnyObject
from pilotage.sandbox.rules.validation.names import label_value_problem, qualified_name_problem
from pilotage.sandbox.rules.validation.placement import EFFECTS
from pilotage.sandbox.rules.validation.problems import Errors, duplicate, forbidden, invalid, not_supported, required
from pilotage.sandbox.rules.validation.quantities import amounts_errors, any_resource_problem
from pilotage.sandbox.rules.validation.shapes import Quantities, Shape

_NO_EFFECT: Final = "must specify a taint effect"


class Taint(Shape):
    key: str | None = None
    value: str | None = None
    effect: str | None = None


class NodeSpec(Shape):
    taints: list[Taint] | None = None
    provider_id: str | None = field(default=None, name="providerID")
    pod_cidrs: list[str] | None = field(default=None, name="podCIDRs")


class NodeStatus(Shape):
    capacity: Quantities | None = None
    allocatable: Quantities | None = None


class Node(AnyObject):
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


def _state_errors(node: Node) -> Errors:
    errors: Errors = []
    if node.spec is not None and node.spec.taints:
        errors += taints_errors(node.spec.taints, "spec.taints")
    if node.status is not None:
        if node.status.capacity:
            errors += amounts_errors(node.status.capacity, "status.capacity", any_resource_problem)
        if node.status.allocatable:
            errors += amounts_errors(node.status.allocatable, "status.allocatable", any_resource_problem)
    return errors


def taints_errors(taints: list[Taint], path: str) -> Errors:
    errors: Errors = []
    seen: set[tuple[str | None, str | None]] = set()
    for index, taint in enumerate(taints):
        place = f"{path}[{index}]"
        if problem := qualified_name_problem(taint.key or ""):
            errors.append(invalid(f"{place}.key", taint.key or "", problem))
        if taint.value and (problem := label_value_problem(taint.value)):
            errors.append(invalid(f"{place}.value", taint.value, problem))
        if not taint.effect:
            errors.append(required(f"{place}.effect", _NO_EFFECT))
        elif taint.effect not in EFFECTS:
            errors.append(not_supported(f"{place}.effect", taint.effect, EFFECTS))
        pair = (taint.key, taint.effect)
        if pair in seen:
            errors.append(duplicate(place, "taints must be unique by key and effect pair"))
        seen.add(pair)
    return errors


def _update_errors(change: ObjectUpdate) -> Errors:
    errors: Errors = []
    before, now = change.before.spec or NodeSpec(), change.after.spec or NodeSpec()
    if before.provider_id and before.provider_id != now.provider_id:
        errors.append(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'))
    if before.pod_cidrs and before.pod_cidrs != now.pod_cidrs:
        errors.append(forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'))
    return errors


NODE_RULES: Final = KindRules(Node, _state_errors, update=_update_errors, judges_status=True)
