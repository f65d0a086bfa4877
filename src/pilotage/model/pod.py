"""Pod: flat, small and quick to decode, because there are 100,000 of them.

A pod's JSON is some 4 KB, of which scheduling reads little, and most of that is equal in all pods of a workload.
Decoding therefore keeps per pod only what differs (name, uid, version, times, node) and shares the rest: labels,
annotations and owners by their bytes, the spec by its content without the node name, conditions likewise.
"""

from __future__ import annotations

from sys import intern
from typing import Any

import msgspec
from msgspec.structs import asdict, force_setattr, replace

from pilotage.model.codec import Codec
from pilotage.model.frozen_map import EMPTY_MAP, FrozenMap
from pilotage.model.interning import Shared, WeakShared
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

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Pod(msgspec.Struct, frozen=True, eq=False, gc=False, kw_only=True):
    """A pod as the API server last told it. Immutable; compared by identity."""

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
        return self.spec.priority or 0

    @property
    def is_terminating(self) -> bool:
        return self.deletion_timestamp is not None

    @property
    def is_finished(self) -> bool:
        """Succeeded or Failed: uses no resources any more."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def controller(self) -> OwnerReference | None:
        return controller_of(self.owner_references)

    def with_node(self, node_name: str) -> Pod:
        """The same pod on another node; shares everything else."""
        return replace(self, node_name=node_name)


class _WireMeta(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: msgspec.Raw = msgspec.Raw()
    annotations: msgspec.Raw = msgspec.Raw()
    owner_references: msgspec.Raw = msgspec.Raw()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()


class _WireSpec(PodSpecFields, frozen=True):
    node_name: str = ""


class _WirePod(msgspec.Struct, gc=False):
    metadata: _WireMeta
    spec: _WireSpec
    status: PodStatus = PodStatus()


def decode_pod(data: bytes) -> Pod:
    """The pod in `data`; DecodeError names the pod and the field that is wrong."""
    return POD_CODEC.decode(data)


def shared_spec(spec: PodSpecFields) -> PodSpec:
    """The one PodSpec with this content; for those who build pods instead of decoding them."""
    return _intern_spec(spec)


def _pod_of(wire: _WirePod) -> Pod:
    metadata, spec = wire.metadata, wire.spec
    if not metadata.name:
        raise msgspec.ValidationError("Object missing required field `name` - at `$.metadata`")
    node_name = spec.node_name
    if node_name:
        node_name = intern(node_name)
        force_setattr(spec, "node_name", "")
    return Pod(
        name=metadata.name,
        namespace=intern(metadata.namespace),
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        generation=metadata.generation,
        labels=_labels.get(bytes(metadata.labels)),
        annotations=_annotations.get(bytes(metadata.annotations)),
        owner_references=_owners.get(bytes(metadata.owner_references)),
        creation_timestamp=metadata.creation_timestamp,
        deletion_timestamp=metadata.deletion_timestamp,
        finalizers=metadata.finalizers,
        node_name=node_name,
        spec=_intern_spec(spec),
        status=_share_status(wire.status),
    )


def _decode_map(field: str, data: bytes) -> FrozenMap:
    content = _decode_part(_map_decoder, field, data) or {}
    content.pop(_LAST_APPLIED, None)
    return FrozenMap(content) if content else EMPTY_MAP


def _decode_part(decoder: msgspec.json.Decoder[Any], field: str, data: bytes) -> Any:
    if not data:
        return None
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise msgspec.ValidationError(f"{problem} - at `$.metadata.{field}{path or '`'}") from error


_map_decoder = msgspec.json.Decoder(dict[str, str] | None)
_owners_decoder = msgspec.json.Decoder(tuple[OwnerReference, ...] | None)
_labels = Shared(lambda data: _decode_map("labels", data))
_annotations = Shared(lambda data: _decode_map("annotations", data))
_owners: Shared[tuple[OwnerReference, ...]] = Shared(
    lambda data: _decode_part(_owners_decoder, "ownerReferences", data) or ()
)
_specs: WeakShared[PodSpec] = WeakShared()
_encode = msgspec.msgpack.Encoder().encode


def _intern_spec(fields: PodSpecFields) -> PodSpec:
    if fields.volumes:
        force_setattr(fields, "volumes", tuple(volume for volume in fields.volumes if volume.matters))
    content = _encode(fields)
    known = _specs.find(content)
    if known is not None:
        return known
    own = {name: value for name, value in asdict(fields).items() if name not in ("node_name", "memo")}
    return _specs.remember(content, PodSpec(**own))


def _status_of(data: bytes) -> PodStatus:
    return _status_decoder.decode(data)


_status_decoder = msgspec.msgpack.Decoder(PodStatus)
_statuses = Shared(_status_of)


def _share_status(status: PodStatus) -> PodStatus:
    start_time = status.start_time
    if start_time is None:
        return _statuses.get(_encode(status))
    force_setattr(status, "start_time", None)
    return replace(_statuses.get(_encode(status)), start_time=start_time)


POD_CODEC: Codec[Pod] = Codec("Pod", _WirePod, _pod_of)
