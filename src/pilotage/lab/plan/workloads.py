"""The pods that controllers would make of manifests, such as those that Helm writes, as they are when they come.

Fields that an API server fills in are filled in: requests from limits, the priority from its class. A workload whose
pods are among the manifests already (a dump of a cluster) is not expanded again. LimitRanges, and the claims of a
StatefulSet's templates, are not applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final, NamedTuple

import msgspec

from pilotage.model import KINDS, Node
from pilotage.plugins.tolerations import first_untolerated
from pilotage.sandbox.rules.admission import SYSTEM_PRIORITY_CLASSES
from pilotage.sandbox.rules.defaults import apply_defaults
from pilotage.simulate.memory_api import Json

MOST_PODS: Final = 1_000_000
_REPLICATED: Final = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
_DAEMON_TOLERATES: Final = (
    "not-ready",
    "unreachable",
    "disk-pressure",
    "memory-pressure",
    "pid-pressure",
    "unschedulable",
)


class TooManyPods(ValueError):
    """More than anybody can have meant."""


class Template(NamedTuple):
    """A pod, and how many like it there are to be."""

    pod: Json
    copies: int
    is_workload: bool


class Manifests:
    """Objects of files, looked at as what they ask of a scheduler."""

    def __init__(self, objects: Iterable[Json]) -> None:
        self._objects = [deepcopy(obj) for obj in objects]
        for obj in self._objects:
            apply_defaults(str(obj.get("kind")), obj)
        self._owned = {
            (_namespace(obj), str(owner.get("kind")), str(owner.get("name")))
            for obj in self._objects
            for owner in obj["metadata"].get("ownerReferences") or ()
        }
        classes = [obj for obj in self._objects if obj.get("kind") == "PriorityClass"]
        self._priorities = {
            **SYSTEM_PRIORITY_CLASSES,
            **{obj["metadata"]["name"]: obj.get("value", 0) for obj in classes},
        }
        self._default = next((obj.get("value", 0) for obj in classes if obj.get("globalDefault")), 0)

    def of_kind(self, kind: str) -> list[Json]:
        return [obj for obj in self._objects if obj.get("kind") == kind]

    def others(self) -> list[Json]:
        """Everything but nodes and pods."""
        return [obj for obj in self._objects if obj.get("kind") not in ("Node", "Pod")]

    def templates(self) -> Iterator[Template]:
        """Of each workload that has no pods yet, and of each pod."""
        for obj in self._objects:
            kind, spec = str(obj.get("kind")), obj.get("spec") or {}
            if kind == "Pod":
                yield Template(self._admitted(deepcopy(obj)), 1, False)
            elif (_namespace(obj), kind, obj["metadata"]["name"]) in self._owned or _has_controller(obj):
                continue
            elif kind in _REPLICATED:
                yield Template(self._made(obj, spec), int(spec.get("replicas", 1)), True)
            elif kind == "Job":
                yield Template(self._made(obj, spec), _parallel(spec), True)
            elif kind == "CronJob":
                spec = (spec.get("jobTemplate") or {}).get("spec") or {}
                yield Template(self._made(obj, spec), _parallel(spec), True)

    def pods(self) -> list[Json]:
        """All pods, without those of DaemonSets; those that ran already have no node any more."""
        templates = list(self.templates())
        if sum(one.copies for one in templates) > MOST_PODS:
            raise TooManyPods(f"asks for more than {MOST_PODS:,} pods")
        found = []
        for pod, count, is_workload in templates:
            pod["spec"].pop("nodeName", None)
            pod.pop("status", None)
            for number in range(count):
                name = f"{pod['metadata']['name']}-{number}" if is_workload else pod["metadata"]["name"]
                found.append({**pod, "metadata": {**pod["metadata"], "name": name}})
        return found

    def daemons(self, nodes: Sequence[Json]) -> Iterator[Json]:
        """A pod per DaemonSet and node that it is meant for."""
        for obj in self.of_kind("DaemonSet"):
            if (_namespace(obj), "DaemonSet", obj["metadata"]["name"]) in self._owned:
                continue
            made = self._made(obj, obj.get("spec") or {})
            tolerations = made["spec"].setdefault("tolerations", [])
            tolerations += [{"key": f"node.kubernetes.io/{name}", "operator": "Exists"} for name in _DAEMON_TOLERATES]
            for node in nodes:
                if _is_meant_for(made, node):
                    name = node["metadata"]["name"]
                    pod = deepcopy(made)
                    pod["metadata"]["name"] = f"{made['metadata']['name']}-{name}"
                    pod["spec"]["affinity"] = {**(pod["spec"].get("affinity") or {}), "nodeAffinity": _on(name)}
                    yield pod

    def _made(self, owner: Json, spec: Mapping[str, Any]) -> Json:
        template = deepcopy(spec.get("template") or {})
        asked, name = template.get("metadata") or {}, owner["metadata"]["name"]
        reference = {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": name,
            "uid": f"{owner['kind']}/{name}",
        }
        metadata = {
            "name": name,
            "namespace": _namespace(owner),
            "labels": asked.get("labels") or {},
            "annotations": asked.get("annotations") or {},
            "ownerReferences": [{**reference, "controller": True}],
        }
        return self._admitted(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}
        )

    def _admitted(self, pod: Json) -> Json:
        apply_defaults("Pod", pod)
        spec = pod.setdefault("spec", {})
        if spec.get("priority") is None:
            spec["priority"] = self._priorities.get(spec.get("priorityClassName"), self._default)
        return pod


def _namespace(obj: Json) -> str:
    return str(obj["metadata"].get("namespace") or "default")


def _has_controller(obj: Json) -> bool:
    return any(owner.get("controller") for owner in obj["metadata"].get("ownerReferences") or ())


def _parallel(spec: Mapping[str, Any]) -> int:
    parallelism = spec.get("parallelism")
    completions = spec.get("completions")
    return min(1 if parallelism is None else int(parallelism), MOST_PODS if completions is None else int(completions))


def _is_meant_for(pod: Json, node: Json) -> bool:
    """As the DaemonSet controller decides: selector, affinity and taints."""
    spec = KINDS["pods"].decode(msgspec.json.encode(pod)).spec
    made: Node = KINDS["nodes"].decode(msgspec.json.encode(node))
    if any(made.labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    required = spec.affinity and spec.affinity.node_affinity and spec.affinity.node_affinity.required
    if required and not required.matches(made.labels, made.name):
        return False
    return first_untolerated(made.spec.taints, spec) is None


def _on(name: str) -> Json:
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
