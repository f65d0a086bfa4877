"""The few facts about each object that controllers ask for all the time, read straight from the stored bytes.

Every write to the store reaches the controllers. Decoding each 4 KB pod into dicts to learn its phase would cost more
than everything else they do, so one typed decode per change picks out what decides if a controller is concerned: who
owns the object, whether it is being deleted, and for pods and nodes a little more. To act on an object it reads
all of it through the Api.

Facts are immutable and kept for every object, so values that many objects share (owners, phases, node names) are
shared in memory too.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import Final

import msgspec

from pilotage.model.node import Taint
from pilotage.sandbox.storage.records import NO_LABELS, Key, Record

SIMULATED: Final = "sandbox.pilotage.dev/simulated"
STOPPED: Final = "sandbox.pilotage.dev/stopped"
_PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
_SAID: Final[dict[str | None, bool]] = {"true": True, "false": False}

_log = logging.getLogger(__name__)


class Owner(msgspec.Struct, frozen=True, rename="camel"):
    """One of an object's ownerReferences."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class PodAnnotations(msgspec.Struct, frozen=True):
    """What a pod's annotations ask of its simulated kubelet, as written; see `pod_plan`."""

    start_delay: str | None = msgspec.field(default=None, name="sandbox.pilotage.dev/start-delay")
    run_for: str | None = msgspec.field(default=None, name="sandbox.pilotage.dev/run-for")
    exit_code: str | None = msgspec.field(default=None, name="sandbox.pilotage.dev/exit-code")
    fail: str | None = msgspec.field(default=None, name="sandbox.pilotage.dev/fail")
    never_ready: str | None = msgspec.field(default=None, name="sandbox.pilotage.dev/never-ready")
    ready_after: str | None = msgspec.field(default=None, name="sandbox.pilotage.dev/ready-after")
    unready_after: str | None = msgspec.field(default=None, name="sandbox.pilotage.dev/unready-after")
    startup_after: str | None = msgspec.field(default=None, name="sandbox.pilotage.dev/startup-after")
    unhealthy_after: str | None = msgspec.field(default=None, name="sandbox.pilotage.dev/unhealthy-after")


NO_ANNOTATIONS: Final = PodAnnotations()


class ObjectFacts(msgspec.Struct, frozen=True, gc=False):
    """What is known about any object."""

    key: Key
    uid: str
    owners: tuple[Owner, ...] = ()
    controller: Owner | None = None
    """The owner that manages this object, if any."""
    is_deleting: bool = False
    finalizers: tuple[str, ...] = ()
    labels: Mapping[str, str] = NO_LABELS


class NodeObjectFacts(ObjectFacts, frozen=True, gc=False, kw_only=True):
    is_simulated: bool | None = None
    """What its annotation says: True, False (its pods are left alone), or nothing."""
    address: str = ""
    has_ready_condition: bool = False
    readiness: str = ""
    """The status of its Ready condition: True, False or Unknown."""
    is_unschedulable: bool = False
    is_stopped: bool = False
    """Its kubelet plays dead."""
    has_pressure: bool = False
    taints: tuple[Taint, ...] = ()


class PodFacts(ObjectFacts, frozen=True, gc=False, kw_only=True):
    created: str = ""
    node_name: str = ""
    phase: str = "Pending"
    is_ready: bool = False
    ready_since: str = ""
    restarts: int = 0
    grace_seconds: int = 0
    restart_policy: str = "Always"
    annotations: PodAnnotations = NO_ANNOTATIONS
    has_claims: bool = False
    has_ephemeral_volumes: bool = False
    group: str = ""
    """The name of its PodGroup."""
    ip: str = ""
    has_deadline: bool = False
    has_command: bool = False
    """A container has a command, so that it may end by itself."""
    is_observed: bool = True
    """The kubelet has seen the latest spec."""
    target_node: str = ""
    """The one node that its affinity names: that of a DaemonSet's pod."""

    @property
    def is_finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def is_active(self) -> bool:
        """Counts as a living replica of its controller."""
        return not self.is_deleting and not self.is_finished


class PodGroupFacts(ObjectFacts, frozen=True, gc=False, kw_only=True):
    has_claims: bool = False


class ClaimFacts(ObjectFacts, frozen=True, gc=False, kw_only=True):
    consumers: tuple[str, ...] = ()
    """The uids of those that reserved the ResourceClaim."""


class _Meta(msgspec.Struct, rename="camel"):
    owner_references: tuple[Owner, ...] | None = None
    finalizers: tuple[str, ...] | None = None
    deletion_timestamp: str | None = None


class _Head(msgspec.Struct):
    metadata: _Meta


class _NodeAnnotations(msgspec.Struct):
    simulated: str | None = msgspec.field(default=None, name=SIMULATED)
    stopped: str | None = msgspec.field(default=None, name=STOPPED)


class _NodeMeta(_Meta, rename="camel"):
    annotations: _NodeAnnotations | None = None


class _Address(msgspec.Struct):
    type: str
    address: str


class _Condition(msgspec.Struct, rename="camel"):
    type: str
    status: str
    last_transition_time: str | None = None


class _NodeStatus(msgspec.Struct):
    addresses: list[_Address] | None = None
    conditions: list[_Condition] | None = None


class _NodeSpec(msgspec.Struct):
    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class _Node(msgspec.Struct):
    metadata: _NodeMeta
    spec: _NodeSpec | None = None
    status: _NodeStatus | None = None


class _PodMeta(_Meta, rename="camel"):
    generation: int = 0
    annotations: PodAnnotations | None = None
    creation_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class _Anything(msgspec.Struct):
    """An object of which only its being there matters."""


class _Volume(msgspec.Struct):
    ephemeral: _Anything | None = None


class _SchedulingGroup(msgspec.Struct, rename="camel"):
    pod_group_name: str | None = None


class _FieldRequirement(msgspec.Struct):
    key: str = ""
    values: list[str] | None = None


class _NodeTerm(msgspec.Struct, rename="camel"):
    match_fields: list[_FieldRequirement] | None = None


class _NodeTerms(msgspec.Struct, rename="camel"):
    node_selector_terms: list[_NodeTerm] | None = None


class _NodeAffinity(msgspec.Struct):
    required: _NodeTerms | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class _Affinity(msgspec.Struct, rename="camel"):
    node_affinity: _NodeAffinity | None = None


class _Container(msgspec.Struct):
    command: list[str] | None = None
    args: list[str] | None = None


class _PodSpec(msgspec.Struct, rename="camel"):
    node_name: str | None = None
    containers: list[_Container] | None = None
    active_deadline_seconds: int | None = None
    affinity: _Affinity | None = None
    restart_policy: str | None = None
    resource_claims: list[_Anything] | None = None
    volumes: list[_Volume] | None = None
    scheduling_group: _SchedulingGroup | None = None


class _ContainerStatus(msgspec.Struct, rename="camel"):
    restart_count: int = 0


class _PodStatus(msgspec.Struct, rename="camel"):
    observed_generation: int = 0
    phase: str | None = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")
    conditions: list[_Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None


class _Pod(msgspec.Struct):
    metadata: _PodMeta
    spec: _PodSpec
    status: _PodStatus | None = None


class _PodGroupSpec(msgspec.Struct, rename="camel"):
    resource_claims: list[_Anything] | None = None


class _PodGroup(msgspec.Struct):
    metadata: _Meta
    spec: _PodGroupSpec


class _Consumer(msgspec.Struct):
    uid: str = ""


class _ClaimStatus(msgspec.Struct, rename="camel"):
    reserved_for: list[_Consumer] | None = None


class _Claim(msgspec.Struct):
    metadata: _Meta
    status: _ClaimStatus | None = None


_NO_STATUS: Final = _PodStatus()
_NO_NODE_SPEC: Final = _NodeSpec()
_decode_head = msgspec.json.Decoder(_Head).decode
_decode_node = msgspec.json.Decoder(_Node).decode
_decode_pod = msgspec.json.Decoder(_Pod).decode
_decode_pod_group = msgspec.json.Decoder(_PodGroup).decode
_decode_claim = msgspec.json.Decoder(_Claim).decode

# Looking for these words takes less time than decoding, and most objects have none of them.
_OWNERS: Final = b'"ownerReferences"'
_FINALIZERS: Final = b'"finalizers"'
_DELETED: Final = b'"deletionTimestamp"'
_MOST_OWNERS_SHARED: Final = 10_000
_NO_OWNERS: Final[tuple[tuple[Owner, ...], Owner | None]] = ((), None)
_shared_owners: dict[tuple[Owner, ...], tuple[tuple[Owner, ...], Owner | None]] = {}


def read_facts(record: Record) -> ObjectFacts:
    """The facts of a stored object; of an object that breaks the rules of its kind, only who it is."""
    try:
        match record.key.resource:
            case "pods":
                return _pod_facts(record)
            case "nodes":
                return _node_facts(record)
            case "resourceclaims.resource.k8s.io":
                return _claim_facts(record)
            case "podgroups.scheduling.k8s.io":
                return _pod_group_facts(record)
            case _ if _OWNERS not in record.body and _FINALIZERS not in record.body and _DELETED not in record.body:
                return ObjectFacts(record.key, record.uid, labels=record.labels)
            case _:
                return ObjectFacts(*_head_of(record, _decode_head(record.body).metadata), record.labels)
    except msgspec.DecodeError as error:
        _log.warning("%s is ignored by the controllers: %s", record.key, error)
        return ObjectFacts(record.key, record.uid)


def _node_facts(record: Record) -> NodeObjectFacts:
    node = _decode_node(record.body)
    meta, status = node.metadata, node.status or _NodeStatus()
    addresses = [a.address for a in status.addresses or () if a.type == "InternalIP"]
    ready = next((c.status for c in status.conditions or () if c.type == "Ready"), "")
    spec = node.spec or _NO_NODE_SPEC
    return NodeObjectFacts(
        *_head_of(record, meta),
        record.labels,
        is_simulated=_SAID.get(meta.annotations.simulated) if meta.annotations is not None else None,
        address=addresses[0] if addresses else "",
        has_ready_condition=bool(ready),
        readiness=sys.intern(ready),
        is_stopped=meta.annotations is not None and meta.annotations.stopped == "true",
        has_pressure=any(c.type in _PRESSURES and c.status == "True" for c in status.conditions or ()),
        is_unschedulable=spec.unschedulable,
        taints=spec.taints or (),
    )


def _pod_group_facts(record: Record) -> PodGroupFacts:
    group = _decode_pod_group(record.body)
    return PodGroupFacts(*_head_of(record, group.metadata), record.labels, has_claims=bool(group.spec.resource_claims))


def _claim_facts(record: Record) -> ClaimFacts:
    claim = _decode_claim(record.body)
    reserved = claim.status.reserved_for if claim.status is not None else None
    consumers = tuple([one.uid for one in reserved]) if reserved else ()
    key, uid, owners, controller, is_deleting, finalizers = _head_of(record, claim.metadata)
    return ClaimFacts(key, uid, owners, controller, is_deleting, finalizers, record.labels, consumers=consumers)


def _pod_facts(record: Record) -> PodFacts:
    pod = _decode_pod(record.body)
    meta, spec, status = pod.metadata, pod.spec, pod.status or _NO_STATUS
    ready = _ready_condition(status.conditions) if status.conditions else None
    annotations = meta.annotations
    # Spelled out: every write of a pod comes here, and a star beside keywords makes a tuple and a dict of them first.
    key, uid, owners, controller, is_deleting, finalizers = _head_of(record, meta)
    return PodFacts(
        key,
        uid,
        owners,
        controller,
        is_deleting,
        finalizers,
        record.labels,
        created=sys.intern(meta.creation_timestamp or ""),
        node_name=sys.intern(spec.node_name or ""),
        phase=sys.intern(status.phase or "Pending"),
        is_ready=ready is not None,
        ready_since=sys.intern(ready.last_transition_time or "") if ready is not None else "",
        restarts=sum(c.restart_count for c in status.container_statuses) if status.container_statuses else 0,
        grace_seconds=meta.deletion_grace_period_seconds or 0,
        restart_policy=sys.intern(spec.restart_policy or "Always"),
        annotations=NO_ANNOTATIONS if annotations is None or annotations == NO_ANNOTATIONS else annotations,
        has_claims=bool(spec.resource_claims),
        has_ephemeral_volumes=any(v.ephemeral is not None for v in spec.volumes) if spec.volumes else False,
        group=sys.intern(spec.scheduling_group.pod_group_name or "") if spec.scheduling_group is not None else "",
        ip=status.pod_ip or "",
        has_deadline=spec.active_deadline_seconds is not None,
        has_command=any(c.command or c.args for c in spec.containers or ()),
        is_observed=status.observed_generation >= meta.generation,
        target_node=_target_node(spec.affinity) if spec.affinity is not None else "",
    )


def _target_node(affinity: _Affinity) -> str:
    required = affinity.node_affinity.required if affinity.node_affinity is not None else None
    terms = required.node_selector_terms if required is not None else None
    fields = terms[0].match_fields if terms and len(terms) == 1 else None
    if not fields or fields[0].key != "metadata.name" or len(fields[0].values or ()) != 1:
        return ""
    return sys.intern((fields[0].values or [""])[0])


def _ready_condition(conditions: list[_Condition]) -> _Condition | None:
    for condition in conditions:
        if condition.type == "Ready" and condition.status == "True":
            return condition
    return None


def _head_of(record: Record, meta: _Meta) -> tuple[Key, str, tuple[Owner, ...], Owner | None, bool, tuple[str, ...]]:
    owners, controller = _owners(meta.owner_references) if meta.owner_references else _NO_OWNERS
    finalizers = tuple(map(sys.intern, meta.finalizers)) if meta.finalizers else ()
    return record.key, record.uid, owners, controller, meta.deletion_timestamp is not None, finalizers


def _owners(owners: tuple[Owner, ...]) -> tuple[tuple[Owner, ...], Owner | None]:
    """The owners as one tuple for all objects that have the same, and the controller among them."""
    known = _shared_owners.get(owners)
    if known is None:
        if len(_shared_owners) > _MOST_OWNERS_SHARED:
            _shared_owners.clear()
        known = _shared_owners[owners] = (owners, next((owner for owner in owners if owner.controller), None))
    return known
