"""What may happen in a cluster, as precisely as requeueing needs it.

A change of an object is split into actions (a node update may be a label change *and* a taint change). A plugin
registers for the actions that may help a pod that it rejected.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntFlag, StrEnum

from pilotage.api.kinds import Kind


class Resource(StrEnum):
    """The kinds of objects whose changes are events."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnscheduledPod"
    TARGET_POD = "TargetPod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    NAMESPACE = "Namespace"
    SERVICE = "Service"
    REPLICATION_CONTROLLER = "ReplicationController"
    REPLICA_SET = "apps/ReplicaSet"
    STATEFUL_SET = "apps/StatefulSet"
    POD_DISRUPTION_BUDGET = "policy/PodDisruptionBudget"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    ANY = "*"


_OURS: dict[str, Resource] = {resource.value: resource for resource in Resource}
POD_RESOURCES = (Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD, Resource.TARGET_POD)


class Action(IntFlag):
    """What happened to an object; the values are kube-scheduler's."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_NODE_PREEMPTION_POLICY = 256
    UPDATE_POD_LABEL = 512
    UPDATE_POD_SCALE_DOWN = 1024
    UPDATE_POD_SCALE_UP = 2048
    UPDATE_POD_TOLERATION = 4096
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 8192
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 16384
    UPDATE = 32764
    ALL = 32767


_ACTION_NAMES = {
    Action.ADD: "Add",
    Action.DELETE: "Delete",
    Action.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    Action.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    Action.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    Action.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    Action.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    Action.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    Action.UPDATE_NODE_PREEMPTION_POLICY: "UpdateNodePreemptionPolicy",
    Action.UPDATE_POD_LABEL: "UpdatePodLabel",
    Action.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    Action.UPDATE_POD_SCALE_UP: "UpdatePodScaleUp",
    Action.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "UpdatePodGeneratedResourceClaim",
    Action.UPDATE: "Update",
    Action.ALL: "All",
}


class Hint(Enum):
    """A plugin's answer to an event for a pod that it rejected."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """Something that happened, or (in a registration) something that a plugin wants to hear of."""

    resource: Resource | str
    """One of ours, or the name of a kind that a plugin watches."""
    action: Action
    custom_label: str = ""
    label: str = field(init=False, repr=False, compare=False)
    """How the event is called in metrics, e.g. `NodeUpdateNodeTaint`."""
    is_wildcard: bool = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Events are few, and looked up and named often.
        object.__setattr__(self, "label", self.custom_label or f"{self.resource}{self.action_name}")
        object.__setattr__(self, "is_wildcard", self.resource is Resource.ANY and self.action == Action.ALL)
        object.__setattr__(self, "_hash", hash((self.resource, self.action, self.custom_label)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def action_name(self) -> str:
        return _ACTION_NAMES.get(self.action, "Unknown")

    @property
    def action_names(self) -> tuple[str, ...]:
        """The single actions of a registration; all kinds of update together are just `Update`."""
        rest, names = self.action, []
        if rest & Action.UPDATE == Action.UPDATE:
            names.append(_ACTION_NAMES[Action.UPDATE])
            rest &= ~Action.UPDATE
        names += [name for action, name in _ACTION_NAMES.items() if action in rest and action.bit_count() == 1]
        return tuple(names)

    def covers(self, incoming: ClusterEvent) -> bool:
        """Whether `incoming` is one of the events that this registration asks for."""
        if self.is_wildcard:
            return True
        if not _same_resource(self.resource, incoming.resource):
            return False
        # A generic update carries every update bit; only a registration of all updates covers it.
        return bool(self.action & incoming.action) and incoming.action <= self.action

    def overlaps(self, other: ClusterEvent) -> bool:
        """Of two registrations: can one event be of both?"""
        same = _same_resource(self.resource, other.resource) or _same_resource(other.resource, self.resource)
        return same and bool(self.action & other.action)


def _same_resource(registered: Resource | str, incoming: Resource | str) -> bool:
    if registered == incoming or registered is Resource.ANY:
        return True
    return registered is Resource.POD and incoming in POD_RESOURCES


def wildcard(label: str) -> ClusterEvent:
    """An event that concerns all pods, e.g. the flush of unschedulable pods."""
    return ClusterEvent(Resource.ANY, Action.ALL, label)


def event_on(resource: Resource | Kind | str, action: Action) -> ClusterEvent:
    """The event of a registration."""
    if isinstance(resource, Kind):
        return ClusterEvent(resource.name, action)
    return ClusterEvent(_OURS.get(resource, resource), action)
