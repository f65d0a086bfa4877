"""The scale subresource: one small object to read and set the number of replicas of any scalable kind.

Built-in kinds have their replicas at fixed paths; a custom kind's definition names the paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pilotage.sandbox.errors import FieldError, invalid
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.kinds.shapes import check_options_shape

Object = dict[str, Any]

_BUILTIN_PATHS: Final[Mapping[str, str]] = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
}


def scale_of(resource_type: ResourceType, obj: Mapping[str, Any]) -> Object:
    """The autoscaling/v1 Scale that stands for the object."""
    paths = resource_type.scale_paths or _BUILTIN_PATHS
    metadata = obj["metadata"]
    carried = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: metadata[field] for field in carried if field in metadata},
        "spec": {"replicas": _number_at(obj, paths.get("specReplicasPath"))},
        "status": {
            "replicas": _number_at(obj, paths.get("statusReplicasPath")),
            "selector": _selector_text(resource_type, obj),
        },
    }


def scaled(resource_type: ResourceType, obj: Object, scale: Mapping[str, Any]) -> Object:
    """The object with the replicas that `scale` asks for; `obj` is altered."""
    check_options_shape("Scale", scale)
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    name = obj["metadata"]["name"]
    if replicas < 0:
        error = FieldError("spec.replicas", "must be greater than or equal to 0", replicas)
        raise invalid("Scale", "autoscaling", name, [error])
    path = (resource_type.scale_paths or _BUILTIN_PATHS)["specReplicasPath"]
    node = obj
    *parents, leaf = path.strip(".").split(".")
    for parent in parents:
        node = node.setdefault(parent, {})
    node[leaf] = replicas
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version:
        obj["metadata"]["resourceVersion"] = version
    return obj


def _number_at(obj: Mapping[str, Any], path: str | None) -> int:
    found: Any = obj
    for part in (path or "").strip(".").split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found if isinstance(found, int) else 0


def _selector_text(resource_type: ResourceType, obj: Mapping[str, Any]) -> str:
    if resource_type.scale_paths is not None:
        found: Any = obj
        for part in (resource_type.scale_paths.get("labelSelectorPath") or "?").strip(".").split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        return found if isinstance(found, str) else ""
    selector = (obj.get("spec") or {}).get("selector") or {}
    labels = selector.get("matchLabels") or {} if resource_type.group else selector
    parts = [f"{key}={value}" for key, value in sorted(labels.items())]
    for expression in (selector.get("matchExpressions") or ()) if resource_type.group else ():
        parts.append(_expression_text(expression))
    return ",".join(parts)


def _expression_text(expression: Mapping[str, Any]) -> str:
    key, values = expression.get("key"), ",".join(expression.get("values") or ())
    match expression.get("operator"):
        case "Exists":
            return f"{key}"
        case "DoesNotExist":
            return f"!{key}"
        case operator:
            return f"{key} {str(operator).lower()} ({values})"
