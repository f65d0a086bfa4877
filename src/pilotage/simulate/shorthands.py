"""Short forms of Kubernetes objects for scenarios: `{pod: {name: p, cpu: 2}}` instead of a page of YAML.

`full_object` turns a short form into the object that it stands for, `merge_patch` the fields of an update (`set`) into
a JSON merge patch. Pods and nodes, which have the most fields, are in files of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pilotage.simulate.pod_shorthand import pod_object, pod_patch, selector_terms

Json = dict[str, Any]
NAMESPACE: Final = "default"

_AMOUNTS = {"cpu": 4, "memory": "16Gi", "pods": 110}


def node_object(s: Json) -> Json:
    amounts = {resource: str(s.get(resource, default)) for resource, default in _AMOUNTS.items()}
    amounts |= {resource: str(amount) for resource, amount in s.get("extended", {}).items()}
    status: Json = {
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    if "features" in s:
        status["declaredFeatures"] = s["features"]
    spec: Json = {}
    if "taints" in s:
        spec["taints"] = [taint(text) for text in s["taints"]]
    if s.get("unschedulable"):
        spec["unschedulable"] = True
    labels = {"kubernetes.io/hostname": s["name"], **s.get("labels", {})}
    return {"metadata": {"labels": labels}, "spec": spec, "status": status}


def node_patch(s: Json) -> Json:
    amounts = {resource: str(s[resource]) for resource in _AMOUNTS if resource in s}
    amounts |= {resource: None if n is None else str(n) for resource, n in s.get("extended", {}).items()}
    status: Json = {"capacity": amounts, "allocatable": amounts} if amounts else {}
    if "features" in s:
        status["declaredFeatures"] = s["features"]
    spec: Json = {}
    if "taints" in s:
        spec["taints"] = [taint(text) for text in s["taints"]] or None
    if "unschedulable" in s:
        spec["unschedulable"] = True if s["unschedulable"] else None
    return {**({"spec": spec} if spec else {}), **({"status": status} if status else {})}


def taint(text: str) -> Json:
    """`key=value:Effect`, or `key:Effect`."""
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


class ShorthandError(ValueError):
    """What is wrong with a short form."""


@dataclass(frozen=True, slots=True)
class Shorthand:
    """One kind of short form."""

    api_version: str
    kind: str
    is_namespaced: bool
    fields: frozenset[str]
    expand: Callable[[Json], Json]


def _volume(s: Json) -> Json:
    source = {"csi": {"driver": s["csi"], "volumeHandle": s["name"]}} if "csi" in s else {"hostPath": {"path": "/data"}}
    spec: Json = {
        "capacity": {"storage": s.get("size", "1Gi")},
        "accessModes": s.get("modes", ["ReadWriteOnce"]),
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": s.get("class", ""),
        **source,
    }
    if "nodeAffinity" in s:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": selector_terms(s["nodeAffinity"])}}
    if "claim" in s:
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", "namespace": NAMESPACE, "name": s["claim"]}
    return {"spec": spec, "status": {"phase": "Bound" if "claim" in s else "Available"}}


def _volume_claim(s: Json) -> Json:
    spec: Json = {
        "accessModes": s.get("modes", ["ReadWriteOnce"]),
        "resources": {"requests": {"storage": s.get("size", "1Gi")}},
        "storageClassName": s.get("class", ""),
    }
    claim: Json = {"spec": spec, "status": {"phase": "Pending"}}
    return claim if "volume" not in s else _merged(claim, _bound_to(s["volume"]))


def _bound_to(volume: str) -> Json:
    return {
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": volume},
        "status": {"phase": "Bound"},
    }


def _storage_class(s: Json) -> Json:
    made: Json = {
        "provisioner": s.get("provisioner", "disk.example.com"),
        "volumeBindingMode": s.get("mode", "Immediate"),
    }
    if "topology" in s:
        expressions = [{"key": key, "values": values} for key, values in s["topology"].items()]
        made["allowedTopologies"] = [{"matchLabelExpressions": expressions}]
    return made


def _csi_node(s: Json) -> Json:
    drivers = [
        {"name": driver, "nodeID": s["name"], "topologyKeys": [], "allocatable": {"count": count}}
        for driver, count in s.get("drivers", {}).items()
    ]
    return {"spec": {"drivers": drivers}}


def _csi_driver(s: Json) -> Json:
    return {"spec": {"storageCapacity": s.get("storageCapacity", False), "attachRequired": True}}


def _csi_capacity(s: Json) -> Json:
    maximum = {"maximumVolumeSize": s["maximum"]} if "maximum" in s else {}
    topology = {"matchLabels": s.get("topology", {})}
    return {"storageClassName": s["class"], "capacity": s["capacity"], "nodeTopology": topology, **maximum}


def _attachment(s: Json) -> Json:
    source = {"persistentVolumeName": s["pv"]}
    return {
        "spec": {"attacher": s["attacher"], "nodeName": s["node"], "source": source},
        "status": {"attached": True},
    }


def _device_class(s: Json) -> Json:
    return {"spec": {"extendedResourceName": s["extendedResource"]} if "extendedResource" in s else {}}


def _slice(s: Json) -> Json:
    pool = {"name": s["node"], "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": device} for device in s["devices"]]
    return {"spec": {"driver": s["driver"], "nodeName": s["node"], "pool": pool, "devices": devices}}


def _taint_rule(s: Json) -> Json:
    """Taints the devices of a driver, one pool of it (a node's) or one device."""
    selected = {
        full: s[short] for short, full in (("driver", "driver"), ("node", "pool"), ("device", "device")) if short in s
    }
    key, _, effect = s["taint"].partition(":")
    return {"spec": {"deviceSelector": selected, "taint": {"key": key, "effect": effect}}}


def _service(s: Json) -> Json:
    return {"spec": {"selector": s["match"]}}


def _claim(s: Json) -> Json:
    wanted = {"deviceClassName": s["class"], "allocationMode": "ExactCount", "count": 1}
    made: Json = {"spec": {"devices": {"requests": [{"name": "r", "exactly": wanted}]}}, "status": {}}
    if "allocated" in s:
        made["status"]["allocation"] = _allocation(s["allocated"])
    if "owner" in s:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": s["owner"], "uid": f"{s['owner']}-uid", "controller": True}
        made["metadata"] = {"ownerReferences": [owner]}
    return made


def _allocation(allocated: Json) -> Json:
    result = {
        "request": "r",
        "driver": allocated["driver"],
        "pool": allocated["node"],
        "device": allocated["device"],
    }
    field = {"key": "metadata.name", "operator": "In", "values": [allocated["node"]]}
    return {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]}}


def _budget(s: Json) -> Json:
    return {"spec": {"selector": {"matchLabels": s["match"]}}, "status": {"disruptionsAllowed": s["allowed"]}}


def _pod_group(s: Json) -> Json:
    policy: Json = {"basic": {}} if s.get("basic") else {"gang": {"minCount": s["min"]}}
    spec: Json = {"schedulingPolicy": policy, "priority": s.get("priority", 0)}
    spec["disruptionMode"] = {s.get("mode", "single"): {}}
    if "topology" in s:
        spec["schedulingConstraints"] = {"topology": [{"key": s["topology"]}]}
    if "preemptionPolicy" in s:
        spec["preemptionPolicy"] = s["preemptionPolicy"]
    return {"spec": spec}


def _short(api_version: str, kind: str, fields: str, expand: Callable[[Json], Json], *, namespaced: bool) -> Shorthand:
    common = ["name", "labels", "annotations", *(["namespace"] if namespaced else [])]
    return Shorthand(api_version, kind, namespaced, frozenset([*fields.split(), *common]), expand)


_STORAGE: Final = "storage.k8s.io/v1"
_RESOURCE: Final = "resource.k8s.io/v1"
_POD_FIELDS: Final = (
    "cpu memory extended node nominated priority preemptionPolicy grace tolerations nodeSelector nodeAffinity nodeNames"
    " affinity antiAffinity spread hostPorts pvcs volumes claims claimTemplates claimStatuses gates scheduler group"
    " hostNetwork hostUsers"
)
SHORTHANDS: Final[Mapping[str, Shorthand]] = {
    "node": _short(
        "v1", "Node", "cpu memory pods extended taints unschedulable features", node_object, namespaced=False
    ),
    "pod": _short("v1", "Pod", _POD_FIELDS, pod_object, namespaced=True),
    "pv": _short("v1", "PersistentVolume", "size modes class nodeAffinity claim csi", _volume, namespaced=False),
    "pvc": _short("v1", "PersistentVolumeClaim", "size modes class volume", _volume_claim, namespaced=True),
    "storageClass": _short(_STORAGE, "StorageClass", "provisioner mode topology", _storage_class, namespaced=False),
    "csiNode": _short(_STORAGE, "CSINode", "drivers", _csi_node, namespaced=False),
    "csiDriver": _short(_STORAGE, "CSIDriver", "storageCapacity", _csi_driver, namespaced=False),
    "csiCapacity": _short(
        _STORAGE, "CSIStorageCapacity", "class capacity maximum topology", _csi_capacity, namespaced=True
    ),
    "volumeAttachment": _short(_STORAGE, "VolumeAttachment", "attacher node pv", _attachment, namespaced=False),
    "deviceClass": _short(_RESOURCE, "DeviceClass", "extendedResource", _device_class, namespaced=False),
    "slice": _short(_RESOURCE, "ResourceSlice", "driver node devices", _slice, namespaced=False),
    "taintRule": _short(_RESOURCE, "DeviceTaintRule", "driver node device taint", _taint_rule, namespaced=False),
    "namespace": _short("v1", "Namespace", "", lambda s: {}, namespaced=False),
    "service": _short("v1", "Service", "match", _service, namespaced=True),
    "claim": _short(_RESOURCE, "ResourceClaim", "class allocated owner", _claim, namespaced=True),
    "podGroup": _short(
        "scheduling.k8s.io/v1beta1",
        "PodGroup",
        "min basic priority mode topology preemptionPolicy",
        _pod_group,
        namespaced=True,
    ),
    "pdb": _short("policy/v1", "PodDisruptionBudget", "match allowed", _budget, namespaced=True),
}


def full_object(item: Mapping[str, Any]) -> Json:
    """The object that a short form (or a plain object) stands for."""
    if "kind" in item:
        return dict(item)
    short, fields = _single(item)
    entry = _checked(short, fields)
    if not isinstance(fields.get("name"), str):
        raise ShorthandError(f"{short} without a name")
    namespace = {"namespace": fields.get("namespace", NAMESPACE)} if entry.is_namespaced else {}
    extra: Json = {key: fields[key] for key in ("labels", "annotations") if key in fields}
    metadata: Json = {"name": fields["name"], **namespace, **extra}
    try:
        made = entry.expand(fields)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ShorthandError(f"{short} {fields['name']}: {type(error).__name__}: {error}") from error
    return _merged({"apiVersion": entry.api_version, "kind": entry.kind, "metadata": metadata}, made)


def merge_patch(short: str, name: str, fields: Json) -> Json:
    """The JSON merge patch that `set` with these fields stands for."""
    _checked(short, fields)
    metadata = {key: fields[key] for key in ("labels", "annotations") if key in fields}
    patch: Json = {"metadata": metadata} if metadata else {}
    if short == "node":
        return {**patch, **node_patch(fields)}
    if short == "pod":
        return {**patch, **pod_patch(fields)}
    if short == "claim":
        allocated = fields.get("allocated")
        return {**patch, "status": {"allocation": _allocation(allocated) if allocated else None}}
    if short == "podGroup":
        return {**patch, "spec": {"schedulingPolicy": {"gang": {"minCount": fields["min"]}}}}
    if short == "pvc" and "volume" in fields:
        return _merged(patch, _bound_to(fields["volume"]))
    return {**patch, **SHORTHANDS[short].expand({"name": name, **fields})}


def _single(item: Mapping[str, Any]) -> tuple[str, Json]:
    if len(item) != 1:
        raise ShorthandError(f"an object has one key, its kind; this has {', '.join(item) or 'none'}")
    ((short, fields),) = item.items()
    if not isinstance(fields, dict):
        raise ShorthandError(f"{short}: expected fields, got {fields!r}")
    return short, fields


def _checked(short: str, fields: Json) -> Shorthand:
    entry = SHORTHANDS.get(short)
    if entry is None:
        raise ShorthandError(f'unknown object "{short}"; there are: {", ".join(SHORTHANDS)}')
    unknown = sorted(fields.keys() - entry.fields)
    if unknown:
        raise ShorthandError(f"{short}: unknown field {', '.join(unknown)}")
    return entry


def _merged(base: Json, other: Json) -> Json:
    made = dict(base)
    for key, value in other.items():
        known = made.get(key)
        made[key] = _merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return made
