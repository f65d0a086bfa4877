"""The short form of a node."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

_AMOUNTS = {"cpu": 4, "memory": "16Gi", "pods": 110}


def node_object(s: Json) -> Json:
    amounts = {resource: str(s.get(resource, default)) for resource, default in _AMOUNTS.items()}
    amounts |= {resource: str(amount) for resource, amount in s.get("extended", {}).items()}
    status: Json = {
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    if "features" in s:
        status["declaredFeatures"] = s["features"]
    spec: Json = {}
    if "taints" in s:
        spec["taints"] = [taint(text) for text in s["taints"]]
    if s.get("unschedulable"):
        spec["unschedulable"] = True
    labels = {"kubernetes.io/hostname": s["name"], **s.get("labels", {})}
    return {"metadata": {"labels": labels}, "spec": spec, "status": status}


def node_patch(s: Json) -> Json:
    amounts = {resource: str(s[resource]) for resource in _AMOUNTS if resource in s}
    amounts |= {resource: None if n is None else str(n) for resource, n in s.get("extended", {}).items()}
    status: Json = {"capacity": amounts, "allocatable": amounts} if amounts else {}
    if "features" in s:
        status["declaredFeatures"] = s["features"]
    spec: Json = {}
    if "taints" in s:
        spec["taints"] = [taint(text) for text in s["taints"]] or None
    if "unschedulable" in s:
        spec["unschedulable"] = True if s["unschedulable"] else None
    return {**({"spec": spec} if spec else {}), **({"status": status} if status else {})}


def taint(text: str) -> Json:
    """`key=value:Effect`, or `key:Effect`."""
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}
