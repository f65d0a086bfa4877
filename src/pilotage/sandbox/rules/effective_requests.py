"""What the containers of a pod request together, on raw JSON.

    sum of containers and restartable init containers, but at least what any init step needs

This serves the default of pod-level requests. Amounts that are no quantities are skipped: validation names them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from pilotage.model.quantity import format_quantity, parse_quantity

Amounts = dict[str, Fraction]


def is_pod_level_resource(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def container_requests(spec: Mapping[str, Any]) -> dict[str, str]:
    """Effective request per resource, in canonical form."""
    return {name: _text(name, amount) for name, amount in effective_amounts(spec, "requests").items()}


def effective_amounts(spec: Mapping[str, Any], kind: str) -> Amounts:
    """What all containers request (`requests`) or may use (`limits`) together."""
    total: Amounts = {}
    for container in _containers(spec, "containers"):
        _add(total, _amounts(container, kind))
    sidecars: Amounts = {}
    highest: Amounts = {}
    for container in _containers(spec, "initContainers"):
        step = _amounts(container, kind)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, step)
            step = dict(sidecars)
        else:
            _add(step, sidecars)
        _raise_to(highest, step)
    _add(total, sidecars)
    _raise_to(total, highest)
    return total


def amount_of(value: Any) -> Fraction | None:
    """The exact amount, None for what is no quantity."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return parse_quantity(value)
    except ValueError:
        return None


def _containers(spec: Mapping[str, Any], field: str) -> Iterable[Mapping[str, Any]]:
    items = spec.get(field)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _amounts(container: Mapping[str, Any], kind: str) -> Amounts:
    resources = container.get("resources")
    requests = resources.get(kind) if isinstance(resources, dict) else None
    if not isinstance(requests, dict):
        return {}
    return {name: amount for name, value in requests.items() if (amount := amount_of(value)) is not None}


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Fraction(0)) + amount


def _raise_to(total: Amounts, floor: Amounts) -> None:
    for name, amount in floor.items():
        total[name] = max(total.get(name, amount), amount)


def _text(name: str, amount: Fraction) -> str:
    return format_quantity(amount, "DecimalSI" if name == "cpu" else "BinarySI")
