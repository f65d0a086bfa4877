"""Where a pod may run: affinity, tolerations, topology spread constraints and scheduling gates."""

from __future__ import annotations

from typing import Final

from pilotage.sandbox.rules.json_fields import Json
from pilotage.sandbox.rules.validation.field_rules import at_least, each, fields, one_of
from pilotage.sandbox.rules.validation.names import label, label_map, label_value_problem, qualified_name, subdomain
from pilotage.sandbox.rules.validation.problems import (
    Errors,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from pilotage.sandbox.rules.validation.selectors import label_selector, node_selector, node_selector_term

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NEEDS_SELECTOR: Final = "must not be specified when labelSelector is not set"
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")


def _weight(weight: int, path: str) -> Errors:
    return [] if 1 <= weight <= 100 else [invalid(path, weight, "must be in the range 1-100")]


def _topology_key(key: str, path: str) -> Errors:
    return qualified_name(key, path) if key else [required(path, "can not be empty")]


def _keys_need_a_selector(term: Json, path: str) -> Errors:
    if term.get("labelSelector") is not None:
        return []
    return [
        forbidden(f"{path}.{key}", _NEEDS_SELECTOR) for key in ("matchLabelKeys", "mismatchLabelKeys") if term.get(key)
    ]


def _toleration_key(toleration: Json, path: str) -> Errors:
    key, operator = toleration.get("key"), toleration.get("operator")
    if key:
        return qualified_name(key, f"{path}.key")
    if operator == "Exists":
        return []
    problem = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
    return [invalid(f"{path}.operator", operator or "", problem)]


def _toleration_seconds(toleration: Json, path: str) -> Errors:
    if toleration.get("tolerationSeconds") is None or toleration.get("effect") == "NoExecute":
        return []
    problem = "effect must be 'NoExecute' when `tolerationSeconds` is set"
    return [invalid(f"{path}.effect", toleration.get("effect") or "", problem)]


def _toleration_value(toleration: Json, path: str) -> Errors:
    value = toleration.get("value") or ""
    match toleration.get("operator"):
        case "Exists":
            problem = "value must be empty when `operator` is 'Exists'"
            return [invalid(f"{path}.operator", value, problem)] if value else []
        case "Equal" | "" | None:
            problem = label_value_problem(value)
            return [invalid(f"{path}.operator", value, problem)] if problem else []
        case "Lt" | "Gt":
            is_integer = value.lstrip("-").isdecimal() and value.isascii()
            return [] if is_integer else [invalid(f"{path}.value", value, "must be an integer")]
        case operator:
            return [not_supported(f"{path}.operator", operator, ("Equal", "Exists"))]


def _when_unsatisfiable(action: str, path: str) -> Errors:
    return [] if action in _ACTIONS else [not_supported(path, action, _ACTIONS)]


def _min_domains(constraint: Json, path: str) -> Errors:
    count, action = constraint.get("minDomains"), constraint.get("whenUnsatisfiable")
    if count is None:
        return []
    if count <= 0:
        return [invalid(f"{path}.minDomains", count, "must be greater than zero")]
    if action != "DoNotSchedule":
        problem = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        return [invalid(f"{path}.minDomains", count, problem)]
    return []


def _match_label_keys(constraint: Json, path: str) -> Errors:
    keys, selector = constraint.get("matchLabelKeys"), constraint.get("labelSelector")
    path = f"{path}.matchLabelKeys"
    if not keys:
        return []
    if selector is None:
        return [forbidden(path, _NEEDS_SELECTOR)]
    selected = {one.get("key") for one in selector.get("matchExpressions") or ()} | {
        *(selector.get("matchLabels") or ())
    }
    errors: Errors = []
    for index, key in enumerate(keys):
        errors += qualified_name(key, f"{path}[{index}]")
        if key in selected:
            errors.append(invalid(f"{path}[{index}]", key, "exists in both matchLabelKeys and labelSelector"))
    return errors


def _unique_pairs(constraints: list[Json], path: str) -> Errors:
    errors: Errors = []
    seen = set()
    for index, constraint in enumerate(constraints):
        errors += _CONSTRAINT(constraint, f"{path}[{index}]")
        pair = (constraint.get("topologyKey"), constraint.get("whenUnsatisfiable"))
        if pair in seen:
            place = f"{path}[{index}].{{topologyKey, whenUnsatisfiable}}"
            errors.append(duplicate(place, f"{{{pair[0]}, {pair[1]}}}"))
        seen.add(pair)
    return errors


def _gates(gates: list[Json], path: str) -> Errors:
    errors: Errors = []
    seen = set()
    for index, gate in enumerate(gates):
        name = gate.get("name") or ""
        errors += qualified_name(name, f"{path}[{index}]")
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return errors


def _scheduling_group(spec: Json, path: str) -> Errors:
    group = spec.get("schedulingGroup")
    if group is None:
        return []
    path = f"{path}.schedulingGroup"
    has_responders = bool(spec.get("evictionResponders"))
    errors = [forbidden(path, "may not be set when evictionResponders is set")] if has_responders else []
    if group.get("podGroupName") is None:
        return [*errors, invalid(f"{path}.podGroupName", None, "must specify one of: `podGroupName`")]
    return errors + subdomain(group["podGroupName"], f"{path}.podGroupName")


_POD_AFFINITY_TERM: Final = fields(
    ("labelSelector", label_selector),
    ("namespaceSelector", label_selector),
    ("namespaces", each(label)),
    ("", _keys_need_a_selector),
    ("topologyKey", _topology_key, ""),
)
_POD_AFFINITY: Final = fields(
    (_REQUIRED, each(_POD_AFFINITY_TERM)),
    (_PREFERRED, each(fields(("weight", _weight, 0), ("podAffinityTerm", _POD_AFFINITY_TERM, {})))),
)
_NODE_AFFINITY: Final = fields(
    (_REQUIRED, node_selector),
    (_PREFERRED, each(fields(("weight", _weight, 0), ("preference!", node_selector_term)))),
)
_TOLERATION: Final = fields(
    ("", _toleration_key),
    ("", _toleration_seconds),
    ("", _toleration_value),
    ("effect", one_of(*EFFECTS)),
)
_CONSTRAINT: Final = fields(
    ("maxSkew", at_least(1, "must be greater than zero"), 0),
    ("topologyKey", _topology_key, ""),
    ("whenUnsatisfiable", _when_unsatisfiable, ""),
    ("", _min_domains),
    ("nodeAffinityPolicy", one_of("Honor", "Ignore")),
    ("nodeTaintsPolicy", one_of("Honor", "Ignore")),
    ("labelSelector", label_selector),
    ("", _match_label_keys),
)

placement: Final = fields(
    ("nodeSelector", label_map),
    ("tolerations", each(_TOLERATION)),
    (
        "affinity",
        fields(("nodeAffinity", _NODE_AFFINITY), ("podAffinity", _POD_AFFINITY), ("podAntiAffinity", _POD_AFFINITY)),
    ),
    ("topologySpreadConstraints", _unique_pairs),
    ("schedulingGates", _gates),
    ("", _scheduling_group),
)
"""What of a pod's spec steers where it may run."""
