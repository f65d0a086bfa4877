"""Rules for PriorityClasses, PodDisruptionBudgets and Leases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilotage.sandbox.rules.admission import SYSTEM_PRIORITY_CLASSES
from pilotage.sandbox.rules.json_fields import Json
from pilotage.sandbox.rules.validation.field_rules import KindRules, at_least, fields, one_of
from pilotage.sandbox.rules.validation.problems import Errors, forbidden, invalid
from pilotage.sandbox.rules.validation.selectors import label_selector
from pilotage.sandbox.rules.validation.workloads import int_or_percent

_HIGHEST_USER_PRIORITY: Final = 1_000_000_000


def _priority(priority_class: Json, _path: str) -> Errors:
    name = (priority_class.get("metadata") or {}).get("name") or ""
    value = priority_class.get("value")
    if name.startswith("system-"):
        if value == SYSTEM_PRIORITY_CLASSES.get(name):
            return []
        problem = "priority class names with 'system-' prefix are reserved for system use only"
        return [forbidden("metadata.name", problem)]
    if (value or 0) <= _HIGHEST_USER_PRIORITY:
        return []
    return [forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}")]


def _priority_update(old: Json, new: Json) -> Errors:
    pairs = (
        ("value", old.get("value") or 0, new.get("value") or 0),
        ("preemptionPolicy", old.get("preemptionPolicy"), new.get("preemptionPolicy")),
    )
    return [forbidden(name, "may not be changed in an update.") for name, before, now in pairs if before != now]


def _at_most_one_bound(spec: Json, path: str) -> Errors:
    if spec.get("minAvailable") is None or spec.get("maxUnavailable") is None:
        return []
    return [invalid(path, {}, "minAvailable and maxUnavailable cannot be both set")]


def _bound(value: int | str, path: str) -> Errors:
    errors = int_or_percent(value, path)
    if isinstance(value, str) and value[:-1].isdigit() and int(value[:-1]) > 100:
        errors.append(invalid(path, value, "must not be greater than 100%"))
    return errors


_DISRUPTION_BUDGET: Final = fields(
    ("", _at_most_one_bound),
    ("minAvailable", _bound),
    ("maxUnavailable", _bound),
    ("unhealthyPodEvictionPolicy", one_of("AlwaysAllow", "IfHealthyBudget")),
    ("selector", label_selector),
)
_LEASE: Final = fields(
    ("leaseDurationSeconds", at_least(1, "must be greater than 0")),
    ("leaseTransitions", at_least(0)),
)

POLICY_RULES: Final[Mapping[str, KindRules]] = {
    "PriorityClass": KindRules(
        fields(("preemptionPolicy", one_of("Never", "PreemptLowerPriority")), ("", _priority)),
        update=_priority_update,
    ),
    "PodDisruptionBudget": KindRules(fields(("spec", _DISRUPTION_BUDGET))),
    "Lease": KindRules(fields(("spec", _LEASE))),
}
