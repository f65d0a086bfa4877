"""The fields of a pod that steer where it may run: affinity, tolerations, spreading, gates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pilotage.sandbox.rules.validation.names import label_problem, label_value_problem, qualified_name_problem
from pilotage.sandbox.rules.validation.pod_shapes import (
    Affinity,
    NameReference,
    NodeAffinityTerms,
    PodAffinity,
    PodAffinityTerm,
    Toleration,
    TopologySpreadConstraint,
)
from pilotage.sandbox.rules.validation.problems import (
    Errors,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    one_of,
    required,
)
from pilotage.sandbox.rules.validation.selectors import (
    label_selector_errors,
    node_selector_errors,
    node_selector_term_errors,
)

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT: Final = "must be in the range 1-100"
_POLICIES: Final = ("Honor", "Ignore")


def affinity_errors(affinity: Affinity, path: str) -> Errors:
    errors: Errors = []
    if affinity.node_affinity is not None:
        errors += _node_affinity_errors(affinity.node_affinity, f"{path}.nodeAffinity")
    if affinity.pod_affinity is not None:
        errors += _pod_affinity_errors(affinity.pod_affinity, f"{path}.podAffinity")
    if affinity.pod_anti_affinity is not None:
        errors += _pod_affinity_errors(affinity.pod_anti_affinity, f"{path}.podAntiAffinity")
    return errors


def tolerations_errors(tolerations: Sequence[Toleration], path: str) -> Errors:
    errors: Errors = []
    for index, toleration in enumerate(tolerations):
        errors += _toleration_errors(toleration, path, index)
    return errors


def spread_errors(constraints: Sequence[TopologySpreadConstraint], path: str) -> Errors:
    errors: Errors = []
    seen: set[tuple[str | None, str | None]] = set()
    for index, constraint in enumerate(constraints):
        place = f"{path}[{index}]"
        errors += _constraint_errors(constraint, place)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in seen:
            errors.append(duplicate(f"{place}.{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}"))
        seen.add(pair)
    return errors


def gates_errors(gates: Sequence[NameReference], path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.name or ""
        if problem := qualified_name_problem(name):
            errors.append(invalid(f"{path}[{index}]", name, problem))
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return errors


def _node_affinity_errors(affinity: NodeAffinityTerms, path: str) -> Errors:
    errors: Errors = []
    if affinity.required is not None:
        errors += node_selector_errors(affinity.required, f"{path}.{_REQUIRED}")
    for index, preferred in enumerate(affinity.preferred or ()):
        place = f"{path}.{_PREFERRED}[{index}]"
        if not 1 <= (preferred.weight or 0) <= 100:
            errors.append(invalid(f"{place}.weight", preferred.weight or 0, _WEIGHT))
        if preferred.preference is None:
            errors.append(required(f"{place}.preference"))
        else:
            errors += node_selector_term_errors(preferred.preference, f"{place}.preference")
    return errors


def _pod_affinity_errors(affinity: PodAffinity, path: str) -> Errors:
    errors: Errors = []
    for index, term in enumerate(affinity.required or ()):
        errors += _term_errors(term, f"{path}.{_REQUIRED}[{index}]")
    for index, weighted in enumerate(affinity.preferred or ()):
        place = f"{path}.{_PREFERRED}[{index}]"
        if not 1 <= (weighted.weight or 0) <= 100:
            errors.append(invalid(f"{place}.weight", weighted.weight or 0, _WEIGHT))
        errors += _term_errors(weighted.pod_affinity_term or PodAffinityTerm(), f"{place}.podAffinityTerm")
    return errors


def _term_errors(term: PodAffinityTerm, path: str) -> Errors:
    errors: Errors = []
    if term.label_selector is not None:
        errors += label_selector_errors(term.label_selector, f"{path}.labelSelector")
    if term.namespace_selector is not None:
        errors += label_selector_errors(term.namespace_selector, f"{path}.namespaceSelector")
    for index, namespace in enumerate(term.namespaces or ()):
        if problem := label_problem(namespace):
            errors.append(invalid(f"{path}.namespaces[{index}]", namespace, problem))
    for field, keys in (("matchLabelKeys", term.match_label_keys), ("mismatchLabelKeys", term.mismatch_label_keys)):
        if keys and term.label_selector is None:
            errors.append(forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set"))
    return errors + _topology_key_errors(term.topology_key, f"{path}.topologyKey")


def _topology_key_errors(key: str | None, path: str) -> Errors:
    if not key:
        return [required(path, "can not be empty")]
    problem = qualified_name_problem(key)
    return [invalid(path, key, problem)] if problem else []


def _toleration_errors(toleration: Toleration, path: str, index: int) -> Errors:
    errors: Errors = []
    if toleration.key:
        if problem := qualified_name_problem(toleration.key):
            errors.append(invalid(f"{path}[{index}].key", toleration.key, problem))
    elif toleration.operator != "Exists":
        problem = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        errors.append(invalid(f"{path}[{index}].operator", toleration.operator or "", problem))
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        problem = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid(f"{path}[{index}].effect", toleration.effect or "", problem))
    if toleration.value or toleration.operator not in ("Exists", "Equal", None):
        errors += _operator_errors(toleration, f"{path}[{index}]")
    if toleration.effect and toleration.effect not in EFFECTS:
        errors.append(not_supported(f"{path}[{index}].effect", toleration.effect, EFFECTS))
    return errors


def _operator_errors(toleration: Toleration, path: str) -> Errors:
    value = toleration.value or ""
    match toleration.operator:
        case "Exists":
            problem = "value must be empty when `operator` is 'Exists'"
            return [invalid(f"{path}.operator", value, problem)]
        case "Equal" | "" | None:
            problem = label_value_problem(value)
            return [invalid(f"{path}.operator", value, problem)] if problem else []
        case "Lt" | "Gt":
            is_integer = value.lstrip("-").isdecimal() and value.isascii()
            return [] if is_integer else [invalid(f"{path}.value", value, "must be an integer")]
    return [not_supported(f"{path}.operator", toleration.operator, ("Equal", "Exists"))]


def _constraint_errors(constraint: TopologySpreadConstraint, path: str) -> Errors:
    errors: Errors = []
    if (constraint.max_skew or 0) <= 0:
        errors.append(invalid(f"{path}.maxSkew", constraint.max_skew or 0, "must be greater than zero"))
    errors += _topology_key_errors(constraint.topology_key, f"{path}.topologyKey")
    actions = ("DoNotSchedule", "ScheduleAnyway")
    if constraint.when_unsatisfiable not in actions:
        errors.append(not_supported(f"{path}.whenUnsatisfiable", constraint.when_unsatisfiable or "", actions))
    errors += _min_domains_errors(constraint, f"{path}.minDomains")
    errors += one_of(f"{path}.nodeAffinityPolicy", constraint.node_affinity_policy, _POLICIES)
    errors += one_of(f"{path}.nodeTaintsPolicy", constraint.node_taints_policy, _POLICIES)
    if constraint.label_selector is not None:
        errors += label_selector_errors(constraint.label_selector, f"{path}.labelSelector")
    return errors + _match_label_keys_errors(constraint, f"{path}.matchLabelKeys")


def _min_domains_errors(constraint: TopologySpreadConstraint, path: str) -> Errors:
    count = constraint.min_domains
    if count is None:
        return []
    if count <= 0:
        return [invalid(path, count, "must be greater than zero")]
    if constraint.when_unsatisfiable != "DoNotSchedule":
        problem = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {constraint.when_unsatisfiable}"
        return [invalid(path, count, problem)]
    return []


def _match_label_keys_errors(constraint: TopologySpreadConstraint, path: str) -> Errors:
    keys = constraint.match_label_keys
    if not keys:
        return []
    selector = constraint.label_selector
    if selector is None:
        return [forbidden(path, "must not be specified when labelSelector is not set")]
    errors: Errors = []
    for index, key in enumerate(keys):
        if problem := qualified_name_problem(key):
            errors.append(invalid(f"{path}[{index}]", key, problem))
        if key in (selector.match_labels or {}) or any(one.key == key for one in selector.match_expressions or ()):
            errors.append(invalid(f"{path}[{index}]", key, "exists in both matchLabelKeys and labelSelector"))
    return errors
