"""Rules for LimitRanges: known types and resources, and bounds and defaults that do not contradict each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pilotage.model.quantity import canonical_quantity, parse_quantity
from pilotage.sandbox.rules.json_fields import Json
from pilotage.sandbox.rules.validation.field_rules import KindRules, fields
from pilotage.sandbox.rules.validation.names import qualified_name_problem
from pilotage.sandbox.rules.validation.problems import Errors, duplicate, forbidden, invalid, required
from pilotage.sandbox.rules.validation.quantities import (
    Quantities,
    Quantity,
    container_amounts,
    may_overcommit,
    node_amounts,
)

_TYPES: Final = ("Pod", "Container", "PersistentVolumeClaim")
_LISTS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_ORDER: Final = (
    ("min", "max", "min", "min value {0} is greater than max value {1}"),
    ("min", "defaultRequest", "defaultRequest", "min value {0} is greater than default request value {1}"),
    ("defaultRequest", "max", "defaultRequest", "default request value {0} is greater than max value {1}"),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "default request value {0} is greater than default limit value {1}",
    ),
    ("min", "default", "default", "min value {0} is greater than default value {1}"),
    ("default", "max", "default", "default value {0} is greater than max value {1}"),
)
"""What may not be greater than what, which of the lists is wrong then, and the words for it."""


def _limits(items: Sequence[Json], path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        place, kind = f"{path}[{index}]", item.get("type") or ""
        errors += _type_errors(kind, f"{place}.type")
        if kind in seen:
            errors.append(duplicate(f"{place}.type", kind))
        seen.add(kind)
        errors += _item_errors(kind, {name: item.get(name) or {} for name in _LISTS}, place)
    return errors


def _type_errors(kind: str, path: str) -> Errors:
    if problem := qualified_name_problem(kind):
        return [invalid(path, kind, problem)]
    if "/" not in kind and kind not in _TYPES:
        return [invalid(path, kind, "must be a standard limit type or fully qualified")]
    return []


def _item_errors(kind: str, lists: Mapping[str, Quantities], path: str) -> Errors:
    errors: Errors = []
    rule = container_amounts if kind in ("Pod", "Container") else node_amounts
    for name, amounts in lists.items():
        if kind == "Pod" and name.startswith("default") and amounts:
            errors.append(forbidden(f"{path}.{name}", "may not be specified when `type` is 'Pod'"))
        else:
            errors += rule(amounts, f"{path}.{name}")
    if kind == "PersistentVolumeClaim" and not ("storage" in lists["min"] or "storage" in lists["max"]):
        problem = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(f"{path}.limits", problem))
    if errors:
        return errors  # amounts that are none cannot be compared
    resources = sorted({resource for amounts in lists.values() for resource in amounts})
    return [error for resource in resources for error in _contradictions(resource, lists, path)]


def _contradictions(resource: str, lists: Mapping[str, Quantities], path: str) -> Errors:
    given = {name: amounts[resource] for name, amounts in lists.items() if resource in amounts}
    errors: Errors = []
    for smaller, larger, wrong, words in _ORDER:
        if smaller in given and larger in given and parse_quantity(given[smaller]) > parse_quantity(given[larger]):
            problem = words.format(canonical_quantity(given[smaller]), canonical_quantity(given[larger]))
            errors.append(invalid(f"{path}.{wrong}[{resource}]", canonical_quantity(given[wrong]), problem))
    errors += (invalid(f"{path}.maxLimitRequestRatio[{resource}]", *problem) for problem in _ratio_problems(given))
    if not may_overcommit(resource) and {"default", "defaultRequest"} <= given.keys():
        limit, request = given["default"], given["defaultRequest"]
        if parse_quantity(limit) != parse_quantity(request):
            shown = canonical_quantity(request)
            problem = (
                f"default value {canonical_quantity(limit)} must equal to defaultRequest value {shown} in {resource}"
            )
            errors.append(invalid(f"{path}.defaultRequest[{resource}]", shown, problem))
    return errors


def _ratio_problems(given: Mapping[str, Quantity]) -> Iterator[tuple[str, str]]:
    if "maxLimitRequestRatio" not in given:
        return
    ratio = parse_quantity(given["maxLimitRequestRatio"])
    shown = canonical_quantity(given["maxLimitRequestRatio"])
    if ratio < 1:
        yield shown, f"ratio {shown} is less than 1"
    if "min" in given and "max" in given and (least := parse_quantity(given["min"])):
        widest = parse_quantity(given["max"]) / least
        if ratio > widest:
            yield shown, f"ratio {shown} is greater than max/min = {float(widest):f}"


LIMIT_RANGE_RULES: Final[Mapping[str, KindRules]] = {
    "LimitRange": KindRules(fields(("spec", fields(("limits", _limits)))))
}
