"""Other names for things, everywhere in an object where they are named: what anonymising, merging and copying share.

Objects name each other in many ways: a pod its node, claims, classes and group; a selector labels; an affinity
namespaces; a label a queue. `rename` walks an object once and asks `Names` for each of them, so that equal names stay
equal wherever they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from pilotage.lab.trace.content import OBSERVED_NODE, QUEUE_LABEL
from pilotage.lab.trace.format import ObjectName

HOSTNAME: Final = "kubernetes.io/hostname"
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
GROUP_LABELS: Final = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
"""Labels with which members name a PodGroup of the coscheduling plugin."""
_KINDS_IN_LABELS: Final[Mapping[str, str]] = {
    HOSTNAME: "Node",
    NAMESPACE_NAME: "Namespace",
    QUEUE_LABEL: "LocalQueue",
    "kueue.x-k8s.io/priority-class": "WorkloadPriorityClass",
    **dict.fromkeys(GROUP_LABELS, "PodGroup"),
    **dict.fromkeys(("job-name", "batch.kubernetes.io/job-name"), "Job"),
}
"""Labels whose value is the name of an object."""

_NAMING_FIELDS: Final[Mapping[str, str]] = {
    "nodeName": "Node",
    "priorityClassName": "PriorityClass",
    "runtimeClassName": "RuntimeClass",
    "storageClassName": "StorageClass",
    "claimName": "PersistentVolumeClaim",
    "volumeName": "PersistentVolume",
    "persistentVolumeName": "PersistentVolume",
    "resourceClaimName": "ResourceClaim",
    "resourceClaimTemplateName": "ResourceClaimTemplate",
    "deviceClassName": "DeviceClass",
    "podGroupName": "PodGroup",
    "queueName": "LocalQueue",
    "clusterQueue": "ClusterQueue",
    "cohortName": "Cohort",
    "parentName": "Cohort",
    "nominatedNodeName": "Node",
}
"""Fields that hold the name of an object of a kind."""
_LABEL_MAPS: Final = frozenset({"labels", "matchLabels", "nodeSelector", "nodeLabels"})
_KEY_FIELDS: Final = frozenset({"topologyKey"})
_KEY_LISTS: Final = frozenset({"matchLabelKeys", "mismatchLabelKeys", "topologyKeys"})
_LEFT_ALONE: Final = frozenset(
    {"requests", "limits", "capacity", "allocatable", "overhead", "podFixed", "attributes", "counters", "images"}
)
"""Below these are amounts and what devices are like; nothing there is a reference."""
_SELECTOR_MAPS: Final = frozenset({"Service", "ReplicationController"})
_FLAVOR_HOLDERS: Final = frozenset({"ClusterQueue", "Cohort"})


class Names(Protocol):
    """Which name something gets."""

    def name(self, kind: str, name: str) -> str:
        """Of an object, a namespace (kind "Namespace") included."""

    def key(self, key: str) -> str:
        """Of a label or taint."""

    def value(self, key: str, value: str) -> str:
        """Of a label or taint whose value names no object; `key` is the old one."""

    def other(self, what: str, text: str) -> str:
        """Anything else: what "uid", "image", "container", "volume", "handle" says."""


class MalformedObject(Exception):
    """An object in which something stands where something else belongs, such as a number in place of labels."""


def renamed_object(name: ObjectName, names: Names) -> ObjectName:
    """What a record that deletes refers to."""
    namespace = names.name("Namespace", name.namespace) if name.namespace else ""
    return ObjectName(name.api_version, name.kind, names.name(name.kind, name.name), namespace)


def rename(obj: dict[str, Any], names: Names) -> dict[str, Any]:
    """A copy of the object in which everything has its other name."""
    try:
        return _Walk(obj["kind"], names).whole(obj)
    except (AttributeError, KeyError, TypeError) as error:
        raise MalformedObject(f"{obj['kind']} {obj['metadata'].get('name')}: {error}") from error


class _Walk:
    def __init__(self, kind: str, names: Names) -> None:
        self._kind = kind
        self._names = names
        self._special: dict[str, Callable[[Any], Any]] = {
            **dict.fromkeys(_LABEL_MAPS, self._labels),
            **dict.fromkeys(_KEY_LISTS, lambda keys: [names.key(key) for key in keys]),
            "matchExpressions": lambda terms: [self._requirement(term) for term in terms],
            "matchLabelExpressions": lambda terms: [self._requirement(term) for term in terms],
            "matchFields": lambda terms: [self._field_requirement(term) for term in terms],
            "tolerations": lambda items: [self._keyed(item) for item in items],
            "taints": lambda items: [self._keyed(item) for item in items],
            "nodeTaints": lambda items: [self._keyed(item) for item in items],
            "namespaces": lambda items: [self._named("Namespace", item) for item in items],
            "ownerReferences": lambda items: [self._reference(item) for item in items],
            "claimRef": self._claim_reference,
            "reservedFor": lambda items: [self._consumer(item) for item in items],
            "metadata": self._metadata,
            "containers": lambda items: [self._container(item) for item in items],
            "initContainers": lambda items: [self._container(item) for item in items],
            "volumeHandle": lambda text: names.other("handle", text),
            "pool": self._pool,
            "uid": lambda text: names.other("uid", text),
        }

    def whole(self, obj: dict[str, Any]) -> dict[str, Any]:
        made = {key: self._field(key, item) for key, item in obj.items()}
        spec = made.get("spec")
        if self._kind in _SELECTOR_MAPS and isinstance(spec, dict) and isinstance(spec.get("selector"), dict):
            spec["selector"] = self._labels(obj["spec"]["selector"])
        if self._kind in _FLAVOR_HOLDERS:
            for group in (spec or {}).get("resourceGroups") or ():
                for flavor in group.get("flavors") or ():
                    flavor["name"] = self._named("ResourceFlavor", flavor.get("name", ""))
        for image in (made.get("status") or {}).get("images") or () if self._kind == "Node" else ():
            image["names"] = [self._names.other("image", name) for name in image.get("names") or ()]
        for volume in (spec or {}).get("volumes") or () if self._kind == "Pod" else ():
            volume["name"] = self._names.other("volume", volume.get("name", ""))
        return made

    def _tree(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._tree(item) for item in value]
        if isinstance(value, dict):
            return {key: self._field(key, item) for key, item in value.items()}
        return value

    def _field(self, key: str, value: Any) -> Any:
        if value is None or value == "" or key in _LEFT_ALONE:
            return value
        if isinstance(value, str):
            if key in _NAMING_FIELDS:
                return self._named(_NAMING_FIELDS[key], value)
            if key in _KEY_FIELDS:
                return self._names.key(value)
            return self._special[key](value) if key in ("uid", "volumeHandle", "pool") else value
        change = self._special.get(key)
        return change(value) if change is not None else self._tree(value)

    def _named(self, kind: str, name: str) -> str:
        return self._names.name(kind, name) if name else name

    def _metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = self._tree(metadata)
        if not isinstance(made.get("annotations") or {}, dict):
            raise TypeError("metadata.annotations is no map")
        if "name" in made:
            made["name"] = self._names.name(self._kind, made["name"])
        if made.get("namespace"):
            made["namespace"] = self._names.name("Namespace", made["namespace"])
        if OBSERVED_NODE in (made.get("annotations") or {}):
            made["annotations"][OBSERVED_NODE] = self._names.name("Node", made["annotations"][OBSERVED_NODE])
        return made

    def _labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        return {self._names.key(key): self._label_value(key, value) for key, value in labels.items()}

    def _label_value(self, key: str, value: str) -> str:
        if not value:
            return value
        kind = _KINDS_IN_LABELS.get(key)
        return self._names.value(key, value) if kind is None else self._names.name(kind, value)

    def _requirement(self, term: Mapping[str, Any]) -> dict[str, Any]:
        key = term.get("key", "")
        made = {**term, "key": self._names.key(key)}
        if term.get("values"):
            made["values"] = [self._label_value(key, value) for value in term["values"]]
        return made

    def _field_requirement(self, term: Mapping[str, Any]) -> dict[str, Any]:
        if term.get("key") != "metadata.name":
            return dict(term)
        return {**term, "values": [self._named("Node", name) for name in term.get("values") or ()]}

    def _keyed(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """A taint or a toleration."""
        made = dict(item)
        if item.get("key"):
            made["key"] = self._names.key(item["key"])
        if item.get("value"):
            made["value"] = self._label_value(item.get("key", ""), item["value"])
        return made

    def _reference(self, owner: Mapping[str, Any]) -> dict[str, Any]:
        made = {**owner, "name": self._named(owner.get("kind", ""), owner.get("name", ""))}
        if owner.get("uid"):
            made["uid"] = self._names.other("uid", owner["uid"])
        return made

    def _claim_reference(self, reference: Mapping[str, Any]) -> dict[str, Any]:
        made = self._reference({"kind": "PersistentVolumeClaim", **reference})
        made["namespace"] = self._named("Namespace", reference.get("namespace", ""))
        return made

    def _consumer(self, consumer: Mapping[str, Any]) -> dict[str, Any]:
        made = self._reference({**consumer, "kind": "Pod" if consumer.get("resource") == "pods" else ""})
        made.pop("kind")
        return made

    def _container(self, container: Mapping[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = self._tree(container)
        for field, what in (("name", "container"), ("image", "image")):
            if made.get(field):
                made[field] = self._names.other(what, made[field])
        return made

    def _pool(self, pool: Any) -> Any:
        """Drivers call the pool of a node's devices like the node."""
        if isinstance(pool, str):
            return self._names.name("Node", pool)
        return {**pool, "name": self._named("Node", pool.get("name", ""))}
