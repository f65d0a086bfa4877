"""Rules for the quota of Kueue's ClusterQueues and cohorts: which resources of which flavors, and how much of each."""

from __future__ import annotations

from typing import Final

from pilotage.model.quantity import parse_quantity
from pilotage.sandbox.rules.validation.names import subdomain_problem
from pilotage.sandbox.rules.validation.problems import Errors, duplicate, invalid, required
from pilotage.sandbox.rules.validation.quantities import amount_problem
from pilotage.sandbox.rules.validation.shapes import Quantity, Shape

_MOST_GROUPS: Final = 16
_MOST_IN_GROUP: Final = 64
_MOST_IN_ALL: Final = 256
_MOST_PAIRS: Final = 512


class ResourceQuota(Shape):
    name: str | None = None
    nominal_quota: Quantity | None = None
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class FlavorQuotas(Shape):
    name: str | None = None
    resources: list[ResourceQuota] | None = None


class ResourceGroup(Shape):
    covered_resources: list[str] | None = None
    flavors: list[FlavorQuotas] | None = None


def resource_groups_errors(groups: list[ResourceGroup], path: str) -> Errors:
    errors = _size_errors(groups, path)
    resources: set[str] = set()
    flavors: set[str] = set()
    for index, group in enumerate(groups):
        place = f"{path}[{index}]"
        covered = group.covered_resources or []
        if not covered:
            errors.append(required(f"{place}.coveredResources"))
        for at, name in enumerate(covered):
            if name in resources:
                errors.append(duplicate(f"{place}.coveredResources[{at}]", name))
            resources.add(name)
        if not group.flavors:
            errors.append(required(f"{place}.flavors"))
        for at, flavor in enumerate(group.flavors or ()):
            errors += _flavor_errors(flavor, covered, f"{place}.flavors[{at}]", flavors)
    return errors


def _size_errors(groups: list[ResourceGroup], path: str) -> Errors:
    counts = [(len(group.covered_resources or ()), len(group.flavors or ())) for group in groups]
    errors = [*_too_many(path, len(groups), _MOST_GROUPS)]
    for index, (resources, flavors) in enumerate(counts):
        errors += _too_many(f"{path}[{index}].coveredResources", resources, _MOST_IN_GROUP)
        errors += _too_many(f"{path}[{index}].flavors", flavors, _MOST_IN_GROUP)
        if resources * flavors > _MOST_PAIRS:
            problem = f"must have at most {_MOST_PAIRS} combinations of flavors and resources"
            errors.append(invalid(f"{path}[{index}]", resources * flavors, problem))
    for noun, total in (
        ("covered resources", sum(resources for resources, _ in counts)),
        ("flavors", sum(flavors for _, flavors in counts)),
    ):
        if total > _MOST_IN_ALL:
            errors.append(invalid(path, total, f"must have at most {_MOST_IN_ALL} {noun} in all groups together"))
    return errors


def _too_many(path: str, count: int, most: int) -> Errors:
    return [invalid(path, count, f"must have at most {most} items")] if count > most else []


def _flavor_errors(flavor: FlavorQuotas, covered: list[str], path: str, seen: set[str]) -> Errors:
    errors: Errors = []
    if not flavor.name:
        errors.append(required(f"{path}.name"))
    elif problem := subdomain_problem(flavor.name):
        errors.append(invalid(f"{path}.name", flavor.name, problem))
    elif flavor.name in seen:
        errors.append(duplicate(f"{path}.name", flavor.name))
    seen.add(flavor.name or "")
    resources = flavor.resources or []
    if [resource.name for resource in resources] != covered:
        problem = "must list the resources of coveredResources in the same order"
        errors.append(invalid(f"{path}.resources", [resource.name for resource in resources], problem))
    for index, resource in enumerate(resources):
        errors += _quota_errors(resource, f"{path}.resources[{index}]")
    return errors


def _quota_errors(quota: ResourceQuota, path: str) -> Errors:
    if quota.nominal_quota is None:
        return [required(f"{path}.nominalQuota")]
    errors: Errors = []
    for field, amount in (
        ("nominalQuota", quota.nominal_quota),
        ("borrowingLimit", quota.borrowing_limit),
        ("lendingLimit", quota.lending_limit),
    ):
        if amount is not None and (problem := amount_problem("quota", amount)):
            errors.append(invalid(f"{path}.{field}", str(amount), problem))
    if errors or quota.lending_limit is None:
        return errors
    if parse_quantity(quota.lending_limit) > parse_quantity(quota.nominal_quota):
        problem = "must be less than or equal to the nominalQuota"
        errors.append(invalid(f"{path}.lendingLimit", str(quota.lending_limit), problem))
    return errors


def limits_errors(groups: list[ResourceGroup], problem: str) -> Errors:
    """Limits of what is lent and borrowed, where there is nobody to share with."""
    errors: Errors = []
    for group, item in enumerate(groups):
        for at, flavor in enumerate(item.flavors or ()):
            for number, quota in enumerate(flavor.resources or ()):
                path = f"spec.resourceGroups[{group}].flavors[{at}].resources[{number}]"
                for field, limit in (("borrowingLimit", quota.borrowing_limit), ("lendingLimit", quota.lending_limit)):
                    if limit is not None:
                        errors.append(invalid(f"{path}.{field}", str(limit), problem))
    return errors
