"""What `status` a new object starts with.

Clients may not choose the status of a kind that has a status subresource: what they send is dropped. Nodes and
services keep theirs: a kubelet registers its node complete with capacity and conditions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pilotage.sandbox.kinds.crds import CRD_RESOURCE, accept_definition
from pilotage.sandbox.kinds.resources import ResourceType

Object = dict[str, Any]

_KEPT: Final = frozenset({"nodes", "services"})

# Fields that clients take for granted from the first read on.
_ZEROS: Final[Mapping[str, Mapping[str, int]]] = {
    "replicasets.apps": {"replicas": 0},
    "replicationcontrollers": {"replicas": 0},
    "statefulsets.apps": {"replicas": 0, "availableReplicas": 0},
    "daemonsets.apps": dict.fromkeys(
        ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"), 0
    ),
    "poddisruptionbudgets.policy": dict.fromkeys(
        ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"), 0
    ),
    "deployments.apps": {},
    "jobs.batch": {},
    "cronjobs.batch": {},
    "resourceclaims.resource.k8s.io": {},
}


def drop_sent_status(resource_type: ResourceType, obj: Object) -> None:
    """Before defaulting: forget what a client may not decide."""
    if resource_type.has_status and resource_type.storage not in _KEPT:
        obj.pop("status", None)
    if resource_type.storage == "namespaces":
        # The server's own hold: released when the namespace is empty.
        obj["spec"] = {"finalizers": ["kubernetes"]}


def begin_status(resource_type: ResourceType, obj: Object, now: str) -> None:
    """After defaulting: what the server's own controllers would write at once."""
    zeros = _ZEROS.get(resource_type.storage)
    if zeros is not None:
        obj["status"] = dict(zeros)
    elif resource_type.storage == CRD_RESOURCE:
        accept_definition(obj, now)
