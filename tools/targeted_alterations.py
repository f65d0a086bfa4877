"""Alterations that lead where differences were found: profiles, volumes of old plugins, attachments, claims, values.

Each takes (rng, case, other case) and changes the first; one that does not apply changes nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

Object = dict[str, Any]
Case = dict[str, Any]

SCORES = [
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "VolumeBinding",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
]
PLUGINS = [
    *[
        "NodeName",
        "NodeUnschedulable",
        "NodePorts",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeZone",
        "DefaultPreemption",
    ],
    *SCORES,
]
ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION, OLD_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
IN_TREE: list[tuple[str, Object]] = [
    ("gcePersistentDisk", {"pdName": "disk-1"}),
    ("awsElasticBlockStore", {"volumeID": "vol-1"}),
    ("awsElasticBlockStore", {"volumeID": "aws://us-1/vol-1"}),
    ("awsElasticBlockStore", {"volumeID": "aws://us-1/disk-1"}),
    ("cinder", {"volumeID": "c-1"}),
    ("azureDisk", {"diskName": "d", "diskURI": "/disks/d", "kind": "Managed"}),
    ("azureDisk", {"diskName": "d", "diskURI": "/disks/d", "kind": "Dedicated"}),
    ("portworxVolume", {"volumeID": "px-1"}),
    ("azureFile", {"shareName": "s", "secretName": "s"}),
    ("vsphereVolume", {"volumePath": "[ds] v"}),
]
IN_TREE_PLUGINS = [
    f"kubernetes.io/{name}" for name in ("gce-pd", "aws-ebs", "cinder", "azure-disk", "portworx-volume", "azure-file")
]
ZONES = ["us-1", "eu-1", "us-east1-b", "us-east1-b__us-east1-c", "us-east1-b__eu-west1-c", "us-1__us-2", " us-1 __", ""]
AMOUNTS = {
    "cpu": ["0", "1m", "100m", "1", "1500m", "2.5", "4"],
    "memory": ["0", "1", "64Mi", "1Gi", "1.5Gi", "2G", "8Gi"],
    "ephemeral-storage": ["0", "1Gi", "5G"],
    "pods": ["1", "2", "10", "110"],
    "storage": ["1Gi", "5Gi", "20Gi", "1T"],
}
SWAPPED = frozenset(
    [
        "value",
        "values",
        "topologyKey",
        "image",
        "effect",
        "whenUnsatisfiable",
        "nodeAffinityPolicy",
        "nodeTaintsPolicy",
        "claimName",
        "volumeMode",
        "storageClassName",
        "deviceClassName",
        "driver",
        "protocol",
        "hostIP",
        "resourceClaimName",
    ]
)
"""Fields whose value may become that of the same field elsewhere."""
TWEAKED = ("Pod", "Node", "PersistentVolume", "PersistentVolumeClaim", "PodDisruptionBudget", "CSINode", "StorageClass")
Leaf = tuple[Any, Any, str]
"""What holds a value, its key or index there, and the name of the field."""


def _of_kind(case: Case, *kinds: str) -> list[Object]:
    return [obj for obj in case["objects"] if obj["kind"] in kinds]


def _is_asked(case: Case, obj: Object) -> bool:
    return obj["kind"] == "Pod" and f"{obj['metadata']['namespace']}/{obj['metadata']['name']}" == case["pod"]


def retune_profile(rng: random.Random, case: Case, other: Case) -> None:
    """Without scores, without one plugin, or with other weights."""
    (asked,) = (obj for obj in case["objects"] if _is_asked(case, obj))
    name = asked["spec"].get("schedulerName", "default-scheduler")
    if not case.get("config"):
        version = "kubescheduler.config.k8s.io/v1"
        profile: Object = {"schedulerName": name}
        case["config"] = {"apiVersion": version, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    profiles = [p for p in case["config"].get("profiles", []) if p.get("schedulerName", "default-scheduler") == name]
    if len(profiles) != 1 or profiles[0].get("plugins"):
        return
    chance = rng.random()
    if chance < 0.4:
        kept = rng.sample(SCORES, rng.choice([0, 0, 1, 2]))
        enabled = [{"name": plugin, "weight": rng.choice([1, 3, 10])} for plugin in kept]
        profiles[0]["plugins"] = {"score": {"disabled": [{"name": "*"}], "enabled": enabled}}
    else:
        profiles[0]["plugins"] = {"multiPoint": {"disabled": [{"name": rng.choice(PLUGINS)}]}}


def make_in_tree(rng: random.Random, case: Case, other: Case) -> None:
    """A volume of a plugin that has moved out, somewhere; and nodes that have made the move or not."""
    nodes = _of_kind(case, "CSINode")
    for node in rng.sample(nodes, len(nodes) // 2):
        moved = rng.sample(IN_TREE_PLUGINS, rng.randint(0, len(IN_TREE_PLUGINS)))
        node["metadata"].setdefault("annotations", {})[MIGRATED] = ",".join(moved)
    volumes = _of_kind(case, "PersistentVolume")
    field, source = rng.choice(IN_TREE)
    if volumes and rng.random() < 0.8:
        volume = rng.choice(volumes)
        for old in ("csi", "local", "hostPath", "nfs", "iscsi", "rbd", *(name for name, _ in IN_TREE)):
            volume["spec"].pop(old, None)
        volume["spec"][field] = dict(source)
        labels = volume["metadata"].setdefault("labels", {})
        for label in rng.sample([ZONE, OLD_ZONE, REGION, OLD_REGION], rng.randint(0, 2)):
            labels[label] = rng.choice(ZONES)
    else:
        pod = rng.choice(_of_kind(case, "Pod"))
        pod["spec"].setdefault("volumes", []).append({"name": f"old-{rng.randrange(10**6)}", field: dict(source)})


def attach(rng: random.Random, case: Case, other: Case) -> None:
    """A volume is attached to a node, used by a pod there or not; or another one of the same handle is there too."""
    nodes, volumes = _of_kind(case, "CSINode", "Node"), _of_kind(case, "PersistentVolume")
    if not nodes or not volumes:
        return
    volume = rng.choice(volumes)
    driver = volume["spec"].get("csi", {}).get("driver", "csi-a.example.com")
    name = f"attachment-{rng.randrange(10**6)}"
    source = {"persistentVolumeName": volume["metadata"]["name"]}
    spec = {
        "attacher": rng.choice([driver, driver, "csi-b.example.com"]),
        "nodeName": rng.choice(nodes)["metadata"]["name"],
        "source": source,
    }
    metadata = {"name": name, "uid": name, "resourceVersion": "1"}
    version = "storage.k8s.io/v1"
    case["objects"].append({"apiVersion": version, "kind": "VolumeAttachment", "metadata": metadata, "spec": spec})
    if "csi" in volume["spec"] and rng.random() < 0.3:
        twin = rng.choice(volumes)
        if "csi" in twin["spec"]:
            twin["spec"]["csi"] = dict(volume["spec"]["csi"])


def limit(rng: random.Random, case: Case, other: Case) -> None:
    drivers = [driver for node in _of_kind(case, "CSINode") for driver in node["spec"].get("drivers") or ()]
    for driver in rng.sample(drivers, len(drivers) // 2):
        driver["allocatable"] = {"count": rng.choice([0, 1, 1, 2, 3])}


def strand_claim(rng: random.Random, case: Case, other: Case) -> None:
    """A claim has its devices for another node, or nobody uses it any more."""
    claims = [c for c in _of_kind(case, "ResourceClaim") if c.get("status", {}).get("allocation")]
    if not claims:
        return
    claim = rng.choice(claims)
    if rng.random() < 0.6:
        node = rng.choice(_of_kind(case, "Node"))["metadata"]["name"]
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        claim["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    else:
        claim["status"].pop("reservedFor", None)


def terminate(rng: random.Random, case: Case, other: Case) -> None:
    """A pod is on its way out, perhaps because of a preemption."""
    pods = [pod for pod in _of_kind(case, "Pod") if not _is_asked(case, pod)]
    if not pods:
        return
    pod = rng.choice(pods)
    pod["metadata"]["deletionTimestamp"] = "2026-04-20T00:00:00Z"
    pod["metadata"].setdefault("deletionGracePeriodSeconds", 30)
    if rng.random() < 0.5:
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        pod.setdefault("status", {}).setdefault("conditions", []).append(condition)


def nominate(rng: random.Random, case: Case, other: Case) -> None:
    """A pod that waits is nominated to a node."""
    waiting = [pod for pod in _of_kind(case, "Pod") if not pod["spec"].get("nodeName")]
    node = rng.choice(_of_kind(case, "Node"))["metadata"]["name"]
    rng.choice(waiting).setdefault("status", {})["nominatedNodeName"] = node


def tweak(rng: random.Random, case: Case, other: Case) -> None:
    """One value of one object becomes another."""
    event = [case[field] for field in ("oldObject", "newObject") if case.get(field)]
    pool = event if event and rng.random() < 0.6 else _of_kind(case, *TWEAKED)
    if pool:
        tweak_object(rng, rng.choice(pool), [*case["objects"], *other["objects"]])


def tweak_object(rng: random.Random, obj: Object, donors: list[Object]) -> None:
    leaves = [leaf for top in ("spec", "status") for leaf in _leaves(obj.get(top), top) if _is_free(leaf)]
    if not leaves:
        return
    holder, at, field = rng.choice(leaves)
    value = holder[at]
    if field in AMOUNTS and isinstance(value, str):
        holder[at] = rng.choice(AMOUNTS[field])
    elif isinstance(value, bool):
        holder[at] = not value
    elif isinstance(value, int):
        holder[at] = min(rng.choice([1, value + 1, value * 2]), 100 if field == "weight" else 2**30)
    elif isinstance(value, list):
        value.reverse() if rng.random() < 0.5 or len(value) < 2 else value.pop(rng.randrange(len(value)))
    else:
        found = sorted({v for donor in donors for v in _values(donor.get("spec"), field)})
        holder[at] = rng.choice(found) if found else value


def _leaves(part: Any, field: str) -> Iterator[Leaf]:
    """Everything that holds a value, and lists as a whole; elements of a list go by the name of the list."""
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for at, value in items:
        name = at if isinstance(at, str) else field
        if isinstance(value, dict | list) and value:
            if isinstance(value, list):
                yield part, at, name
            yield from _leaves(value, name)
        elif isinstance(value, str | int | list):
            yield part, at, name


_FREE_NUMBERS = frozenset(
    ["maxSkew", "minDomains", "weight", "priority", "hostPort", "disruptionsAllowed", "sizeBytes", "count"]
)
_FREE_FLAGS = frozenset(["unschedulable", "hostNetwork", "readOnly"])
_FREE_LISTS = frozenset(
    [
        "containers",
        "initContainers",
        "tolerations",
        "taints",
        "topologySpreadConstraints",
        "nodeSelectorTerms",
        "matchExpressions",
        "images",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
        "volumes",
        "values",
        "accessModes",
        "namespaces",
        "drivers",
        "allowedTopologies",
    ]
)


def _is_free(leaf: Leaf) -> bool:
    """May it change without making the object one that no API server has?"""
    holder, at, field = leaf
    value = holder[at]
    if isinstance(value, bool):
        return field in _FREE_FLAGS
    if isinstance(value, int):
        return field in _FREE_NUMBERS
    if isinstance(value, list):
        return field in _FREE_LISTS
    return field in AMOUNTS or field in SWAPPED


def _values(part: Any, field: str) -> Iterator[str]:
    for holder, at, name in _leaves(part, ""):
        if name == field and isinstance(holder[at], str):
            yield holder[at]


TARGETED = {
    retune_profile: 1,
    make_in_tree: 2,
    attach: 1,
    limit: 1,
    strand_claim: 1,
    terminate: 1,
    nominate: 1,
    tweak: 5,
}
"""With how often each is taken."""
