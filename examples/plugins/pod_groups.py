"""Coscheduling with PodGroups: a port of the plugin Coscheduling of kubernetes-sigs/scheduler-plugins.

    pilotage sandbox --plugin examples/plugins/pod_groups.py --config examples/plugins/pod_groups.config.yaml \\
        -f examples/plugins/crds/podgroups.yaml -f examples/plugins/pod_groups.yaml
    kubectl get podgroups,pods -o wide        # one of the two groups runs; the other one holds no place

A PodGroup (podgroups.scheduling.x-k8s.io) says how many of its pods must start together (minMember) and how long those
with a place wait for the others (scheduleTimeoutSeconds). Pods name it in the label scheduling.x-k8s.io/pod-group.

- QueueSort: by priority, then by the age of the group, so that the pods of a group come one after the other.
- PreFilter: the group must exist and have minMember pods; one group takes its places at a time.
- Permit: pods with a place wait until minMember of them have one.
- PostFilter, Unreserve: if one of them finds no place, or loses it, those that wait give theirs up, and the group tries
  again when there is more room than there was.

Not ported: minResources, and the group's status, which a controller of that project writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from zlib import crc32

from pilotage.api import (
    Action,
    ApiObject,
    ClusterIndex,
    CycleState,
    Handle,
    Hint,
    Kind,
    Node,
    NodeTable,
    Permit,
    Plugin,
    Pod,
    PostBind,
    PostFilter,
    PreFilter,
    QueuedPod,
    QueueSort,
    Reason,
    Rejection,
    Reject,
    RejectedNodes,
    Reserve,
    Resource,
    Shape,
    Wait,
    on_event,
)

LABEL = "scheduling.x-k8s.io/pod-group"


class PodGroupSpec(Shape, frozen=True):
    min_member: int = 1
    schedule_timeout_seconds: int | None = None


class PodGroup(ApiObject, frozen=True):
    spec: PodGroupSpec = PodGroupSpec()


POD_GROUPS = Kind("podgroups.scheduling.x-k8s.io", "v1alpha1", PodGroup)


@dataclass(frozen=True)
class CoschedulingArgs:
    permit_waiting_time_seconds: int = 60
    """For groups that do not say how long their pods wait."""


class Members(ClusterIndex):
    """The pods of each group, how many have a place (waiting for permission included), and when room was made."""

    kinds: ClassVar[frozenset[str]] = frozenset({"Pod"})

    def __init__(self) -> None:
        self.existing: dict[str, dict[str, Pod]] = {}
        self.placed: Counter[str] = Counter()
        self.given_up: set[str] = set()
        """UIDs of pods that are about to leave a place that they never took for good: that makes no room."""
        self.room = 0
        """Counts what may have made room for somebody."""

    def pod_added(self, pod: Pod, node_name: str) -> None:
        self.placed[group_of(pod)] += 1

    def pod_removed(self, pod: Pod, node_name: str) -> None:
        self.placed[group_of(pod)] -= 1
        if pod.uid in self.given_up:
            self.given_up.discard(pod.uid)
        else:
            self.room += 1

    def node_put(self, old: Node | None, new: Node) -> None:
        if old is None or _offer(old) != _offer(new) or (old.spec.unschedulable and not new.spec.unschedulable):
            self.room += 1

    def object_put(self, kind: str, old: Pod | None, new: Pod) -> None:
        if old is not None:
            self.object_removed(kind, old)
        if group_of(new):
            self.existing.setdefault(group_of(new), {})[new.uid] = new

    def object_removed(self, kind: str, obj: Pod) -> None:
        members = self.existing.get(group_of(obj), {})
        members.pop(obj.uid, None)
        if not members:
            self.existing.pop(group_of(obj), None)


class Coscheduling(Plugin, QueueSort, PreFilter, PostFilter, Reserve, Permit, PostBind):
    """All pods of a group or none."""

    args_type = CoschedulingArgs
    watches = (POD_GROUPS,)

    def __init__(self, handle: Handle, args: CoschedulingArgs) -> None:
        self._handle = handle
        self._args = args
        self._groups = handle.objects(POD_GROUPS)
        self._members = handle.index(Members)
        self._turn = ""
        """The group that takes its places now."""
        self._turn_ends = 0.0
        self._reserved: set[str] = set()
        self._leaving: dict[str, str] = {}
        """UIDs of pods that were made to give their places up and still have them, and their groups."""
        self._gave_up: dict[str, int] = {}
        """Groups that gave their places up, with the room that there was when they last tried."""
        self._tried: dict[str, int] = {}
        """Groups that try, with the room that there is."""

    def sort_key(self, queued: QueuedPod) -> tuple[float, ...]:
        """Higher priority, older group (a pod without one is its own), then group by group."""
        key = group_of(queued.pod)
        group: PodGroup | None = self._groups.get(key)
        since = queued.timestamp if group is None else _created(group, queued.timestamp)
        return -queued.pod.priority, since, crc32(key.encode()) if group is not None else 0, queued.timestamp

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Rejection | None:
        key = group_of(pod)
        if not key:
            return None
        group: PodGroup | None = self._groups.get(key)
        if group is None:
            return _reject("PodGroupNotFound", f'pod group "{key}" not found')
        if (pods := len(self._members.existing.get(key, ()))) < group.spec.min_member:
            facts = f"current pods number: {pods}, minMember of group: {group.spec.min_member}"
            return _reject("NotEnoughSiblings", f"cannot find enough sibling pods, {facts}")
        if not self._has_news(key):
            return _reject("PodGroupWaitsForRoom", f'no room for all of pod group "{key}" yet')
        if key in self._leaving.values():
            # Their places would count, and the group would start without them.
            return _reject("PodGroupWaitsForTurn", f'pod group "{key}" gives its places up')
        now = self._handle.clock.monotonic()
        if self._turn not in ("", key) and now < self._turn_ends:
            return _reject("PodGroupWaitsForTurn", "another pod group takes its places")
        self._turn, self._turn_ends = key, now + self._timeout(group)
        self._tried[key] = self._members.room
        return None

    def post_filter(self, state: CycleState, pod: Pod, rejected: RejectedNodes) -> Rejection:
        key = group_of(pod)
        group: PodGroup | None = self._groups.get(key)
        if not key or key != self._turn or (group is not None and self._members.placed[key] >= group.spec.min_member):
            return Reject()
        self._give_up(key, f"{pod.name} found no place")
        return Reject(Reason("PodGroupGaveUp", f'pod group "{key}" gave its places up'))

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        if group_of(pod):
            self._reserved.add(pod.uid)
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        if pod.uid in self._reserved:
            self._reserved.discard(pod.uid)
            self._leaving.pop(pod.uid, None)
            self._members.given_up.add(pod.uid)
            self._give_up(group_of(pod), f"{pod.name} lost its place")

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Wait | Rejection | None:
        key = group_of(pod)
        if not key:
            return None
        group: PodGroup | None = self._groups.get(key)
        if group is None:
            return _reject("PodGroupNotFound", f'pod group "{key}" not found')
        # This pod is among the placed ones: it was assumed before Reserve.
        if self._members.placed[key] < group.spec.min_member:
            self._handle.activate(other for other in self._without_place(key) if other.uid != pod.uid)
            return Wait(self._timeout(group))
        for held in self._handle.waiting_pods:
            if group_of(held.pod) == key:
                held.allow(self.plugin_name())
        self._gave_up.pop(key, None)
        self._tried.pop(key, None)
        self._end_turn(key)
        return None

    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._reserved.discard(pod.uid)
        self._leaving.pop(pod.uid, None)

    @on_event(POD_GROUPS, Action.ADD | Action.UPDATE)
    def after_group(self, pod: Pod, old: PodGroup | None, new: PodGroup) -> Hint:
        return Hint.QUEUE if new.key == group_of(pod) else Hint.SKIP

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE)
    @on_event(Resource.ASSIGNED_POD, Action.DELETE | Action.UPDATE)
    def after_room_was_made(self, pod: Pod, old: Any, new: Any) -> Hint:
        """What groups gave up is no news to them: they would take turns at failing for ever."""
        return Hint.QUEUE if self._has_news(group_of(pod)) else Hint.SKIP

    @on_event(Resource.UNSCHEDULED_POD, Action.ADD)
    @on_event(Resource.ASSIGNED_POD, Action.ADD | Action.UPDATE_POD_LABEL)
    def after_new_member(self, pod: Pod, old: Any, new: Pod) -> Hint:
        return Hint.QUEUE if group_of(new) == group_of(pod) else Hint.SKIP

    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_LABEL)
    def after_own_labels(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        return Hint.QUEUE

    def _timeout(self, group: PodGroup) -> float:
        return float(group.spec.schedule_timeout_seconds or self._args.permit_waiting_time_seconds)

    def _has_news(self, key: str) -> bool:
        """May it try, or is there just the room that was not enough?"""
        return self._gave_up.get(key) != self._members.room

    def _give_up(self, key: str, why: str) -> None:
        """Send the waiting pods back; each comes through `unreserve`, and the last one ends the turn."""
        if key in self._tried:
            self._gave_up[key] = self._tried[key]
        waiting = [held for held in self._handle.waiting_pods if group_of(held.pod) == key]
        for held in waiting:
            self._leaving[held.pod.uid] = key
            held.reject(self.plugin_name(), why)
        if not waiting:
            self._end_turn(key)
            if self._has_news(key):
                # Room was made while they were leaving.
                self._handle.activate(self._without_place(key))

    def _end_turn(self, key: str) -> None:
        """The pods of all other groups may try now."""
        if self._turn == key:
            self._turn = ""
            others = [other for other in self._members.existing if other != key]
            self._handle.activate(pod for other in others for pod in self._without_place(other))

    def _without_place(self, key: str) -> Iterator[Pod]:
        members = self._members.existing.get(key, {}).values()
        return (pod for pod in members if not pod.node_name and self._handle.waiting_pods.get(pod.uid) is None)


def group_of(pod: Pod) -> str:
    """The key of the pod's group; "" if it is in none."""
    name = pod.labels.get(LABEL)
    return f"{pod.namespace}/{name}" if name else ""


def _created(group: PodGroup, otherwise: float) -> float:
    created = group.metadata.creation_timestamp
    return otherwise if created is None else datetime.fromisoformat(created).timestamp()


def _offer(node: Node) -> tuple[object, ...]:
    return node.labels, node.spec.taints, node.status.allocatable


def _reject(code: str, message: str) -> Reject:
    return Reject(Reason(code, message, unresolvable=True))
