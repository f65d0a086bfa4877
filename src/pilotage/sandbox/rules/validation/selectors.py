"""Label selectors and node selectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilotage.sandbox.rules.validation.names import label_value_problem, labels_errors, qualified_name_problem
from pilotage.sandbox.rules.validation.pod_shapes import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    SelectorRequirement,
)
from pilotage.sandbox.rules.validation.problems import Errors, forbidden, invalid, required

_NEEDS_VALUES: Final = "must be specified when `operator` is 'In' or 'NotIn'"
_NEEDS_NO_VALUES: Final = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_UNKNOWN_OPERATOR: Final = "not a valid selector operator"


def label_selector_errors(selector: LabelSelector, path: str) -> Errors:
    errors = labels_errors(f"{path}.matchLabels", selector.match_labels) if selector.match_labels else []
    for index, requirement in enumerate(selector.match_expressions or ()):
        errors += _requirement_errors(requirement, f"{path}.matchExpressions[{index}]", comparisons=False)
    return errors


def node_selector_errors(selector: NodeSelector, path: str) -> Errors:
    if not selector.node_selector_terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    errors: Errors = []
    for index, term in enumerate(selector.node_selector_terms):
        errors += node_selector_term_errors(term, f"{path}.nodeSelectorTerms[{index}]")
    return errors


def node_selector_term_errors(term: NodeSelectorTerm, path: str) -> Errors:
    errors: Errors = []
    for index, requirement in enumerate(term.match_expressions or ()):
        errors += _requirement_errors(requirement, f"{path}.matchExpressions[{index}]", comparisons=True)
    for index, requirement in enumerate(term.match_fields or ()):
        errors += _field_requirement_errors(requirement, f"{path}.matchFields[{index}]")
    return errors


def selector_matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Does a (valid) selector match these labels."""
    wanted = selector.match_labels or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_holds(requirement, labels) for requirement in selector.match_expressions or ())


def is_empty(selector: LabelSelector) -> bool:
    return not selector.match_labels and not selector.match_expressions


def _holds(requirement: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    key, values = requirement.key or "", requirement.values or []
    match requirement.operator:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False


def _requirement_errors(requirement: SelectorRequirement, path: str, *, comparisons: bool) -> Errors:
    errors: Errors = []
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                errors.append(required(f"{path}.values", _NEEDS_VALUES))
        case "Exists" | "DoesNotExist":
            if requirement.values:
                errors.append(forbidden(f"{path}.values", _NEEDS_NO_VALUES))
        case "Gt" | "Lt" if comparisons:
            if len(requirement.values or ()) != 1:
                problem = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                errors.append(required(f"{path}.values", problem))
        case _:
            errors.append(invalid(f"{path}.operator", requirement.operator or "", _UNKNOWN_OPERATOR))
    if problem := qualified_name_problem(requirement.key or ""):
        errors.append(invalid(f"{path}.key", requirement.key or "", problem))
    for index, value in enumerate(requirement.values or ()):
        if problem := label_value_problem(value):
            errors.append(invalid(f"{path}.values[{index}]", value, problem))
    return errors


def _field_requirement_errors(requirement: SelectorRequirement, path: str) -> Errors:
    errors: Errors = []
    if requirement.operator not in ("In", "NotIn"):
        errors.append(invalid(f"{path}.operator", requirement.operator or "", _UNKNOWN_OPERATOR))
    elif len(requirement.values or ()) != 1:
        problem = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(f"{path}.values", problem))
    if requirement.key != "metadata.name":
        errors.append(invalid(f"{path}.key", requirement.key or "", "not a valid field selector key"))
    return errors
