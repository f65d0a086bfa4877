"""How the lists of the built-in kinds merge under a strategic merge patch.

Kubernetes declares this in the struct tags of its types; here it is a tree of `Fields` per kind. A field that is not
listed follows the general rule: objects merge field by field, anything else (lists too) is replaced. `Fields` of a
field says one of:

    nested(...)            an object with special fields below it
    by("name", ...)        a list of objects that merges by the value of a key
    union()                a list of scalars that merges as an ordered set
    replaced()             an object that is replaced as a whole
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from pilotage.sandbox.kinds.builtin_groups import is_builtin


@dataclass(frozen=True, slots=True)
class Fields:
    """The merge behaviour of one field and of the fields below it."""

    below: Mapping[str, Fields] = field(default_factory=lambda: MappingProxyType({}))
    merge_key: str = ""
    is_union: bool = False
    is_replaced: bool = False


def nested(**below: Fields) -> Fields:
    return Fields(below)


def by(merge_key: str, below: Fields | None = None) -> Fields:
    return Fields(below.below if below else MappingProxyType({}), merge_key=merge_key)


def union() -> Fields:
    return Fields(is_union=True)


def replaced() -> Fields:
    return Fields(is_replaced=True)


ORDINARY: Final = Fields()

_METADATA: Final = nested(ownerReferences=by("uid"), finalizers=union())

_CONTAINER: Final = nested(
    ports=by("containerPort"),
    env=by("name"),
    volumeMounts=by("mountPath"),
    volumeDevices=by("devicePath"),
)

_POD_SPEC: Final = nested(
    containers=by("name", _CONTAINER),
    initContainers=by("name", _CONTAINER),
    ephemeralContainers=by("name", _CONTAINER),
    volumes=by("name"),
    imagePullSecrets=by("name"),
    hostAliases=by("ip"),
    topologySpreadConstraints=by("topologyKey"),
    schedulingGates=by("name"),
    resourceClaims=by("name"),
)

_POD_STATUS: Final = nested(
    conditions=by("type"),
    podIPs=by("ip"),
    hostIPs=by("ip"),
    resourceClaimStatuses=by("name"),
)

_TEMPLATE: Final = nested(metadata=_METADATA, spec=_POD_SPEC)
_CONDITIONS: Final = nested(conditions=by("type"))
_WORKLOAD: Final = nested(metadata=_METADATA, spec=nested(template=_TEMPLATE), status=_CONDITIONS)
_WITH_CONDITIONS: Final = nested(metadata=_METADATA, status=_CONDITIONS)
_ONLY_METADATA: Final = nested(metadata=_METADATA)
_WEBHOOKS: Final = nested(metadata=_METADATA, webhooks=by("name"))

_KINDS: Final[Mapping[str, Fields]] = {
    "Pod": nested(metadata=_METADATA, spec=_POD_SPEC, status=_POD_STATUS),
    "PodTemplate": nested(metadata=_METADATA, template=_TEMPLATE),
    "Node": nested(
        metadata=_METADATA,
        spec=nested(podCIDRs=union()),
        status=nested(conditions=by("type"), addresses=by("type")),
    ),
    "Namespace": _WITH_CONDITIONS,
    "Service": nested(metadata=_METADATA, spec=nested(ports=by("port")), status=_CONDITIONS),
    "ServiceAccount": nested(metadata=_METADATA, secrets=by("name")),
    "PersistentVolumeClaim": _WITH_CONDITIONS,
    "ReplicationController": _WORKLOAD,
    "ReplicaSet": _WORKLOAD,
    "Deployment": _WORKLOAD,
    "DaemonSet": _WORKLOAD,
    "StatefulSet": _WORKLOAD,
    "Job": _WORKLOAD,
    "CronJob": nested(
        metadata=_METADATA,
        spec=nested(jobTemplate=nested(metadata=_METADATA, spec=nested(template=_TEMPLATE))),
    ),
    "PodDisruptionBudget": nested(metadata=_METADATA, spec=nested(selector=replaced()), status=_CONDITIONS),
    "HorizontalPodAutoscaler": _WITH_CONDITIONS,
    "CSINode": nested(metadata=_METADATA, spec=nested(drivers=by("name"))),
    "ResourceClaim": nested(metadata=_METADATA, status=nested(reservedFor=by("uid"))),
    "PodGroup": nested(
        metadata=_METADATA,
        spec=nested(resourceClaims=by("name")),
        status=nested(conditions=by("type"), resourceClaimStatuses=by("name")),
    ),
    "APIService": _WITH_CONDITIONS,
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingWebhookConfiguration": _WEBHOOKS,
}


def merge_fields(kind: str, obj: Mapping[str, Any]) -> Fields | None:
    """The merge behaviour of a built-in kind, None for a custom resource."""
    if not is_builtin(obj):
        return None
    return _KINDS.get(kind, _ONLY_METADATA)
