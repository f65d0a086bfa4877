"""Objects for tests, in few words."""

from __future__ import annotations

from typing import Any

from .client import Json


def node(name: str, *, cpu: str = "4", labels: Json | None = None, taints: list[Json] | None = None) -> Json:
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": taints or []},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}],
        },
    }


def pod(name: str, *, cpu: str = "100m", priority_class: str = "", grace: int = 0, **spec: Any) -> Json:
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    chosen: Json = {"containers": [container], "terminationGracePeriodSeconds": grace, **spec}
    if priority_class:
        chosen["priorityClassName"] = priority_class
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": chosen,
    }


def priority_class(name: str, value: int) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Json:
    return {"key": key, "value": value, "effect": effect}


def condition(obj: Json, type_: str) -> Json | None:
    found = obj.get("status", {}).get("conditions") or ()
    return next((entry for entry in found if entry["type"] == type_), None)
