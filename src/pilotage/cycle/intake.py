"""From watch events to the cluster state and the queue.

Implements the sink of the reflectors. Everything is put into the inbox first and takes effect between two cycles.

    pod, unassigned, ours      -> queue: add, update, delete; event UnscheduledPod/Add or Delete
    pod, assigned              -> cluster (confirms an assumed pod), event AssignedPod/...
    pod group                  -> cluster and queue, event PodGroup/...
    node                       -> cluster, one event per precise change
    device taint rule          -> cluster, event ResourceSlice/Update for each slice that it taints
    any other object           -> cluster, event <resource>/Add, Update or Delete

Everything is shown to the call queue first: it says what the object will be after the calls on their way.

An object that cannot be taken in is taken out of cluster and queue, as far as it got there, and skipped: those before
and after it take effect. It is tried again when it changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any

from pilotage.api.events import Action, ClusterEvent, Resource
from pilotage.calls.call_queue import CallQueue
from pilotage.clock import Clock
from pilotage.cluster.changes import node_events, pod_events, slices_tainted_anew
from pilotage.cluster.state import Cluster
from pilotage.cycle.inbox import Inbox
from pilotage.framework.waiting_pods import WaitingPods
from pilotage.model import DecodeError, Node, Pod, WatchEvent
from pilotage.model.pod_group import PodGroup
from pilotage.model.resource import DeviceTaintRule
from pilotage.observe.metrics import Metrics
from pilotage.queue.scheduling_queue import SchedulingQueue

log = logging.getLogger(__name__)

_RESOURCES = {
    "PersistentVolume": Resource.PERSISTENT_VOLUME,
    "PersistentVolumeClaim": Resource.PERSISTENT_VOLUME_CLAIM,
    "CSINode": Resource.CSI_NODE,
    "CSIDriver": Resource.CSI_DRIVER,
    "VolumeAttachment": Resource.VOLUME_ATTACHMENT,
    "CSIStorageCapacity": Resource.CSI_STORAGE_CAPACITY,
    "StorageClass": Resource.STORAGE_CLASS,
    "ResourceClaim": Resource.RESOURCE_CLAIM,
    "ResourceSlice": Resource.RESOURCE_SLICE,
    "DeviceClass": Resource.DEVICE_CLASS,
    "Namespace": Resource.NAMESPACE,
    "Service": Resource.SERVICE,
    "ReplicationController": Resource.REPLICATION_CONTROLLER,
    "ReplicaSet": Resource.REPLICA_SET,
    "StatefulSet": Resource.STATEFUL_SET,
    "PodDisruptionBudget": Resource.POD_DISRUPTION_BUDGET,
    "PodGroup": Resource.POD_GROUP,
}
_ADDED, _UPDATED, _DELETED = (
    {kind: ClusterEvent(resource, action) for kind, resource in _RESOURCES.items()}
    for action in (Action.ADD, Action.UPDATE, Action.DELETE)
)
_ACTIONS = {"ADDED": "Add", "MODIFIED": "Update", "DELETED": "Delete"}
_POD_ADDED = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD)
_POD_DELETED = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
_PENDING_ADDED = ClusterEvent(Resource.UNSCHEDULED_POD, Action.ADD)
_PENDING_DELETED = ClusterEvent(Resource.UNSCHEDULED_POD, Action.DELETE)
_NODE_ADDED = ClusterEvent(Resource.NODE, Action.ADD)
_NODE_DELETED = ClusterEvent(Resource.NODE, Action.DELETE)


class EventDurations:
    """How long watch events take to take effect, by what they are."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        durations = metrics.event_handling_duration_seconds
        self.now = clock.monotonic
        self.line = cache(lambda kind, type_, is_assigned: durations.child(_label(kind, type_, is_assigned)))


class Intake:
    """The only writer of what the API server has sent."""

    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        inbox: Inbox,
        calls: CallQueue,
        waiting_pods: WaitingPods,
        durations: EventDurations,
    ) -> None:
        self.cluster = self._cluster = cluster
        self.queue = self._queue = queue
        self.inbox = self._inbox = inbox
        self._calls = calls
        self._waiting_pods = waiting_pods
        self._durations = durations
        self._known_gone: set[str] = set()
        """UIDs of pods that are gone, whose deletion the watch has still to report."""
        self._skipped = cluster.skipped
        self._faulty: set[tuple[str, str]] = set()
        """Kind and key of what was skipped here; an object that is gone without a trace is as good as mended."""
        self._added, self._updated, self._deleted = (
            {**events, **{key: ClusterEvent(key, action) for key in cluster.kinds.foreign}}
            for events, action in ((_ADDED, Action.ADD), (_UPDATED, Action.UPDATE), (_DELETED, Action.DELETE))
        )
        """By kind; those of plugins too, whether or not a hint wants to hear of them."""
        self._upserts: dict[str, Callable[[Any], None]] = {
            "Pod": self._put_pod,
            "Node": self._put_node,
            "DeviceTaintRule": self._put_taint_rule,
            "PodGroup": self._put_group,
        }
        self._removals: dict[str, Callable[[Any], None]] = {
            "Pod": self._remove_pod,
            "Node": self._remove_node,
            "DeviceTaintRule": self._remove_taint_rule,
            "PodGroup": self._remove_group,
        }

    # --- sink of the reflectors --------------------------------------------------------------------------------

    def replace(self, kind: str, objects: list[Any]) -> None:
        """A fresh list: what is not in it any more was deleted while the watch was interrupted."""
        self._inbox.put(lambda: self._replace(kind, objects))

    def apply(self, kind: str, events: Sequence[WatchEvent]) -> None:
        self._inbox.put(lambda: self._apply(kind, events))

    def _replace(self, kind: str, objects: list[Any]) -> None:
        known = self._cluster.objects(kind)
        gone = known.keys() - {obj.key for obj in objects}
        for key in sorted(gone):
            self._take(kind, known[key], self._removal)
        if kind == "Pod" and self._known_gone:
            self._known_gone.intersection_update(obj.uid for obj in objects)
        self._put_listed(kind, objects)

    def _put_listed(self, kind: str, objects: Sequence[Any]) -> None:
        known, monotonic = self._cluster.objects(kind), self._durations.now
        for at, obj in enumerate(objects):
            old = known.get(obj.key)
            if old is None or old.resource_version != obj.resource_version:
                self._take(kind, obj, self._upsert)
                if self._inbox.is_slice_over(monotonic()):
                    self._inbox.put_back(partial(self._put_listed, kind, objects[at + 1 :]))
                    return

    def _apply(self, kind: str, events: Sequence[WatchEvent]) -> None:
        monotonic, is_pod = self._durations.now, kind == "Pod"
        before = monotonic()
        for at, event in enumerate(events):
            obj, type_ = event.object, event.type
            if isinstance(obj, DecodeError):
                continue
            self._take(kind, obj, self._removal if type_ == "DELETED" else self._upsert)
            after = monotonic()
            self._durations.line(kind, type_, is_pod and obj.node_name != "").observe(after - before)
            before = after
            if self._inbox.is_slice_over(after):
                self._inbox.put_back(partial(self._apply, kind, events[at + 1 :]))
                return

    def _take(self, kind: str, obj: Any, effect: Callable[[str, Any], None]) -> None:
        try:
            effect(kind, obj)
        except Exception as error:
            self._skipped.skip(kind, obj.key, "intake", error)
            self._faulty.add((kind, obj.key))
            self._discard(kind, obj)
        else:
            if self._faulty:
                self._mended(kind, obj.key)

    def _mended(self, kind: str, key: str) -> None:
        if (kind, key) in self._faulty:
            self._faulty.discard((kind, key))
            self._skipped.understood(kind, key)

    def _discard(self, kind: str, obj: Any) -> None:
        """Take out whatever part of it is in; each step may be the one that fails."""
        steps: tuple[Callable[[], object], ...] = (
            lambda: self._queue.delete(obj.uid),
            lambda: self._calls.forget(obj.uid),
            lambda: self._cluster.discard(kind, obj),
        )
        for step in steps:
            with suppress(Exception):
                step()

    def _upsert(self, kind: str, obj: Any) -> None:
        specific = self._upserts.get(kind)
        if specific is not None:
            specific(obj)
            return
        received, obj = obj, self._calls.sync(obj.uid, obj)
        old = self._cluster.put(kind, obj, received)
        event = (self._added if old is None else self._updated).get(kind)
        if event is not None:
            self._queue.on_event(event, old, obj)

    def _removal(self, kind: str, obj: Any) -> None:
        specific = self._removals.get(kind)
        if specific is not None:
            specific(obj)
            return
        if self._cluster.remove_object(kind, obj.key) is not None:
            self._calls.forget(obj.uid)
            event = self._deleted.get(kind)
            if event is not None:
                self._queue.on_event(event, obj, None)

    # --- device taint rules ------------------------------------------------------------------------------------

    def _put_taint_rule(self, rule: DeviceTaintRule) -> None:
        self._on_taint_rule(self._cluster.put("DeviceTaintRule", rule), rule)

    def _remove_taint_rule(self, rule: DeviceTaintRule) -> None:
        self._on_taint_rule(self._cluster.remove_object("DeviceTaintRule", rule.key), None)

    def _on_taint_rule(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        slices = self._cluster.objects("ResourceSlice").values()
        for before, after in slices_tainted_anew(old, new, slices):
            self._queue.on_event(_UPDATED["ResourceSlice"], before, after)

    # --- pod groups --------------------------------------------------------------------------------------------

    def _put_group(self, group: PodGroup) -> None:
        received, group = group, self._calls.sync(group.uid, group)
        old: PodGroup | None = self._cluster.put_object("PodGroup", group, received)
        if old is not None and old.uid != group.uid:
            self._calls.forget(old.uid)
        self._queue.put_group(group)
        self._queue.on_event((_ADDED if old is None else _UPDATED)["PodGroup"], old, group)

    def _remove_group(self, group: PodGroup) -> None:
        if self._cluster.remove_object("PodGroup", group.key) is not None:
            self._calls.forget(group.uid)
            self._queue.remove_group(group.key)
            self._queue.on_event(_DELETED["PodGroup"], group, None)

    # --- nodes -------------------------------------------------------------------------------------------------

    def _put_node(self, node: Node) -> None:
        old = self._cluster.put("Node", node)
        if old is None:
            self._queue.on_event(_NODE_ADDED, None, node)
            return
        for event in node_events(old, node):
            self._queue.on_event(event, old, node)

    def _remove_node(self, node: Node) -> None:
        if self._cluster.remove_object("Node", node.key) is None:
            return
        self._queue.on_event(_NODE_DELETED, node, None)
        self._cluster.remove_node(node.name)

    # --- pods --------------------------------------------------------------------------------------------------

    def take_answer(self, pod: Pod) -> None:
        """The call queue knows a newer version of this pod than the watch has shown: the answer to a write."""
        received: Pod | None = self._cluster.received("Pod", pod.key)
        if received is not None and received.uid == pod.uid:
            self._put_pod(received)

    def take_gone(self, pod: Pod) -> None:
        """The API server says that this pod is gone: what the watch shows of it until then is history."""
        known: Pod | None = self._cluster.objects("Pod").get(pod.key)
        if known is not None and known.uid == pod.uid:
            self._remove_pod(known)
            self._known_gone.add(pod.uid)

    def has_left(self, pod: Pod) -> bool:
        """Whether the pod is gone, or on its way, as far as we see."""
        known: Pod | None = self._cluster.objects("Pod").get(pod.key)
        return known is None or known.uid != pod.uid or known.is_terminating

    def _put_pod(self, pod: Pod) -> None:
        if self._known_gone and pod.uid in self._known_gone:
            return
        if pod.is_finished:
            self._remove_pod(pod)
            return
        received, pod = pod, self._calls.sync(pod.uid, pod)
        old: Pod | None = self._cluster.put_object("Pod", pod, received)
        if old is not None and old.uid != pod.uid:
            self._forget_pod(old)
            old = None
        if pod.node_name:
            self._put_assigned(old, pod)
        elif self._queue.schedules(pod):
            self._put_pending(old, pod)

    def _put_assigned(self, old: Pod | None, pod: Pod) -> None:
        self._cluster.put_pod(pod)
        if old is not None and old.node_name:
            for event in pod_events(old, pod, Resource.ASSIGNED_POD):
                self._queue.on_event(event, old, pod)
            return
        self._queue.delete(pod.uid)
        self._cluster.nominations.remove(pod.uid)
        self._queue.on_event(_POD_ADDED, None, pod)

    def _put_pending(self, old: Pod | None, pod: Pod) -> None:
        is_assumed = self._cluster.is_assumed(pod.uid)
        if not is_assumed:
            self._cluster.nominations.follow(old, pod)
        if old is None:
            self._queue.add(pod)
            self._queue.on_event(_PENDING_ADDED, None, pod)
        elif is_assumed:
            if pod.is_terminating and not old.is_terminating:
                self._release_assumed(pod.uid)
        elif old.resource_version != pod.resource_version:
            self._queue.update(pod, pod_events(old, pod, Resource.TARGET_POD), old)
            nominated = old.status.nominated_node_name
            if nominated and nominated != pod.status.nominated_node_name:
                self._queue.on_nomination_removed(old, nominated)

    def _remove_pod(self, pod: Pod) -> None:
        self._known_gone.discard(pod.uid)
        known: Pod | None = self._cluster.objects("Pod").get(pod.key)
        if known is None or known.uid != pod.uid:
            return
        self._cluster.remove_object("Pod", pod.key)
        self._forget_pod(known)

    def _forget_pod(self, pod: Pod) -> None:
        self._calls.forget(pod.uid)
        if pod.node_name:
            self._cluster.remove_pod(pod.uid)
            self._queue.on_event(_POD_DELETED, pod, None)
            return
        nominated = self._cluster.nominations.node_of(pod.uid)
        self._queue.delete(pod.uid)
        self._cluster.nominations.remove(pod.uid)
        if self._cluster.is_assumed(pod.uid):
            self._release_assumed(pod.uid)
            return
        if nominated:
            self._queue.on_nomination_removed(pod, nominated)
        if self._queue.schedules(pod):
            self._queue.on_event(_PENDING_DELETED, pod, None)

    def _release_assumed(self, uid: str) -> None:
        """A pod that is being bound was deleted: its place is free at once, its binding will fail."""
        if self._waiting_pods.reject(uid):
            return
        assumed = self._cluster.remove_pod(uid)
        if assumed is not None:
            self._queue.on_event(_POD_DELETED, assumed, None)


def _label(kind: str, type_: str, is_assigned: bool) -> str:
    """How metrics call a watch event: NodeUpdate, AssignedPodDelete, resource.k8s.io/ResourceClaimAdd."""
    action = _ACTIONS.get(type_, type_)
    if kind == "Pod":
        return f"{'Assigned' if is_assigned else 'Unscheduled'}Pod{action}"
    return f"{_RESOURCES.get(kind, kind)}{action}"
