"""Pieces of objects as cell texts: label sets, selectors, containers, numbers."""

from __future__ import annotations

from typing import Any, Final

from pilotage.sandbox.rules.json_fields import dict_or_empty, dicts_in, nested

NONE: Final = "<none>"


def count(value: Any) -> int:
    """A number from a status; 0 where there is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def text(value: Any, missing: str = "") -> str:
    """A scalar as text; `missing` for what is absent or empty."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) and value != "" else missing


def labels_text(labels: Any) -> str:
    """`a=1,b=2` in order of keys."""
    pairs = sorted(dict_or_empty(labels).items())
    return ",".join(f"{key}={text(value)}" for key, value in pairs) or NONE


def selector_text(selector: Any) -> str:
    """A label selector in the form that `kubectl -l` takes."""
    parts = [f"{key}={text(value)}" for key, value in sorted(dict_or_empty(nested(selector, "matchLabels")).items())]
    for requirement in dicts_in(selector, "matchExpressions"):
        key, operator = text(requirement.get("key")), requirement.get("operator")
        values = requirement.get("values")
        listed = ",".join(sorted(map(text, values))) if isinstance(values, list) else ""
        if operator == "Exists":
            parts.append(key)
        elif operator == "DoesNotExist":
            parts.append(f"!{key}")
        else:
            parts.append(f"{key} {str(operator).lower()} ({listed})")
    return ",".join(parts) or NONE


def containers_and_images(pod_spec: Any) -> tuple[str, str]:
    containers = dicts_in(pod_spec, "containers")
    names = ",".join(text(container.get("name")) for container in containers)
    return names, ",".join(text(container.get("image")) for container in containers)


def condition_is_true(status: Any, kind: str) -> bool:
    return any(
        condition.get("type") == kind and condition.get("status") == "True"
        for condition in dicts_in(status, "conditions")
    )
