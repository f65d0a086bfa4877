"""Amounts of resources: requests, limits, capacities.

Three questions per entry: is the name one that may stand there, is the amount a quantity that makes sense for it, and
does the request stay within the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from pilotage.model.quantity import parse_quantity
from pilotage.sandbox.rules.validation.names import qualified_name_problem
from pilotage.sandbox.rules.validation.pod_shapes import Resources
from pilotage.sandbox.rules.validation.problems import NOT_NEGATIVE, Errors, duplicate, forbidden, invalid, required
from pilotage.sandbox.rules.validation.shapes import Quantities, Quantity

_FORM: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_LONGEST_AMOUNT: Final = 100
_CONTAINER_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD_RESOURCES: Final = _CONTAINER_RESOURCES | {"pods", "storage", "services", "secrets", "configmaps"}

NameRule = Callable[[str], str]


def container_resource_problem(name: str) -> str:
    """What is wrong with the name of a resource that a container may request."""
    if name in _CONTAINER_RESOURCES:
        return ""
    return _container_resource_problem(name) if len(name) <= 317 else qualified_name_problem(name)


def pod_level_resource_problem(name: str) -> str:
    if name in ("cpu", "memory") or name.startswith("hugepages-"):
        return ""
    return "must be a standard resource for pod-level resources"


def any_resource_problem(name: str) -> str:
    """What is wrong with the name of a resource that a node may offer."""
    if name in _STANDARD_RESOURCES or name.startswith(("hugepages-", "attachable-volumes-")):
        return ""
    if problem := qualified_name_problem(name):
        return problem
    return "" if "/" in name else "must be a standard resource type or fully qualified"


def resources_errors(resources: Resources, path: str, name_problem: NameRule = container_resource_problem) -> Errors:
    """Requests, limits and claims of a container or a pod."""
    errors: Errors = []
    limits, requests = resources.limits, resources.requests
    if limits:
        errors += amounts_errors(limits, f"{path}.limits", name_problem)
    if requests:
        errors += amounts_errors(requests, f"{path}.requests", name_problem)
        if not errors:
            errors += _within_limits_errors(requests, limits or {}, path)
    if not errors and (limits or requests):
        errors += _huge_pages_errors({**(limits or {}), **(requests or {})}, path)
    return errors + _claim_name_errors(resources, f"{path}.claims") if resources.claims else errors


def amounts_errors(amounts: Quantities, path: str, name_problem: NameRule) -> Errors:
    """Names and amounts of one list of resources."""
    errors: Errors = []
    for name, amount in amounts.items():
        if problem := name_problem(name):
            errors.append(invalid(f"{path}[{name}]", name, problem))
        if problem := amount_problem(name, amount):
            errors.append(invalid(f"{path}[{name}]", _shown(amount), problem))
    return errors


def amount_problem(name: str, amount: Quantity) -> str:
    """What is wrong with the amount of a resource."""
    is_absurd = isinstance(amount, str) and len(amount) > _LONGEST_AMOUNT
    return _FORM if is_absurd else _amount_problem(name, amount)


@lru_cache(1 << 16, typed=True)
def _amount_problem(name: str, amount: Quantity) -> str:
    try:
        value = parse_quantity(amount)
    except ValueError:
        return _FORM
    if value < 0:
        return NOT_NEGATIVE
    counted = "/" in name or name.startswith("hugepages-") or name == "pods"
    return "must be an integer" if counted and value.denominator != 1 else ""


def _within_limits_errors(requests: Quantities, limits: Quantities, path: str) -> Errors:
    errors: Errors = []
    for name, amount in requests.items():
        limit = limits.get(name)
        if limit is None:
            if not may_overcommit(name):
                errors.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
            continue
        if problem := _limit_problem(name, amount, limit):
            errors.append(invalid(f"{path}.requests", _shown(amount), problem))
    return errors


@lru_cache(1 << 16, typed=True)
def _limit_problem(name: str, amount: Quantity, limit: Quantity) -> str:
    difference = parse_quantity(amount) - parse_quantity(limit)
    if difference and not may_overcommit(name):
        return f"must be equal to {name} limit of {limit}"
    return f"must be less than or equal to {name} limit of {limit}" if difference > 0 else ""


def may_overcommit(name: str) -> bool:
    return "/" not in name and not name.startswith("hugepages-")


def _huge_pages_errors(amounts: Quantities, path: str) -> Errors:
    huge = any(name.startswith("hugepages-") for name in amounts)
    if huge and "cpu" not in amounts and "memory" not in amounts:
        return [forbidden(path, "HugePages require cpu or memory")]
    return []


def _claim_name_errors(resources: Resources, path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, claim in enumerate(resources.claims or ()):
        if not claim.name:
            errors.append(required(f"{path}[{index}].name"))
        elif claim.name in seen:
            errors.append(duplicate(f"{path}[{index}]", claim.name))
        else:
            seen.add(claim.name)
    return errors


@lru_cache(1 << 12)
def _container_resource_problem(name: str) -> str:
    if problem := qualified_name_problem(name):
        return problem
    domain, slash, _ = name.partition("/")
    if not slash:
        return "" if name.startswith("hugepages-") else "must be a standard resource for containers"
    is_native = domain.endswith("kubernetes.io")
    if not is_native and name.startswith("requests."):
        return "doesn't follow extended resource name standard"
    return ""


def _shown(amount: Quantity) -> str:
    return str(amount)
