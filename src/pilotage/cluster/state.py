"""The cluster as the scheduler believes it to be.

A pod that was just placed is *assumed*: it counts on its node before the API server knows. Its watch event confirms
it; a failed binding forgets it.

    unknown -- assume --> assumed -- watch event --> confirmed -- deleted --> unknown
                             |
                             +-- forget --> unknown

Pods whose node is not known (yet) wait in `_pods_on_unknown_nodes` and are counted when the node arrives.

Objects that API calls on their way will change are kept twice: as they will be, which all readers see, and as the API
server last sent them, which comes back if the call fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from pilotage.api.kinds import Kind, WatchedKinds
from pilotage.change_log import ChangeLog
from pilotage.cluster.indexes import NODE, POD, Content, Indexes, IndexT
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.cluster.node_view import RowView
from pilotage.cluster.pod_classes import PodClasses, SelectorCounts
from pilotage.model import Node, Pod
from pilotage.model.codec import json_of
from pilotage.observe.skipped_objects import SkippedObjects


class AssumeError(Exception):
    """The pod is on a node already: two decisions for one pod."""


class Nominations:
    """Pods that are nominated to a node, by node and by UID: they made room there and wait for it to become free."""

    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}
        self._by_node: dict[str, dict[str, Pod]] = {}
        self.log: ChangeLog[str] = ChangeLog()
        """Names of the nodes whose nominations have changed."""

    def __len__(self) -> int:
        return len(self._node_of)

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Remember (or with "" forget) the nominated node of the pod."""
        if node_name and self._node_of.get(pod.uid) == node_name and self._is_renewal(pod, node_name):
            self._by_node[node_name][pod.uid] = pod
            return
        self.remove(pod.uid)
        if node_name:
            self._node_of[pod.uid] = node_name
            self._by_node.setdefault(node_name, {})[pod.uid] = pod
            self.log.touch(node_name)

    def _is_renewal(self, pod: Pod, node_name: str) -> bool:
        """Whether this is the pod that is nominated, with nothing new that filters could look at."""
        known = self._by_node[node_name][pod.uid]
        return known.spec is pod.spec and known.labels == pod.labels

    def remove(self, uid: str) -> None:
        node_name = self._node_of.pop(uid, None)
        if node_name is None:
            return
        pods = self._by_node[node_name]
        del pods[uid]
        if not pods:
            del self._by_node[node_name]
        self.log.touch(node_name)

    def follow(self, old: Pod | None, new: Pod) -> None:
        """A pending pod changed: its status decides, unless only we know of its nomination yet."""
        before = "" if old is None else old.status.nominated_node_name
        after = new.status.nominated_node_name
        if not before and not after:
            after = self._node_of.get(new.uid, "")
            if not after:
                return
        self.nominate(new, after)

    def node_of(self, uid: str) -> str:
        return self._node_of.get(uid, "")

    def on(self, node_name: str) -> list[Pod]:
        return list(self._by_node.get(node_name, {}).values())

    def nodes(self) -> Iterator[str]:
        return iter(self._by_node)

    def check(self) -> None:
        """Verify the invariants; for tests."""
        filed = {uid: node for node, pods in self._by_node.items() for uid in pods}
        assert filed == self._node_of
        assert all(self._by_node.values())


class _Placed(msgspec.Struct, eq=False):
    pod: Pod
    is_assumed: bool


class Cluster:
    """Nodes, the pods on them, and every other object that scheduling reads."""

    def __init__(self, skipped: SkippedObjects | None = None, kinds: WatchedKinds | None = None) -> None:
        """`skipped` gets the objects that an index of a plugin cannot take; `kinds` are those that are watched."""
        self.kinds = kinds if kinds is not None else WatchedKinds()
        self.skipped = skipped if skipped is not None else SkippedObjects()
        self.nodes = ClusterNodeTable()
        self.classes = PodClasses()
        self._placed: dict[str, _Placed] = {}
        self._pods_on_unknown_nodes: dict[str, dict[str, Pod]] = {}
        self._objects: dict[str, dict[str, Any]] = {key: {} for key in self.kinds.keys}
        self._by_name = {name: self._objects[key] for name, key in self.kinds.names.items()}
        self._received: dict[tuple[str, str], Any] = {}
        """By kind and key, as the API server last sent them: only those that are shown otherwise."""
        self._indexes = Indexes(self._content, self.skipped, self.kinds)
        self.nominations = Nominations()
        self.counts = SelectorCounts(self.nodes, self.classes)

    # --- as the API server sends -------------------------------------------------------------------------------

    def put(self, kind: str, obj: Any, received: Any | None = None) -> Any | None:
        """An object of any kind: kept, and what it means for nodes, pods and nominations; returns the version before.

        Finished pods are taken out. `received` is what was sent, if `obj` is what will be.
        """
        if kind == "Pod" and obj.is_finished:
            known = self._objects["Pod"].get(obj.key)
            self.remove(kind, obj)
            return known
        old = self.put_object(kind, obj, received)
        if kind == "Node":
            self.put_node(obj)
        elif kind == "Pod" and obj.node_name:
            self.put_pod(obj)
            self.nominations.remove(obj.uid)
        elif kind == "Pod":
            self.nominations.follow(old, obj)
        return old

    def remove(self, kind: str, obj: Any) -> None:
        """The object is gone, and what it meant with it."""
        for step in self._removals(kind, obj):
            step()

    def discard(self, kind: str, obj: Any) -> None:
        """Take out what is there of an object that could not be put in as a whole; does not raise."""
        for step in self._removals(kind, obj):
            with suppress(Exception):
                step()
        self._objects.get(kind, {}).pop(obj.key, None)
        self._placed.pop(obj.uid, None)

    def _removals(self, kind: str, obj: Any) -> list[Callable[[], object]]:
        steps: list[Callable[[], object]] = [lambda: self.remove_object(kind, obj.key)]
        if kind == "Pod":
            steps += [lambda: self.remove_pod(obj.uid), lambda: self.nominations.remove(obj.uid)]
        elif kind == "Node":
            steps.append(lambda: self.remove_node(obj.name))
        return steps

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
        for pod in self._pods_on_unknown_nodes.pop(node.name, {}).values():
            self.nodes.add_pod(node.name, pod)
        self._indexes.node_put(old, node)

    def remove_node(self, name: str) -> None:
        node = self.node(name)
        if node is None:
            return
        self._indexes.node_removed(node)
        pods = self.nodes.remove_node(name)
        if pods:
            self._pods_on_unknown_nodes[name] = {pod.uid: pod for pod in pods}

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
            self._pods_on_unknown_nodes.setdefault(pod.node_name, {})[pod.uid] = pod

    def _displace(self, pod: Pod) -> None:
        del self._placed[pod.uid]
        self._count(pod, -1)
        unplaced = self._pods_on_unknown_nodes.get(pod.node_name)
        if unplaced is not None and unplaced.pop(pod.uid, None) is not None:
            if not unplaced:
                del self._pods_on_unknown_nodes[pod.node_name]
            return
        self.nodes.remove_pod(pod.node_name, pod)

    def _replace(self, old: Pod, new: Pod) -> None:
        if old.labels is not new.labels or old.spec is not new.spec or old.is_terminating != new.is_terminating:
            self._count(old, -1)
            self._count(new, 1)
        unplaced = self._pods_on_unknown_nodes.get(new.node_name)
        if unplaced is not None and new.uid in unplaced:
            unplaced[new.uid] = new
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
        if sign > 0:
            self._indexes.pod_added(pod)
        else:
            self._indexes.pod_removed(pod)

    # --- indexes -----------------------------------------------------------------------------------------------

    def index(self, cls: type[IndexT]) -> IndexT:
        """The index of this class; made and filled on first use."""
        return self._indexes.get(cls)

    def settle(self) -> None:
        """Put indexes right that could not take an object: to be called after changes, before anything is decided."""
        self._indexes.settle()

    def _content(self, kinds: Mapping[str, str]) -> Content:
        for row in range(len(self.nodes)):
            yield NODE, self.nodes.node(row)
        for placed in self._placed.values():
            yield POD, placed.pod
        for name, key in kinds.items():
            for obj in self.objects(key).values():
                yield name, obj

    # --- everything else ---------------------------------------------------------------------------------------

    def objects(self, kind: str) -> Mapping[str, Any]:
        """Objects of a kind ("PersistentVolumeClaim") by key."""
        return self._objects.get(kind, {})

    def watched(self, kind: str | Kind) -> Mapping[str, Any]:
        """Objects of a kind by any of its names, by key; UnknownKind if it is not watched."""
        known = self._by_name.get(kind)
        return known if known is not None else self._objects[self.kinds.key(kind)]

    def received(self, kind: str, key: str) -> Any | None:
        """The object as the API server last sent it, without what is still on its way there."""
        return self._received.get((kind, key)) or self.objects(kind).get(key)

    def json_of(self, obj: Any) -> bytes | None:
        """The JSON of an object as the API server last sent it; None if it is not kept."""
        data = json_of(obj)
        if data is None:
            # Made from what was received by code that did not read it from JSON.
            received = self.received(type(obj).__name__, obj.key)
            data = json_of(received) if received is not None and received.uid == obj.uid else None
        return data

    def show(self, kind: str, shown: Any, received: Any) -> None:
        """Let all readers see `shown`, which the API server does not have yet, while the object exists."""
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
        """Keep the newest version; returns the one before. `received` is what was sent, if `obj` is what will be."""
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
        self._indexes.object_put(kind, old, obj)
        return old

    def remove_object(self, kind: str, key: str) -> Any | None:
        old = self._objects.get(kind, {}).pop(key, None)
        if old is not None:
            self._received.pop((kind, key), None)
            self._indexes.object_removed(kind, old)
        return old

    def check(self) -> None:
        """Verify the invariants; for tests."""
        self.nodes.check()
        on_nodes = {uid for row in range(len(self.nodes)) for uid in self.nodes.pods_on(row)}
        waiting = {uid for pods in self._pods_on_unknown_nodes.values() for uid in pods}
        assert not on_nodes & waiting, "a pod is counted once"
        assert on_nodes | waiting == set(self._placed), "every placed pod is somewhere"
        counted = sum(sum(c.on_node.values()) for c in self.classes.where(lambda _: True))
        assert counted == len(self._placed), "every placed pod is in one class"
        assert all(key in self.objects(kind) for kind, key in self._received), (
            "nothing is kept of objects that are gone"
        )
