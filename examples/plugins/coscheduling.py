"""Gangs: pods that are bound together or not at all, by Permit (KEP-624's use case "coscheduling").

    pilotage sandbox --plugin examples/plugins/coscheduling.py -f examples/plugins/coscheduling.yaml
    kubectl get pods -o wide        # one of the two gangs runs; the other one holds no place

Pods of a gang carry the labels example.com/gang=NAME and example.com/gang-size=N. A member that has its place waits in
Permit until all N have one, and then all are let go.

Two gangs on a cluster with room for one must not end up with half of the places each. Three rules see to that:

- one gang gathers at a time, from its first member that is tried to its last that is permitted (PreFilter);
- a gang of which one member finds no place, is taken away or waits for too long gives up all its places (PostFilter,
  Unreserve), the next gang gets its turn, and this one tries again when there is more room than there was;
- a gang of which not all members exist yet does not begin (PreFilter).

What was bound stays bound: a member whose binding fails after that comes back alone and counts the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from pilotage.api import (
    Action,
    ClusterIndex,
    CycleState,
    Handle,
    Hint,
    Node,
    NodeTable,
    Permit,
    Plugin,
    Pod,
    PostBind,
    PostFilter,
    PreFilter,
    Reason,
    Rejection,
    Reject,
    RejectedNodes,
    Reserve,
    Resource,
    Wait,
    on_event,
)

GANG = "example.com/gang"
SIZE = "example.com/gang-size"

Gang = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True)
class CoschedulingArgs:
    timeout_seconds: float = 30.0
    """How long members with a place wait for the others."""


class Members(ClusterIndex):
    """The members of each gang, how many have a place (waiting for permission included), and when room was made."""

    kinds: ClassVar[frozenset[str]] = frozenset({"Pod"})

    def __init__(self) -> None:
        self.existing: dict[Gang, dict[str, Pod]] = {}
        self.placed: Counter[Gang] = Counter()
        self.given_up: set[str] = set()
        """UIDs of pods that are about to leave a place that they never took for good: that makes no room."""
        self.room = 0
        """Counts what may have made room for somebody."""

    def pod_added(self, pod: Pod, node_name: str) -> None:
        self._count(pod, 1)

    def pod_removed(self, pod: Pod, node_name: str) -> None:
        self._count(pod, -1)
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
        gang = gang_of(new)
        if gang is not None:
            self.existing.setdefault(gang, {})[new.uid] = new

    def object_removed(self, kind: str, obj: Pod) -> None:
        gang = gang_of(obj)
        if gang is not None:
            members = self.existing.get(gang, {})
            members.pop(obj.uid, None)
            if not members:
                self.existing.pop(gang, None)

    def _count(self, pod: Pod, change: int) -> None:
        gang = gang_of(pod)
        if gang is not None:
            self.placed[gang] += change


class Coscheduling(Plugin, PreFilter, PostFilter, Reserve, Permit, PostBind):
    """All members of a gang or none."""

    args_type = CoschedulingArgs
    pure_hints = True

    def __init__(self, handle: Handle, args: CoschedulingArgs) -> None:
        self._handle = handle
        self._timeout = args.timeout_seconds
        self._members = handle.index(Members)
        self._turn: Gang | None = None
        self._turn_ends = 0.0
        """A turn that nobody ends (its pods failed for other reasons) is over then."""
        self._reserved: set[str] = set()
        self._gave_up: dict[Gang, int] = {}
        """Gangs that had to give up, with the room that there was when they last tried."""
        self._tried: dict[Gang, int] = {}
        """Gangs that try, with the room that there is."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Rejection | None:
        gang = gang_of(pod)
        if gang is None:
            return None
        missing = size_of(pod) - len(self._members.existing.get(gang, ()))
        if missing > 0:
            message = f"waiting for {missing} more member(s) of gang {gang[1]}"
            return Reject(Reason("GangIncomplete", message, need=size_of(pod), unresolvable=True))
        if not self._has_news(gang):
            return Reject(Reason("GangWaitsForRoom", f"no room for all of gang {gang[1]} yet", unresolvable=True))
        now = self._handle.clock.monotonic()
        if self._turn not in (None, gang) and now < self._turn_ends:
            return Reject(Reason("GangWaitsForTurn", "another gang takes its places", unresolvable=True))
        self._turn, self._turn_ends = gang, now + self._timeout
        self._tried[gang] = self._members.room
        return None

    def post_filter(self, state: CycleState, pod: Pod, rejected: RejectedNodes) -> Rejection:
        """One member fits nowhere: the others must not keep what they have."""
        gang = gang_of(pod)
        if gang is None or gang != self._turn:
            return Reject()
        self._give_up(gang, f"{pod.name} found no place")
        return Reject(Reason("GangGaveUp", f"gang {gang[1]} gave its places up"))

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        if gang_of(pod) is not None:
            self._reserved.add(pod.uid)
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """A member loses its place: it waited for too long, was deleted, or its binding failed."""
        gang = gang_of(pod)
        if gang is not None and pod.uid in self._reserved:
            self._reserved.discard(pod.uid)
            self._members.given_up.add(pod.uid)
            self._give_up(gang, f"{pod.name} lost its place")

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Wait | Rejection | None:
        gang = gang_of(pod)
        if gang is None:
            return None
        # This pod is among the placed ones: it was assumed before Reserve.
        if self._members.placed[gang] < size_of(pod):
            self._handle.activate(other for other in self._without_place(gang) if other.uid != pod.uid)
            return Wait(self._timeout)
        for held in self._handle.waiting_pods:
            if gang_of(held.pod) == gang:
                held.allow(self.plugin_name())
        self._gave_up.pop(gang, None)
        self._tried.pop(gang, None)
        self._end_turn(gang)
        return None

    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._reserved.discard(pod.uid)

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE)
    @on_event(Resource.ASSIGNED_POD, Action.DELETE | Action.UPDATE)
    def after_room_was_made(self, pod: Pod, old: Any, new: Any) -> Hint:
        """What gangs gave up is no news to them: they would take turns at failing for ever."""
        gang = gang_of(pod)
        return Hint.QUEUE if gang is None or self._has_news(gang) else Hint.SKIP

    @on_event(Resource.UNSCHEDULED_POD, Action.ADD)
    @on_event(Resource.ASSIGNED_POD, Action.ADD | Action.UPDATE_POD_LABEL)
    def after_new_member(self, pod: Pod, old: Any, new: Pod) -> Hint:
        return Hint.QUEUE if gang_of(new) == gang_of(pod) else Hint.SKIP

    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_LABEL)
    def after_own_labels(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        return Hint.QUEUE

    def _has_news(self, gang: Gang) -> bool:
        """May it try, or is there just the room that was not enough?"""
        return self._gave_up.get(gang) != self._members.room

    def _give_up(self, gang: Gang, why: str) -> None:
        """Send the waiting members back; each comes through `unreserve`, and the last one ends the turn."""
        self._gave_up[gang] = self._tried.get(gang, self._members.room)
        waiting = [held for held in self._handle.waiting_pods if gang_of(held.pod) == gang]
        for held in waiting:
            held.reject(self.plugin_name(), why)
        if not waiting:
            self._end_turn(gang)

    def _end_turn(self, gang: Gang) -> None:
        """The members of all other gangs may try now."""
        if self._turn != gang:
            return
        self._turn = None
        others = [other for other in self._members.existing if other != gang]
        self._handle.activate(pod for other in others for pod in self._without_place(other))

    def _without_place(self, gang: Gang) -> Iterator[Pod]:
        members = self._members.existing.get(gang, {}).values()
        return (pod for pod in members if not pod.node_name and self._handle.waiting_pods.get(pod.uid) is None)


def _offer(node: Node) -> tuple[object, ...]:
    return node.labels, node.spec.taints, node.status.allocatable


def gang_of(pod: Pod) -> Gang | None:
    name = pod.labels.get(GANG)
    return None if name is None else (pod.namespace, name)


def size_of(pod: Pod) -> int:
    """A gang without a readable size is a gang of one."""
    size = pod.labels.get(SIZE, "")
    return int(size) if size.isdecimal() else 1
