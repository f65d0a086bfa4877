"""How a pod stands in JSON, and how equal parts of many pods become one object.

A pod's JSON is decoded only as far as needed to cut out what differs from pod to pod (name, times, node, the random
name of the token volume); the rest stays raw bytes. These bytes are looked up, and only content that was never seen
before is decoded into typed structs. Equality is judged on the typed content with sorted keys, not on the bytes: a
server may write the same spec in another order.
"""

from __future__ import annotations

from functools import cached_property
from hashlib import blake2b
from typing import Any
from weakref import ReferenceType, WeakValueDictionary, ref

import msgspec

from pilotage.model.frozen_map import EMPTY_MAP, FrozenMap
from pilotage.model.interning import LARGE, InUse, Shared
from pilotage.model.meta import Condition, OwnerReference
from pilotage.model.pod_spec import PodSpec, PodSpecFields
from pilotage.model.pod_status import PodStatus
from pilotage.model.volumes import Volume

Raw = msgspec.Raw
_ABSENT = msgspec.Raw()
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class _Wire(msgspec.Struct, rename="camel", omit_defaults=True, gc=False):
    """Base of the structs on the wire; what is raw is looked at only when it is new."""


class WireMeta(_Wire):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: Raw = _ABSENT
    annotations: Raw = _ABSENT
    owner_references: Raw = _ABSENT
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()


class WireMount(_Wire):
    bind_mount_options: Raw = _ABSENT


class WireContainer(_Wire):
    name: Raw = _ABSENT
    image: Raw = _ABSENT
    resources: Raw = _ABSENT
    ports: Raw = _ABSENT
    restart_policy: Raw = _ABSENT
    restart_policy_rules: Raw = _ABSENT
    volume_mounts: tuple[WireMount, ...] = ()


class WireSpec(_Wire):
    node_name: str = ""
    scheduler_name: Raw = _ABSENT
    priority: Raw = _ABSENT
    priority_class_name: Raw = _ABSENT
    preemption_policy: Raw = _ABSENT
    node_selector: Raw = _ABSENT
    affinity: Raw = _ABSENT
    tolerations: Raw = _ABSENT
    topology_spread_constraints: Raw = _ABSENT
    containers: tuple[WireContainer, ...] = ()
    init_containers: tuple[WireContainer, ...] = ()
    ephemeral_containers: tuple[WireContainer, ...] = ()
    overhead: Raw = _ABSENT
    resources: Raw = _ABSENT
    volumes: tuple[Volume, ...] = ()
    resource_claims: Raw = _ABSENT
    scheduling_gates: Raw = _ABSENT
    host_network: Raw = _ABSENT
    host_users: Raw = _ABSENT
    os: Raw = _ABSENT
    termination_grace_period_seconds: Raw = _ABSENT
    scheduling_group: Raw = _ABSENT


class WireContainerStatus(_Wire):
    name: Raw = _ABSENT
    resources: Raw = _ABSENT
    allocated_resources: Raw = _ABSENT


class WireStatus(_Wire):
    phase: Raw = _ABSENT
    nominated_node_name: Raw = _ABSENT
    start_time: str | None = None
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[WireContainerStatus, ...] = ()
    init_container_statuses: tuple[WireContainerStatus, ...] = ()
    resources: Raw = _ABSENT
    allocated_resources: Raw = _ABSENT
    resize: Raw = _ABSENT
    resource_claim_statuses: Raw = _ABSENT
    extended_resource_claim_status: Raw = _ABSENT
    observed_generation: Raw = _ABSENT


class WirePod(_Wire):
    metadata: WireMeta
    spec: WireSpec | None = None
    status: WireStatus | None = None


_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.msgpack.Encoder(order="sorted").encode


def decode_part(decoder: msgspec.json.Decoder[Any], path: str, data: bytes) -> Any:
    """Decode one raw part; a complaint names the path in the whole object."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        problem, _, rest = str(error).partition(" - at `$")
        raise msgspec.ValidationError(f"{problem} - at `$.{path}{rest or '`'}") from error


# --- metadata ---------------------------------------------------------------------------------------------------------

_map_decoder = msgspec.json.Decoder(dict[str, str])
_owners_decoder = msgspec.json.Decoder(tuple[OwnerReference, ...])


def _decode_map(path: str, data: bytes) -> FrozenMap:
    content = decode_part(_map_decoder, path, data) if data else {}
    content.pop(_LAST_APPLIED, None)
    return FrozenMap(content) if content else EMPTY_MAP


def _decode_owners(data: bytes) -> tuple[OwnerReference, ...]:
    owners: tuple[OwnerReference, ...] = decode_part(_owners_decoder, "metadata.ownerReferences", data) if data else ()
    return owners


shared_labels: Shared[FrozenMap] = Shared(lambda data: _decode_map("metadata.labels", data))
shared_annotations: Shared[FrozenMap] = Shared(lambda data: _decode_map("metadata.annotations", data))
shared_owners: Shared[tuple[OwnerReference, ...]] = Shared(_decode_owners)


# --- spec -------------------------------------------------------------------------------------------------------------


class _PartOfSpec:
    """One field of the spec. Specs that differ elsewhere (a claim, a node name) still share their containers."""

    def __init__(self, field: msgspec.structs.FieldInfo) -> None:
        self.name = field.name
        self._path = f"spec.{field.encode_name}"
        self._type = field.type
        self._shared: Shared[Any] = Shared(self._decode, limit=4096)

    def of(self, wire: WireSpec) -> Any:
        """The typed value of this field; None if it is absent."""
        value = getattr(wire, self.name)
        if isinstance(value, Raw):
            return self._shared.get(bytes(value)) if value is not _ABSENT else None
        return self._shared.get(_encode(value)) if value else None

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(self._type)

    def _decode(self, data: bytes) -> Any:
        return decode_part(self._decoder, self._path, data)


_spec_parts = [_PartOfSpec(field) for field in msgspec.structs.fields(PodSpecFields)]
# What the scheduler derives from a spec hangs on it, so a spec lives exactly as long as someone uses it.
_specs: WeakValueDictionary[bytes, PodSpec] = WeakValueDictionary()
_specs_by_bytes: Shared[list[ReferenceType[PodSpec]]] = Shared(lambda _: [])
_large_specs: InUse[PodSpec] = InUse()


def spec_of(wire: WireSpec) -> PodSpec:
    """The one PodSpec with this content, the node's name aside. Blanks in `wire` what is the pod's own."""
    wire.node_name = ""
    if wire.volumes:
        wire.volumes = tuple(volume for volume in wire.volumes if volume.matters)
    content = _encode(wire)
    if len(content) > LARGE:
        return _large_specs.get(content, lambda _: _decode_spec(wire))
    seen = _specs_by_bytes.get(content)
    spec = seen[0]() if seen else None
    if spec is None:
        spec = _decode_spec(wire)
        seen[:] = [ref(spec)]
    return spec


def _decode_spec(wire: WireSpec) -> PodSpec:
    parts = {part.name: part.of(wire) for part in _spec_parts}
    return unique_spec(PodSpec(**{name: value for name, value in parts.items() if value is not None}))


def unique_spec(spec: PodSpec) -> PodSpec:
    """The one PodSpec in use with the content of `spec`."""
    fields = [getattr(spec, part.name) for part in _spec_parts]
    return _specs.setdefault(blake2b(_encode_sorted(fields), digest_size=16).digest(), spec)


# --- status -----------------------------------------------------------------------------------------------------------

_status_decoder = msgspec.json.Decoder(PodStatus)
_statuses: Shared[PodStatus] = Shared(lambda data: decode_part(_status_decoder, "status", data))
_NO_STATUS = PodStatus()


def status_of(wire: WireStatus | None) -> PodStatus:
    """The status; everything in it but the start time is shared."""
    if wire is None:
        return _NO_STATUS
    start_time = wire.start_time
    wire.start_time = None
    status = _statuses.get(_encode(wire))
    return status if start_time is None else status.started_at(start_time)
