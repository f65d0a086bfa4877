"""Nodes and pods for tests, in one line each and saying only what matters.

    node("a").cpu("4").zone("z1").taint("gpu", "NoSchedule")
    pod("p").requests(cpu="500m").tolerate("gpu").priority(10)

A builder holds the JSON of an object and never changes: every method returns a new builder, so a base may be shared
by many variations. `build()` decodes that JSON with the same code that reads a real API server, so a test cannot build
an object that the scheduler would never see. `json()` is the object as a user would send it to an API server.

What a test does not say is filled in sensibly: a node has 4 cores, 16 GiB and room for 110 pods and carries its
hostname label; a pod is in namespace "default", has one container that requests nothing, and a uid that follows from
namespace and name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Self

import msgspec

from pilotage.model import KINDS, Node, Pod

Json = dict[str, Any]
Amount = str | int

_ZONE = "topology.kubernetes.io/zone"
_REGION = "topology.kubernetes.io/region"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_SOME_TIME = "2026-01-01T00:00:00Z"


def node(name: str) -> NodeBuilder:
    """A node of 4 cores, 16 GiB and 110 pods without taints."""
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return NodeBuilder(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": {},
            "status": {"capacity": dict(amounts), "allocatable": amounts},
        }
    )


def pod(name: str) -> PodBuilder:
    """A pending pod in namespace "default" that requests nothing."""
    return PodBuilder(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": [{"name": "main", "image": "registry.example/app:1", "resources": {}}]},
        }
    )


class _Builder:
    """What nodes and pods have in common: metadata, and the ways out to JSON."""

    __slots__ = ("_object",)

    def __init__(self, obj: Json) -> None:
        self._object = obj

    def label(self, key: str, value: str = "") -> Self:
        return self._meta("labels", key, value)

    def annotation(self, key: str, value: str = "") -> Self:
        return self._meta("annotations", key, value)

    def uid(self, uid: str) -> Self:
        """Another identity; a recreated pod has the old name and a new uid."""
        return self._put("metadata", uid=uid)

    def version(self, version: Amount) -> Self:
        """The resourceVersion."""
        return self._put("metadata", resourceVersion=str(version))

    def spec(self, **fields: Any) -> Self:
        """Fields of the spec as they stand in JSON, for what has no method of its own: `.spec(hostNetwork=True)`."""
        return self._put("spec", **fields)

    def status(self, **fields: Any) -> Self:
        """Fields of the status as they stand in JSON."""
        return self._put("status", **fields)

    def json(self) -> Json:
        """The object as a dict that is the caller's own; without uid and version unless they were given."""
        return deepcopy(self._object)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._object})"

    def _built_json(self) -> bytes:
        """What `build` decodes: the object with the uid that an API server would have given it."""
        obj = self.json()
        metadata = obj["metadata"]
        metadata.setdefault("uid", "-".join(filter(None, ["uid", metadata.get("namespace"), metadata["name"]])))
        return msgspec.json.encode(obj)

    def _meta(self, field: str, key: str, value: str) -> Self:
        return self._changed(lambda obj: obj["metadata"].setdefault(field, {}).update({key: value}))

    def _put(self, part: str, **fields: Any) -> Self:
        return self._changed(lambda obj: obj.setdefault(part, {}).update(deepcopy(fields)))

    def _append(self, field: str, item: Json) -> Self:
        """Add an item to a list of the spec."""
        return self._changed(lambda obj: obj["spec"].setdefault(field, []).append(item))

    def _changed(self, change: Callable[[Json], None]) -> Self:
        obj = deepcopy(self._object)
        change(obj)
        return type(self)(obj)


class NodeBuilder(_Builder):
    """Describes a node; made by `node(name)`."""

    __slots__ = ()

    def cpu(self, amount: Amount) -> Self:
        return self.allocatable("cpu", amount)

    def memory(self, amount: Amount) -> Self:
        return self.allocatable("memory", amount)

    def pods(self, count: int) -> Self:
        """How many pods the node takes."""
        return self.allocatable("pods", count)

    def allocatable(self, resource: str, amount: Amount) -> Self:
        """How much of any resource the node has, and offers."""

        def change(obj: Json) -> None:
            for field in ("capacity", "allocatable"):
                obj["status"][field][resource] = str(amount)

        return self._changed(change)

    def without(self, resource: str) -> Self:
        """A node that does not report this resource at all."""

        def change(obj: Json) -> None:
            for field in ("capacity", "allocatable"):
                obj["status"][field].pop(resource, None)

        return self._changed(change)

    def zone(self, zone: str) -> Self:
        return self.label(_ZONE, zone)

    def region(self, region: str) -> Self:
        return self.label(_REGION, region)

    def taint(self, key: str, effect: str, value: str = "") -> Self:
        return self._append("taints", {"key": key, "effect": effect, **({"value": value} if value else {})})

    def unschedulable(self) -> Self:
        """Cordoned."""
        return self.spec(unschedulable=True)

    def condition(self, type_: str, status: str) -> Self:
        entry = {"type": type_, "status": status}
        return self._changed(lambda obj: obj["status"].setdefault("conditions", []).append(entry))

    def build(self) -> Node:
        """The node as the scheduler would decode it."""
        built: Node = KINDS["nodes"].decode(self._built_json())
        return built


class PodBuilder(_Builder):
    """Describes a pod; made by `pod(name)`."""

    __slots__ = ()

    def requests(self, amounts: Mapping[str, Amount] | None = None, /, **named: Amount) -> Self:
        """What the (first) container requests: `.requests(cpu="1")`, `.requests({"nvidia.com/gpu": 1})`."""
        wanted = _amounts({**(amounts or {}), **named})
        return self._changed(
            lambda obj: obj["spec"]["containers"][0]["resources"].setdefault("requests", {}).update(wanted)
        )

    def container(self, name: str, **requests: Amount) -> Self:
        """One more container beside the first."""
        return self._append("containers", _container(name, requests))

    def init_container(self, name: str, *, sidecar: bool = False, **requests: Amount) -> Self:
        """A container that runs before the others, or (sidecar) starts before them and keeps running."""
        policy = {"restartPolicy": "Always"} if sidecar else {}
        return self._append("initContainers", {**_container(name, requests), **policy})

    def overhead(self, **amounts: Amount) -> Self:
        return self.spec(overhead=_amounts(amounts))

    def priority(self, priority: int) -> Self:
        return self.spec(priority=priority)

    def namespace(self, namespace: str) -> Self:
        return self._put("metadata", namespace=namespace)

    def generation(self, generation: int) -> Self:
        return self._put("metadata", generation=generation)

    def owner(self, kind: str, name: str, api_version: str = "apps/v1") -> Self:
        """The controller that made the pod."""
        owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
        return self._put("metadata", ownerReferences=[owner])

    def node(self, name: str) -> Self:
        """Bound to a node."""
        return self.spec(nodeName=name)

    def scheduler(self, name: str) -> Self:
        """To be scheduled by the profile of this name."""
        return self.spec(schedulerName=name)

    def tolerate(self, key: str = "", effect: str = "", value: str | None = None) -> Self:
        """Tolerate a taint by key and value, or by key alone; without a key every taint (of that effect)."""
        how = {"operator": "Exists"} if value is None else {"operator": "Equal", "value": value}
        where = {name: text for name, text in (("key", key), ("effect", effect)) if text}
        return self._append("tolerations", {**where, **how})

    def node_selector(self, labels: Mapping[str, str] | None = None, /, **named: str) -> Self:
        """Labels that the node must have: `.node_selector(disk="ssd")`, `.node_selector({"example.com/a": "b"})`."""
        wanted = {**(labels or {}), **named}
        return self._changed(lambda obj: obj["spec"].setdefault("nodeSelector", {}).update(wanted))

    def node_affinity_in(self, key: str, values: Sequence[str]) -> Self:
        """Required node affinity: the node's label must have one of the values. Several calls must all hold."""

        def change(obj: Json) -> None:
            required = _node_affinity(obj).setdefault(_REQUIRED, {"nodeSelectorTerms": [{"matchExpressions": []}]})
            required["nodeSelectorTerms"][0]["matchExpressions"].append(_in(key, values))

        return self._changed(change)

    def node_affinity_terms(self, *terms: Json) -> Self:
        """Required node affinity in JSON: any of the terms must match."""
        return self._changed(lambda obj: _node_affinity(obj).update({_REQUIRED: {"nodeSelectorTerms": list(terms)}}))

    def prefer(self, key: str, values: Sequence[str], weight: int = 1) -> Self:
        """Preferred node affinity: nodes whose label has one of the values get the weight."""
        term = {"weight": weight, "preference": {"matchExpressions": [_in(key, values)]}}
        return self._changed(lambda obj: _node_affinity(obj).setdefault(_PREFERRED, []).append(term))

    def gate(self, name: str) -> Self:
        """A scheduling gate."""
        return self._append("schedulingGates", {"name": name})

    def ungated(self) -> Self:
        """The same pod after its last scheduling gate was removed."""
        return self._changed(lambda obj: obj["spec"].pop("schedulingGates", None))

    def phase(self, phase: str) -> Self:
        return self.status(phase=phase)

    def nominated(self, node_name: str) -> Self:
        """Preemption made room for the pod on this node."""
        return self.status(nominatedNodeName=node_name)

    def terminating(self) -> Self:
        """Deleted, but still there for its grace period."""
        return self._put("metadata", deletionTimestamp=_SOME_TIME, deletionGracePeriodSeconds=30)

    def build(self) -> Pod:
        """The pod as the scheduler would decode it."""
        built: Pod = KINDS["pods"].decode(self._built_json())
        return built


def _container(name: str, requests: Mapping[str, Amount]) -> Json:
    resources = {"requests": _amounts(requests)} if requests else {}
    return {"name": name, "image": "registry.example/app:1", "resources": resources}


def _amounts(amounts: Mapping[str, Amount]) -> dict[str, str]:
    return {resource: str(amount) for resource, amount in amounts.items()}


def _node_affinity(obj: Json) -> Json:
    found: Json = obj["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    return found


def _in(key: str, values: Sequence[str]) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}
