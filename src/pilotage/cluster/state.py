"""The cluster as the scheduler believes it to be.

A pod that was just placed is *assumed*: it counts on its node before the API server knows. Its watch event confirms
it; a failed binding forgets it.

    unknown -- assume --> assumed -- watch event --> confirmed -- deleted --> unknown
                             |
                             +-- forget --> unknown

Pods whose node is not known (yet) wait in `_homeless` and are counted when the node arrives.

Objects that API calls on their way will change are kept twice: as they will be, which everybody sees, and as the API
server last told, which comes back if the call fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from pilotage.api.indexes import ClusterIndex
from pilotage.cluster.node_table import NodeTable
from pilotage.cluster.node_view import RowView
from pilotage.cluster.nominations import Nominations
from pilotage.cluster.pod_classes import PodClasses
from pilotage.cluster.selector_counts import SelectorCounts
from pilotage.model import Node, Pod

IndexT = TypeVar("IndexT", bound=ClusterIndex)


class AssumeError(Exception):
    """The pod is on a node already: two decisions for one pod."""


class _Placed(msgspec.Struct, eq=False):
    pod: Pod
    is_assumed: bool


class Cluster:
    """Nodes, the pods on them, and every other object that scheduling reads."""

    def __init__(self) -> None:
        self.nodes = NodeTable()
        self.classes = PodClasses()
        self._placed: dict[str, _Placed] = {}
        self._homeless: dict[str, dict[str, Pod]] = {}
        self._objects: dict[str, dict[str, Any]] = {}
        self._received: dict[tuple[str, str], Any] = {}
        """By kind and key, as the API server last told: only those that are shown otherwise."""
        self._indexes: dict[type[ClusterIndex], Any] = {}
        """Each is an object of the class that is its key."""
        self._counting: list[ClusterIndex] = []
        """Those that want to hear of pods."""
        self._listening: dict[str, list[ClusterIndex]] = {}
        """Those that want to hear of other objects, by kind."""
        self.nominations = Nominations()
        self.counts = SelectorCounts(self.nodes, self.classes)

    # --- nodes -------------------------------------------------------------------------------------------------

    def node(self, name: str) -> Node | None:
        row = self.nodes.row(name)
        return None if row is None else self.nodes.node(row)

    def node_view(self, name: str) -> RowView | None:
        row = self.nodes.row(name)
        return None if row is None else RowView(self.nodes, row)

    def put_node(self, node: Node) -> None:
        old = self.node(node.name)
        self.nodes.put_node(node)
        for pod in self._homeless.pop(node.name, {}).values():
            self.nodes.add_pod(node.name, pod)
        for index in self._indexes.values():
            index.node_put(old, node)

    def remove_node(self, name: str) -> None:
        node = self.node(name)
        if node is None:
            return
        for index in self._indexes.values():
            index.node_removed(node)
        pods = self.nodes.remove_node(name)
        if pods:
            self._homeless[name] = {pod.uid: pod for pod in pods}

    # --- pods --------------------------------------------------------------------------------------------------

    def assume(self, pod: Pod) -> None:
        """Count `pod` (with its node name set) on its node although the API server does not know yet."""
        if pod.uid in self._placed:
            raise AssumeError(f"pod {pod.key} ({pod.uid}) is on node {self._placed[pod.uid].pod.node_name} already")
        self._place(pod, is_assumed=True)

    def forget(self, uid: str) -> Pod | None:
        """Take back an assumption; None if there is none (it was confirmed, or the pod is gone)."""
        placed = self._placed.get(uid)
        if placed is None or not placed.is_assumed:
            return None
        self._displace(placed.pod)
        return placed.pod

    def put_pod(self, pod: Pod) -> Pod | None:
        """An assigned pod as the API server has it; returns what was known of it before."""
        placed = self._placed.get(pod.uid)
        if placed is None:
            self._place(pod, is_assumed=False)
            return None
        old = placed.pod
        if old.node_name != pod.node_name:
            self._displace(old)
            self._place(pod, is_assumed=False)
            return old
        self._replace(old, pod)
        placed.pod, placed.is_assumed = pod, False
        return old

    def remove_pod(self, uid: str) -> Pod | None:
        placed = self._placed.get(uid)
        if placed is None:
            return None
        self._displace(placed.pod)
        return placed.pod

    def placed_pod(self, uid: str) -> Pod | None:
        placed = self._placed.get(uid)
        return None if placed is None else placed.pod

    def is_assumed(self, uid: str) -> bool:
        placed = self._placed.get(uid)
        return placed is not None and placed.is_assumed

    @property
    def placed_count(self) -> int:
        return len(self._placed)

    @property
    def assumed_count(self) -> int:
        """Counted when asked: looks at every placed pod."""
        return sum(placed.is_assumed for placed in self._placed.values())

    def _place(self, pod: Pod, *, is_assumed: bool) -> None:
        self._placed[pod.uid] = _Placed(pod, is_assumed)
        self._count(pod, 1)
        if not self.nodes.add_pod(pod.node_name, pod):
            self._homeless.setdefault(pod.node_name, {})[pod.uid] = pod

    def _displace(self, pod: Pod) -> None:
        del self._placed[pod.uid]
        self._count(pod, -1)
        homeless = self._homeless.get(pod.node_name)
        if homeless is not None and homeless.pop(pod.uid, None) is not None:
            if not homeless:
                del self._homeless[pod.node_name]
            return
        self.nodes.remove_pod(pod.node_name, pod)

    def _replace(self, old: Pod, new: Pod) -> None:
        if old.labels is not new.labels or old.spec is not new.spec or old.is_terminating != new.is_terminating:
            self._count(old, -1)
            self._count(new, 1)
        homeless = self._homeless.get(new.node_name)
        if homeless is not None and new.uid in homeless:
            homeless[new.uid] = new
            return
        self.nodes.replace_pod(new.node_name, old, new)

    def _count(self, pod: Pod, sign: int) -> None:
        """Let everything that groups or counts pods know that one came or went."""
        node_name = pod.node_name
        if sign > 0:
            self.classes.add(pod, node_name)
        else:
            self.classes.remove(pod, node_name)
        self.counts.note(pod, node_name, sign)
        for index in self._counting:
            if sign > 0:
                index.pod_added(pod, node_name)
            else:
                index.pod_removed(pod, node_name)

    # --- indexes -----------------------------------------------------------------------------------------------

    def index(self, cls: type[IndexT]) -> IndexT:
        """The index of this class; made and filled on first use."""
        known: IndexT | None = self._indexes.get(cls)
        if known is None:
            known = cls()
            for row in range(len(self.nodes)):
                known.node_put(None, self.nodes.node(row))
            for placed in self._placed.values():
                known.pod_added(placed.pod, placed.pod.node_name)
            self._tell_of_objects(known)
            self._indexes[cls] = known
            if cls.pod_added is not ClusterIndex.pod_added or cls.pod_removed is not ClusterIndex.pod_removed:
                self._counting.append(known)
        return known

    def _tell_of_objects(self, index: ClusterIndex) -> None:
        for kind in sorted(index.kinds):
            for obj in self.objects(kind).values():
                index.object_put(kind, None, obj)
            self._listening.setdefault(kind, []).append(index)

    # --- everything else ---------------------------------------------------------------------------------------

    def objects(self, kind: str) -> Mapping[str, Any]:
        """Objects of a kind ("PersistentVolumeClaim") by key."""
        return self._objects.get(kind, {})

    def received(self, kind: str, key: str) -> Any | None:
        """The object as the API server last told, without what is still on its way there."""
        return self._received.get((kind, key)) or self.objects(kind).get(key)

    def show(self, kind: str, shown: Any, received: Any) -> None:
        """Let everybody see `shown`, which the API server does not have yet, while the object exists."""
        known = self.objects(kind).get(received.key)
        if known is None or known.uid != received.uid:
            return
        if shown is not known:
            self.put_object(kind, shown)
        if shown is not received:
            self._received[kind, received.key] = received
        else:
            self._received.pop((kind, received.key), None)

    def put_object(self, kind: str, obj: Any, received: Any | None = None) -> Any | None:
        """Keep the newest version; returns the one before. `received` is what was told, if `obj` is what will be."""
        key = obj.key
        if received is not None and received is not obj:
            self._received[kind, key] = received
        elif self._received:
            self._received.pop((kind, key), None)
        known = self._objects.get(kind)
        if known is None:
            known = self._objects[kind] = {}
        old = known.get(key)
        known[key] = obj
        for index in self._listening.get(kind, ()):
            index.object_put(kind, old, obj)
        return old

    def remove_object(self, kind: str, key: str) -> Any | None:
        old = self._objects.get(kind, {}).pop(key, None)
        if old is not None:
            self._received.pop((kind, key), None)
            for index in self._listening.get(kind, ()):
                index.object_removed(kind, old)
        return old

    def check(self) -> None:
        """Verify the invariants; for tests."""
        self.nodes.check()
        on_nodes = {uid for row in range(len(self.nodes)) for uid in self.nodes.pods_on(row)}
        waiting = {uid for pods in self._homeless.values() for uid in pods}
        assert not on_nodes & waiting, "a pod is counted once"
        assert on_nodes | waiting == set(self._placed), "every placed pod is somewhere"
        counted = sum(sum(c.on_node.values()) for c in self.classes.where(lambda _: True))
        assert counted == len(self._placed), "every placed pod is in one class"
        assert all(key in self.objects(kind) for kind, key in self._received), (
            "nothing is kept of objects that are gone"
        )
