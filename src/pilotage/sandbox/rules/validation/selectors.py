"""Label selectors and node selectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilotage.sandbox.rules.json_fields import Json
from pilotage.sandbox.rules.validation.field_rules import each, fields
from pilotage.sandbox.rules.validation.names import label_map, label_value, qualified_name
from pilotage.sandbox.rules.validation.problems import Errors, forbidden, invalid, required

_NEEDS_VALUES: Final = "must be specified when `operator` is 'In' or 'NotIn'"
_NEEDS_NO_VALUES: Final = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_NEEDS_ONE_VALUE: Final = "must be specified single value when `operator` is 'Lt' or 'Gt'"
_NEEDS_ONE_NAME: Final = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
_UNKNOWN_OPERATOR: Final = "not a valid selector operator"


def selector_matches(selector: Json, labels: Mapping[str, str]) -> bool:
    """Does a (valid) selector match these labels."""
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_holds(requirement, labels) for requirement in selector.get("matchExpressions") or ())


def is_empty(selector: Json) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def _holds(requirement: Json, labels: Mapping[str, str]) -> bool:
    key, values = requirement.get("key") or "", requirement.get("values") or []
    match requirement.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False


def _label_operator(requirement: Json, path: str) -> Errors:
    operator, values = requirement.get("operator"), requirement.get("values")
    match operator:
        case "In" | "NotIn":
            return [] if values else [required(f"{path}.values", _NEEDS_VALUES)]
        case "Exists" | "DoesNotExist":
            return [forbidden(f"{path}.values", _NEEDS_NO_VALUES)] if values else []
    return [invalid(f"{path}.operator", operator or "", _UNKNOWN_OPERATOR)]


def _node_operator(requirement: Json, path: str) -> Errors:
    if requirement.get("operator") not in ("Gt", "Lt"):
        return _label_operator(requirement, path)
    values = requirement.get("values") or ()
    return [] if len(values) == 1 else [required(f"{path}.values", _NEEDS_ONE_VALUE)]


def _field_operator(requirement: Json, path: str) -> Errors:
    operator, values = requirement.get("operator"), requirement.get("values") or ()
    if operator not in ("In", "NotIn"):
        return [invalid(f"{path}.operator", operator or "", _UNKNOWN_OPERATOR)]
    return [] if len(values) == 1 else [required(f"{path}.values", _NEEDS_ONE_NAME)]


def _name_of_node(key: str, path: str) -> Errors:
    return [] if key == "metadata.name" else [invalid(path, key, "not a valid field selector key")]


def _terms(terms: list[Json], path: str) -> Errors:
    return _EACH_TERM(terms, path) if terms else [required(path, "must have at least one node selector term")]


_KEY_AND_VALUES: Final = fields(("key", qualified_name, ""), ("values", each(label_value)))
_LABEL_REQUIREMENT: Final = fields(("", _label_operator), ("", _KEY_AND_VALUES))
_NODE_REQUIREMENT: Final = fields(("", _node_operator), ("", _KEY_AND_VALUES))
_FIELD_REQUIREMENT: Final = fields(("", _field_operator), ("key", _name_of_node, ""))

label_selector: Final = fields(("matchLabels", label_map), ("matchExpressions", each(_LABEL_REQUIREMENT)))
node_selector_term: Final = fields(
    ("matchExpressions", each(_NODE_REQUIREMENT)), ("matchFields", each(_FIELD_REQUIREMENT))
)
_EACH_TERM: Final = each(node_selector_term)
node_selector: Final = fields(("nodeSelectorTerms", _terms, ()))
