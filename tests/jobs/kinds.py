"""Definitions of the kinds that are queued besides Jobs, with the types of their fields as published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from pilotage.model.custom_jobs import plural_of

Json = dict[str, Any]
_ANY: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_PODS: Json = {
    "type": "object",
    "properties": {"metadata": _ANY, "spec": {**_ANY, "required": ["containers"]}},
}


def definitions() -> dict[str, Json]:
    """CustomResourceDefinitions by kind."""
    path = Path(__file__).parents[1] / "data" / "kinds" / "definitions.yaml"
    return {one["kind"]: _definition(one) for one in yaml.safe_load(path.read_text())}


def _definition(given: Json) -> Json:
    plural = plural_of(given["kind"])
    schema = {"type": "object", "properties": {name: _schema(given[name]) for name in ("spec", "status")}}
    version = {
        "name": given["version"],
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # Names in the groups of Kubernetes need the approval of their community.
        "metadata": {
            "name": f"{plural}.{given['group']}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": given["group"],
            "names": {
                "kind": given["kind"],
                "plural": plural,
                "singular": given["kind"].lower(),
                "listKind": f"{given['kind']}List",
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def _schema(given: Any) -> Json:
    if isinstance(given, list):
        return {"type": "array", "items": _schema(given[0])}
    if isinstance(given, dict):
        if "*" in given:
            return {"type": "object", "additionalProperties": _schema(given["*"])}
        return {"type": "object", "properties": {name: _schema(one) for name, one in given.items()}}
    return {"any": _ANY, "list": {"type": "array", "items": _ANY}, "pods": _PODS}.get(given, {"type": given})
