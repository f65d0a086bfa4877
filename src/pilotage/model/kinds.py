"""All kinds that scheduling reads: where they live in the API and how they are decoded.

`KINDS` is keyed by the resource name as it stands in the URL ("pods", "resourceclaims").
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from pilotage.model import coordination, kueue, limit_ranges, pod_group, policy, resource, storage, workloads
from pilotage.model.codec import Bookmark, Codec, ListPage, RawCodec, StatusError, WatchEvent
from pilotage.model.meta import ApiObject
from pilotage.model.node import Node
from pilotage.model.pod import POD_CODEC

__all__ = [
    "KINDS",
    "WATCHED",
    "WATCHED_FOR_QUEUEING",
    "Bookmark",
    "KindInfo",
    "ListPage",
    "StatusError",
    "WatchEvent",
    "kind_of",
]


@dataclass(frozen=True, slots=True)
class KindInfo:
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    codec: Codec[Any]
    other_version: str = ""
    """Read the same way, where the API server does not have the kind in its own version."""
    _root: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Every request begins with it.
        object.__setattr__(self, "_root", f"/{'apis' if self.group else 'api'}/{self.api_version}")

    @property
    def api_version(self) -> str:
        """ "v1" or "apps/v1"."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def decode(self, data: bytes) -> Any:
        """One object; DecodeError if it is none of this kind."""
        return self.codec.decode(data)

    def decode_list(self, data: bytes) -> ListPage:
        """One page of a list; objects that do not decode are in `errors`."""
        return self.codec.decode_list(data)

    def decode_events(self, data: bytes) -> list[WatchEvent]:
        """Complete lines of a watch; an object that does not decode is a DecodeError in its event's place."""
        return self.codec.decode_events(data)

    def keeping_json(self) -> KindInfo:
        """The same kind, whose objects keep the JSON that they were read from (`codec.json_of`)."""
        return replace(self, codec=RawCodec(self.codec))

    def in_other_version(self) -> KindInfo:
        """The same kind under its other version, if it has one."""
        return replace(self, version=self.other_version, other_version=self.version) if self.other_version else self

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """The URL path of the collection (in all namespaces or one) or of one object."""
        if namespace and self.namespaced:
            collection = f"{self._root}/namespaces/{namespace}/{self.plural}"
        else:
            collection = f"{self._root}/{self.plural}"
        return f"{collection}/{name}" if name else collection


def kind_of(kind: str) -> KindInfo | None:
    """The entry for a kind's name, such as "Pod"."""
    return _BY_KIND.get(kind)


def named(wire: ApiObject) -> ApiObject:
    """What every object must have: a name."""
    if not wire.metadata.name:
        raise msgspec.ValidationError("Object missing required field `name` - at `$.metadata`")
    return wire


def _kind(group_version: str, plural: str, struct: type[ApiObject], *, namespaced: bool) -> KindInfo:
    group, _, version = group_version.rpartition("/")
    return KindInfo(group, version, plural, struct.__name__, namespaced, Codec(struct.__name__, struct, named))


_CORE = [
    KindInfo("", "v1", "pods", "Pod", True, POD_CODEC),
    _kind("v1", "nodes", Node, namespaced=False),
    _kind("v1", "namespaces", policy.Namespace, namespaced=False),
    _kind("v1", "limitranges", limit_ranges.LimitRange, namespaced=True),
    _kind("v1", "services", workloads.Service, namespaced=True),
    _kind("v1", "replicationcontrollers", workloads.ReplicationController, namespaced=True),
    _kind("v1", "persistentvolumes", storage.PersistentVolume, namespaced=False),
    _kind("v1", "persistentvolumeclaims", storage.PersistentVolumeClaim, namespaced=True),
]
_GROUPS = [
    _kind("apps/v1", "deployments", workloads.Deployment, namespaced=True),
    _kind("apps/v1", "replicasets", workloads.ReplicaSet, namespaced=True),
    _kind("apps/v1", "statefulsets", workloads.StatefulSet, namespaced=True),
    _kind("batch/v1", "jobs", workloads.Job, namespaced=True),
    _kind("policy/v1", "poddisruptionbudgets", policy.PodDisruptionBudget, namespaced=True),
    _kind("scheduling.k8s.io/v1", "priorityclasses", policy.PriorityClass, namespaced=False),
    replace(
        _kind("scheduling.k8s.io/v1beta1", "podgroups", pod_group.PodGroup, namespaced=True), other_version="v1alpha2"
    ),
    _kind("node.k8s.io/v1", "runtimeclasses", policy.RuntimeClass, namespaced=False),
    _kind("coordination.k8s.io/v1", "leases", coordination.Lease, namespaced=True),
    _kind("events.k8s.io/v1", "events", coordination.Event, namespaced=True),
    _kind("storage.k8s.io/v1", "storageclasses", storage.StorageClass, namespaced=False),
    _kind("storage.k8s.io/v1", "csinodes", storage.CSINode, namespaced=False),
    _kind("storage.k8s.io/v1", "csidrivers", storage.CSIDriver, namespaced=False),
    _kind("storage.k8s.io/v1", "csistoragecapacities", storage.CSIStorageCapacity, namespaced=True),
    _kind("storage.k8s.io/v1", "volumeattachments", storage.VolumeAttachment, namespaced=False),
    _kind("resource.k8s.io/v1", "resourceclaims", resource.ResourceClaim, namespaced=True),
    _kind("resource.k8s.io/v1", "resourceclaimtemplates", resource.ResourceClaimTemplate, namespaced=True),
    _kind("resource.k8s.io/v1", "resourceslices", resource.ResourceSlice, namespaced=False),
    _kind("resource.k8s.io/v1", "deviceclasses", resource.DeviceClass, namespaced=False),
    _kind("resource.k8s.io/v1", "devicetaintrules", resource.DeviceTaintRule, namespaced=False),
]
_KUEUE = [
    _kind("kueue.x-k8s.io/v1beta2", "workloads", kueue.Workload, namespaced=True),
    _kind("kueue.x-k8s.io/v1beta2", "localqueues", kueue.LocalQueue, namespaced=True),
    _kind("kueue.x-k8s.io/v1beta2", "clusterqueues", kueue.ClusterQueue, namespaced=False),
    _kind("kueue.x-k8s.io/v1beta2", "cohorts", kueue.Cohort, namespaced=False),
    _kind("kueue.x-k8s.io/v1beta2", "resourceflavors", kueue.ResourceFlavor, namespaced=False),
    _kind("kueue.x-k8s.io/v1beta2", "workloadpriorityclasses", kueue.WorkloadPriorityClass, namespaced=False),
    _kind("kueue.x-k8s.io/v1beta2", "admissionchecks", kueue.AdmissionCheck, namespaced=False),
]

KINDS: dict[str, KindInfo] = {info.plural: info for info in (*_CORE, *_GROUPS, *_KUEUE)}
_BY_KIND = {info.kind: info for info in KINDS.values()}

WATCHED = (
    "nodes",
    "pods",
    "namespaces",
    "services",
    "replicationcontrollers",
    "replicasets",
    "statefulsets",
    "poddisruptionbudgets",
    "persistentvolumes",
    "persistentvolumeclaims",
    "storageclasses",
    "csinodes",
    "csidrivers",
    "csistoragecapacities",
    "volumeattachments",
    "resourceclaims",
    "resourceslices",
    "deviceclasses",
    "devicetaintrules",
)
"""The kinds that a scheduler watches whatever its plugins are."""
POD_GROUPS = "podgroups"
"""Watched too, if groups are scheduled (GenericWorkload); the API server may not have it."""

WATCHED_FOR_QUEUEING = (
    "namespaces",
    "priorityclasses",
    "runtimeclasses",
    "limitranges",
    "workloadpriorityclasses",
    "resourceflavors",
    "cohorts",
    "admissionchecks",
    "clusterqueues",
    "localqueues",
    "workloads",
    "jobs",
    "pods",
)
"""The kinds that workload queueing watches."""
