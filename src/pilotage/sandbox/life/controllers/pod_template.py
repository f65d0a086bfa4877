"""Pods made from the template of a workload: a fresh copy each, owned by the workload.

Copies are decoded from bytes, which is several times faster than a deep copy of the dicts and shares nothing between
the pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from pilotage.sandbox.life.controllers.controller import controller_reference

Object: TypeAlias = dict[str, Any]


class PodTemplate:
    """What the pods of one workload have in common."""

    def __init__(self, owner: Object, *, labels: Mapping[str, str] | None = None, finalizers: list[str] | None = None):
        template = owner["spec"]["template"]
        asked = template.get("metadata") or {}
        metadata: Object = {
            "generateName": f"{owner['metadata']['name']}-",
            "namespace": owner["metadata"]["namespace"],
            "labels": {**(asked.get("labels") or {}), **(labels or {})},
            "ownerReferences": [controller_reference(owner)],
        }
        if asked.get("annotations"):
            metadata["annotations"] = asked["annotations"]
        if names := [*(asked.get("finalizers") or ()), *(finalizers or ())]:
            metadata["finalizers"] = names
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}
        self._encoded = msgspec.json.encode(pod)

    def make(self) -> Object:
        """A new pod, to be created as it is or changed first."""
        pod: Object = msgspec.json.decode(self._encoded)
        return pod
