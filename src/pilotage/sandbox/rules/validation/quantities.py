"""Amounts of resources: requests, limits, capacities.

Three questions per entry: is the name one that may stand there, is the amount a quantity that makes sense for it, and
does the request stay within the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from pilotage.model.quantity import parse_quantity
from pilotage.sandbox.rules.json_fields import Json
from pilotage.sandbox.rules.validation.field_rules import Rule, fields
from pilotage.sandbox.rules.validation.names import qualified_name_problem
from pilotage.sandbox.rules.validation.problems import NOT_NEGATIVE, Errors, duplicate, forbidden, invalid, required

_FORM: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_LONGEST_AMOUNT: Final = 100
_CONTAINER_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD_RESOURCES: Final = _CONTAINER_RESOURCES | {"pods", "storage", "services", "secrets", "configmaps"}

NameRule = Callable[[str], str]
Quantity = str | int | float
Quantities = dict[str, Quantity]


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


def amounts(name_problem: NameRule) -> Rule:
    """Names and amounts of one list of resources."""

    def check(listed: Quantities, path: str) -> Errors:
        errors: Errors = []
        for name, amount in listed.items():
            if problem := name_problem(name):
                errors.append(invalid(f"{path}[{name}]", name, problem))
            if problem := amount_problem(name, amount):
                errors.append(invalid(f"{path}[{name}]", str(amount), problem))
        return errors

    return check


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
            errors.append(invalid(f"{path}.requests", str(amount), problem))
    return errors


@lru_cache(1 << 16, typed=True)
def _limit_problem(name: str, amount: Quantity, limit: Quantity) -> str:
    difference = parse_quantity(amount) - parse_quantity(limit)
    if difference and not may_overcommit(name):
        return f"must be equal to {name} limit of {limit}"
    return f"must be less than or equal to {name} limit of {limit}" if difference > 0 else ""


def may_overcommit(name: str) -> bool:
    return "/" not in name and not name.startswith("hugepages-")


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


def _requirements(name_problem: NameRule) -> Rule:
    """Requests, limits and claims of a container or a pod."""
    lists = fields(("limits", amounts(name_problem)), ("requests", amounts(name_problem)))

    def check(resources: Json, path: str) -> Errors:
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        # Amounts that are none cannot be compared.
        errors = lists(resources, path) or _within_limits_errors(requests, limits, path)
        if not errors and _lacks_company({*limits, *requests}):
            errors = [forbidden(path, "HugePages require cpu or memory")]
        return errors + _claims(resources.get("claims") or (), f"{path}.claims")

    return check


def _lacks_company(names: set[str]) -> bool:
    """Huge pages are not asked for alone."""
    return not names & {"cpu", "memory"} and any(name.startswith("hugepages-") for name in names)


def _claims(claims: Sequence[Json], path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        name = claim.get("name")
        if not name:
            errors.append(required(f"{path}[{index}].name"))
        elif name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        else:
            seen.add(name)
    return errors


container_amounts: Final = amounts(container_resource_problem)
node_amounts: Final = amounts(any_resource_problem)
container_resources: Final = _requirements(container_resource_problem)
pod_level_resources: Final = _requirements(pod_level_resource_problem)
