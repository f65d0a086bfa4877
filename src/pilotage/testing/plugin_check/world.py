"""A random cluster with a plugin in it, and the changes that may happen to such a cluster.

A change is applied as the scheduler would take it in: the cluster is updated, and what is returned are the events that
the scheduler would then ask hints about, with the old and the new object.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from pilotage.api.events import Action, ClusterEvent, Resource
from pilotage.api.kinds import Kind
from pilotage.api.plugin import Plugin
from pilotage.cluster.changes import node_events, pod_events
from pilotage.model import KINDS, Pod
from pilotage.model.kinds import POD_GROUPS
from pilotage.model.pod_group import PodGroup
from pilotage.testing.builders import NodeBuilder, PodBuilder
from pilotage.testing.fake_handle import FakeHandle
from pilotage.testing.plugin_check.random_kinds import RandomKinds
from pilotage.testing.plugin_check.random_objects import RandomObjects, renamed

_NODES: Final = (1, 1, 2, 5)
"""Few nodes, because a pod that fits nowhere is of interest too."""
_PODS_PER_NODE: Final = 2
_PENDING: Final = 4
_GROUPS: Final = 2
_MEMBERS: Final = 3

_OBJECTS_PER_KIND: Final = 3

MakePlugin = Callable[[FakeHandle], Plugin]


@dataclass(frozen=True, slots=True)
class Happening:
    """One change of the cluster or of the pod, in words and as events."""

    what: str
    events: tuple[ClusterEvent, ...]
    old: Any
    new: Any


_NOTHING: Final = Happening("nothing", (), None, None)


class RandomCluster:
    """Nodes, pods on them, pending pods, and a plugin that sees all of it."""

    def __init__(self, rng: random.Random, objects: RandomObjects, make: MakePlugin, kinds: RandomKinds) -> None:
        self._rng = rng
        self._kinds = kinds
        self._objects = objects
        self._names = 0
        self.nodes: dict[str, NodeBuilder] = {}
        self.placed: dict[str, PodBuilder] = {}
        self._groups: list[tuple[PodGroup, list[Pod]]] = []
        self.handle = FakeHandle(rng=rng, watches=kinds.kinds)
        self.cluster = self.handle.cluster
        self.handle.put(KINDS["namespaces"].decode(b'{"metadata":{"name":"default","uid":"uid-default"}}'))
        for _ in range(rng.choice(_NODES)):
            self._put_node(objects.node(self._new_name("node")))
        for _ in range(_PODS_PER_NODE * len(self.nodes)):
            self._put_pod(objects.pod(self._new_name("placed")).node(rng.choice(sorted(self.nodes))))
        self.pending = self.more_pods(_PENDING)
        for _ in range(_OBJECTS_PER_KIND * len(kinds.kinds)):
            self._object_comes()
        self.plugin = make(self.handle)

    def variants(self, pod: PodBuilder) -> list[PodBuilder]:
        """Pods that differ from this one in one thing each, under other names."""
        objects = self._objects
        changes: list[Callable[[PodBuilder], PodBuilder]] = [
            lambda built: built,
            lambda built: built.label(*objects.label()),
            lambda built: built.priority(77),
            lambda built: built.requests(cpu="300m"),
            lambda built: built.namespace("other"),
            *[objects.tolerant, objects.choosy, objects.noted_pod, objects.demanding, objects.fond],
            *[objects.owned, objects.reported],
        ]
        named = PodBuilder(renamed(pod.json(), f"like-{pod.build().name}"))
        return [change(named) for change in changes]

    def twins(self, pod: PodBuilder) -> list[PodBuilder]:
        """Pending pods that share namespace, spec and labels with this one, and differ in all else."""
        objects, name = self._objects, pod.build().name
        names = [objects.pod_name(f"twin-{number}-{name}") for number in range(4)]
        same, noted, owned, reported = (PodBuilder(renamed(pod.json(), name)) for name in names)
        twins = [same, objects.noted_pod(noted), objects.owned(owned), objects.reported(reported)]
        self.handle.put(*(twin.build() for twin in twins))
        return twins

    def more_pods(self, count: int) -> list[PodBuilder]:
        """Other pending pods."""
        pods = [self._objects.pod(self._new_name("pod")) for _ in range(count)]
        self.handle.put(*(builder.build() for builder in pods))
        return pods

    def pod_groups(self) -> list[tuple[PodGroup, list[Pod]]]:
        """Groups with members that wait; the same ones whenever it is asked, as nothing is shared with other checks."""
        if not self._groups:
            for number in range(_GROUPS):
                self._groups.append(self._new_group(f"group-{number}"))
        return self._groups

    def _new_group(self, name: str) -> tuple[PodGroup, list[Pod]]:
        key, _ = self._objects.label()
        members = [pod.spec(schedulingGroup={"podGroupName": name}).priority(5) for pod in self.more_pods(_MEMBERS)]
        spec: dict[str, Any] = {
            "schedulingPolicy": {"gang": {"minCount": self._rng.randint(1, _MEMBERS)}},
            "priority": 5,
        }
        if self.chance(0.7):
            spec["schedulingConstraints"] = {"topology": [{"key": key}]}
        made = {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "spec": spec}
        group: PodGroup = KINDS[POD_GROUPS].decode(msgspec.json.encode(made))
        pods = [member.namespace("default").build() for member in members]
        self.handle.put(group, *pods)
        return group, pods

    def chance(self, likelihood: float) -> bool:
        return self._objects.chance(likelihood)

    def sample(self, values: range, count: int) -> list[int]:
        return self._rng.sample(values, count)

    # --- what may happen ---------------------------------------------------------------------------------------

    def something_happens(self) -> Happening:
        """To a node or a pod on it, at random."""
        if self._kinds.kinds and self.chance(0.4):
            return self._object_happens()
        likely = (self._node_changes, self._node_changes, self._node_comes, self._pod_goes, self._pod_comes)
        change = self._rng.choice((*likely, self._pod_changes, self._node_goes))
        return change()

    def other_node_changes(self) -> Happening:
        """To one node or a pod on it, or to an object that the plugin watches, without nodes coming or going."""
        if self._kinds.kinds and self.chance(0.4):
            return self._object_happens()
        return self._rng.choice((self._node_changes, self._pod_goes, self._pod_comes))()

    def pod_happens(self, pod: PodBuilder) -> tuple[PodBuilder, Happening]:
        """Something happens to a pending pod: it is what people can change of a pod that is not running."""
        objects = self._objects
        smaller = {"requests": {"cpu": "1m", "memory": "1Mi"}}
        containers = [{**container, "resources": smaller} for container in pod.json()["spec"]["containers"]]
        changed = self._rng.choice(
            (
                lambda: pod.label(*objects.label()),
                lambda: objects.noted_pod(pod),
                pod.tolerate,
                pod.ungated,
                lambda: pod.spec(containers=containers),
            )
        )()
        old, new = pod.build(), changed.build()
        self.handle.put(new)
        return changed, Happening(
            "the pod itself was changed", tuple(pod_events(old, new, Resource.TARGET_POD)), old, new
        )

    def _node_changes(self) -> Happening:
        name = self._rng.choice(sorted(self.nodes))
        before = self.nodes[name]
        after = self._changed_node(before)
        old, new = before.build(), after.build()
        self._put_node(after)
        return Happening(f"node {name} changed: {_difference(before, after)}", tuple(node_events(old, new)), old, new)

    def _changed_node(self, built: NodeBuilder) -> NodeBuilder:
        objects, rng = self._objects, self._rng
        labels = sorted(built.json()["metadata"]["labels"])
        changes: list[Callable[[], NodeBuilder]] = [
            lambda: built.label(*objects.label()),
            lambda: _without_label(built, rng.choice(labels)) if labels else built,
            lambda: built.spec(taints=[]),
            lambda: objects.tainted(built),
            lambda: built.spec(unschedulable=not built.json()["spec"].get("unschedulable", False)),
            lambda: built.cpu(16).memory("64Gi").pods(110),
            lambda: objects.equipped(built),
            lambda: objects.noted(built),
        ]
        return rng.choice(changes)()

    def _node_comes(self) -> Happening:
        built = self._objects.node(self._new_name("node"))
        self._put_node(built)
        event = ClusterEvent(Resource.NODE, Action.ADD)
        return Happening(f"node {built.build().name} came: {built.json()}", (event,), None, built.build())

    def _node_goes(self) -> Happening:
        if len(self.nodes) == 1:
            return self._node_changes()
        name = self._rng.choice(sorted(self.nodes))
        if self.cluster.nodes.pods_on(self.cluster.nodes.row(name) or 0):
            return self._pod_goes()  # pods leave before their node does
        node = self.nodes.pop(name).build()
        self.cluster.remove("Node", node)
        return Happening(f"node {name} went", (ClusterEvent(Resource.NODE, Action.DELETE),), node, None)

    def _pod_comes(self) -> Happening:
        built = self._objects.pod(self._new_name("placed")).node(self._rng.choice(sorted(self.nodes)))
        self._put_pod(built)
        pod = built.build()
        event = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD)
        return Happening(f"pod {pod.key} came to node {pod.node_name}: {built.json()}", (event,), None, pod)

    def _pod_goes(self) -> Happening:
        if not self.placed:
            return self._pod_comes()
        pod = self.placed.pop(self._rng.choice(sorted(self.placed))).build()
        self.cluster.remove("Pod", pod)
        event = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
        return Happening(f"pod {pod.key} left node {pod.node_name}", (event,), pod, None)

    def _pod_changes(self) -> Happening:
        if not self.placed:
            return self._pod_comes()
        before = self.placed[self._rng.choice(sorted(self.placed))]
        after = before.label(*self._objects.label())
        old, new = before.build(), after.build()
        self._put_pod(after)
        events = tuple(pod_events(old, new, Resource.ASSIGNED_POD))
        return Happening(
            f"pod {old.key} on node {old.node_name} changed: {_difference(before, after)}", events, old, new
        )

    def _object_happens(self) -> Happening:
        return self._rng.choice((self._object_comes, self._object_changes, self._object_changes, self._object_goes))()

    def _object_comes(self) -> Happening:
        kind = self._rng.choice(self._kinds.kinds)
        made = self._kinds.new(kind, sorted(self.nodes))
        if made is None:
            return _NOTHING
        old = self.handle.objects(kind).get(made.key)
        return self._object_put(kind, old, made)

    def _object_changes(self) -> Happening:
        kind = self._rng.choice(self._kinds.kinds)
        known = self.handle.objects(kind)
        if not known:
            return self._object_comes()
        old = known[self._rng.choice(sorted(known))]
        made = self._kinds.changed(kind, old)
        return _NOTHING if made is None else self._object_put(kind, old, made)

    def _object_put(self, kind: Kind, old: Any, new: Any) -> Happening:
        self.cluster.put(kind.name, new)
        event = ClusterEvent(kind.name, Action.ADD if old is None else Action.UPDATE)
        return Happening(f"{kind.resource} {new.key} is now {new!r:.500}", (event,), old, new)

    def _object_goes(self) -> Happening:
        kind = self._rng.choice(self._kinds.kinds)
        known = self.handle.objects(kind)
        if not known:
            return self._object_comes()
        gone = self.cluster.remove_object(kind.name, self._rng.choice(sorted(known)))
        assert gone is not None
        event = ClusterEvent(kind.name, Action.DELETE)
        return Happening(f"{kind.resource} {gone.key} is gone", (event,), gone, None)

    def _new_name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}-{self._names}"

    def _put_node(self, built: NodeBuilder) -> None:
        self.nodes[built.build().name] = built
        self.handle.put(built.build())

    def _put_pod(self, built: PodBuilder) -> None:
        self.placed[built.build().key] = built
        self.handle.put(built.build())


def _without_label(built: NodeBuilder, key: str) -> NodeBuilder:
    obj = built.json()
    obj["metadata"]["labels"].pop(key)
    return NodeBuilder(obj)


def _difference(before: NodeBuilder | PodBuilder, after: NodeBuilder | PodBuilder) -> str:
    old, new = before.json(), after.json()
    parts = [
        f"{part}.{field} {old.get(part, {}).get(field)} -> {new.get(part, {}).get(field)}"
        for part in ("metadata", "spec", "status")
        for field in sorted({*old.get(part, {}), *new.get(part, {})})
        if old.get(part, {}).get(field) != new.get(part, {}).get(field)
    ]
    return ", ".join(parts) or "nothing that matters"
