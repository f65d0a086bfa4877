"""Pod: flat, small and quick to decode, because there are 100,000 of them.

A pod's JSON is some 4 KB, of which scheduling reads little, and most of that is equal in all pods of a workload.
Decoding therefore keeps per pod only what differs (name, uid, version, times, node) and shares the rest: labels,
annotations, owners, the spec without the node's name, and the status without its times (see `pod_wire`).
"""

from __future__ import annotations

from sys import intern

import msgspec
from msgspec.structs import replace

from pilotage.model.codec import Codec
from pilotage.model.frozen_map import EMPTY_MAP, FrozenMap
from pilotage.model.meta import Condition, OwnerReference, controller_of
from pilotage.model.pod_spec import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    PodOS,
    PodResourceClaim,
    PodSpec,
    PodSpecFields,
    ResourceRequirements,
    SchedulingGroup,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from pilotage.model.pod_status import ContainerStatus, PodResourceClaimStatus, PodStatus
from pilotage.model.pod_wire import (
    WirePod,
    shared_annotations,
    shared_labels,
    shared_owners,
    spec_of,
    status_of,
    unique_spec,
)

__all__ = [
    "POD_CODEC",
    "Affinity",
    "Condition",
    "Container",
    "ContainerPort",
    "ContainerStatus",
    "NodeAffinity",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodOS",
    "PodResourceClaim",
    "PodResourceClaimStatus",
    "PodSpec",
    "PodStatus",
    "ResourceRequirements",
    "SchedulingGroup",
    "Toleration",
    "TopologySpreadConstraint",
    "WeightedPodAffinityTerm",
    "decode_pod",
    "shared_spec",
]


class Pod(msgspec.Struct, frozen=True, eq=False, gc=False, kw_only=True):
    """A pod as the API server last sent it. Immutable; compared by identity."""

    name: str
    namespace: str = "default"
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: FrozenMap = EMPTY_MAP
    annotations: FrozenMap = EMPTY_MAP
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    node_name: str = ""
    spec: PodSpec
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        """ "namespace/name"."""
        return f"{self.namespace}/{self.name}"

    @property
    def priority(self) -> int:
        """`spec.priority`; 0 if it is not set."""
        return self.spec.priority or 0

    @property
    def is_terminating(self) -> bool:
        """Is it being deleted?"""
        return self.deletion_timestamp is not None

    @property
    def is_finished(self) -> bool:
        """Succeeded or Failed: uses no resources any more."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages the pod, such as its ReplicaSet."""
        return controller_of(self.owner_references)

    def with_node(self, node_name: str) -> Pod:
        """The same pod on another node; shares everything else."""
        return replace(self, node_name=node_name)


def decode_pod(data: bytes) -> Pod:
    """The pod in `data`; DecodeError names the pod and the field that is wrong."""
    return POD_CODEC.decode(data)


def shared_spec(fields: PodSpecFields) -> PodSpec:
    """The one PodSpec with this content; for those who build pods instead of decoding them.

    What only a template says (`TemplateSpec`) is left out.
    """
    own = {name: getattr(fields, name) for name in PodSpecFields.__struct_fields__}
    own["volumes"] = tuple(volume for volume in fields.volumes if volume.matters)
    return unique_spec(PodSpec(**own))


def _pod_of(wire: WirePod) -> Pod:
    metadata, spec = wire.metadata, wire.spec
    if not metadata.name:
        raise msgspec.ValidationError("Object missing required field `name` - at `$.metadata`")
    if spec is None:
        raise msgspec.ValidationError("Object missing required field `spec`")
    return Pod(
        name=metadata.name,
        namespace=intern(metadata.namespace),
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        generation=metadata.generation,
        labels=shared_labels.get(bytes(metadata.labels)),
        annotations=shared_annotations.get(bytes(metadata.annotations)),
        owner_references=shared_owners.get(bytes(metadata.owner_references)),
        creation_timestamp=metadata.creation_timestamp,
        deletion_timestamp=metadata.deletion_timestamp,
        finalizers=metadata.finalizers,
        node_name=intern(spec.node_name),
        spec=spec_of(spec),
        status=status_of(wire.status),
    )


POD_CODEC: Codec[Pod] = Codec("Pod", WirePod, _pod_of)
