"""For every plugin and every event that it listens to: a pod that it rejects, and the one change that lets the pod in.

Each case is a small world in the short forms of scenarios, in which the pod `p` waits, and one change. No other plugin
that rejects the pod cares for the event, so that nobody else can wake it.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
Change = tuple[str, str, str, Json]
"""put, set or gone; kind, name, fields."""
Case = tuple[list[Json], Change]

ZONE = "topology.kubernetes.io/zone"
RED, BLUE = {"app": "red"}, {"app": "blue"}
IN_Z1, IN_Z2 = {ZONE: "z1"}, {ZONE: "z2"}
LIKES_RED = [{"match": RED, "key": ZONE}]
LIKES_RED_IN_LIVE = [{"match": RED, "key": ZONE, "namespaceLabels": {"stage": "live"}}]
FEATURE = "UserNamespacesHostNetworkSupport"


def node(name: str = "n1", **fields: Any) -> Json:
    return {"node": {"name": name, **fields}}


def pod(name: str = "p", **fields: Any) -> Json:
    return {"pod": {"name": name, **fields}}


def namespace(stage: str) -> Json:
    return {"namespace": {"name": "default", "labels": {"stage": stage}}}


def pv(name: str = "v1", **fields: Any) -> Json:
    return {"pv": {"name": name, "claim": "data", **fields}}


def pvc(name: str = "data", **fields: Any) -> Json:
    return {"pvc": {"name": name, **fields}}


def spread(**fields: Any) -> list[Json]:
    return [{"match": RED, "key": ZONE, **fields}]


def put(item: Json) -> Change:
    ((kind, fields),) = item.items()
    rest = dict(fields)
    return "put", kind, rest.pop("name"), rest


def change(kind: str, name: str, **fields: Any) -> Change:
    return "set", kind, name, fields


def gone(kind: str, name: str) -> Change:
    return "gone", kind, name, {}


OCCUPIED = pod("other", node="n1", labels=RED)
CLOSED_Z2 = node("n2", labels=IN_Z2, unschedulable=True)
ONE_RED_IN_Z1 = [node(labels=IN_Z1), CLOSED_Z2, OCCUPIED, pod(labels=RED, spread=spread())]
DEVICES_OF_N1 = {"slice": {"name": "s1", "driver": "d", "node": "n1", "devices": ["d0"]}}
CLAIM = {"claim": {"name": "c1", "class": "device"}}
OWN_CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {
        "name": "c1",
        "namespace": "default",
        # The first object of a world has this UID.
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p-1", "controller": True}],
    },
    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "device"}}]}},
}
CLASS = {"deviceClass": {"name": "device"}}
SHARED_DEVICES = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "shared"},
    "spec": {
        "driver": "d",
        "pool": {"name": "shared", "generation": 1, "resourceSliceCount": 1},
        "nodeSelector": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}]
        },
        "devices": [{"name": "d0"}],
    },
}
GPU = {"example.com/gpu": 1}
LATE = {"name": "late", "mode": "WaitForFirstConsumer", "provisioner": "d"}
LOCAL = {"name": "local", "mode": "WaitForFirstConsumer", "provisioner": "kubernetes.io/no-provisioner"}
PROVISIONED = [pvc(**{"class": "late"}), pod(pvcs=["data"])]
FULL_OF_VOLUMES = [
    *(pv("v1", csi="d"), pvc("data", volume="v1")),
    *(pv("v2", csi="d", claim="more"), pvc("more", volume="v2")),
    *(node(), pod("other", node="n1", pvcs=["more"]), pod(pvcs=["data"])),
]
DISK = [{"name": "disk", "gcePersistentDisk": {"pdName": "disk"}}]

GANG = {"podGroup": {"name": "g", "min": 2}}

CASES: dict[tuple[str, str], Case] = {
    # --- groups of pods -------------------------------------------------------------------------------------------
    ("GangScheduling", "AssignedPodAdd"): (
        [node(), GANG, pod(group="g")],
        put(pod("by-hand", node="n1", group="g")),
    ),
    ("GangScheduling", "scheduling.k8s.io/PodGroupUpdate"): (
        [node(), GANG, pod(group="g")],
        change("podGroup", "g", min=1),
    ),
    # --- pods that come, change and go ----------------------------------------------------------------------------
    ("PodTopologySpread", "AssignedPodAdd"): (ONE_RED_IN_Z1, put(pod("third", node="n2", labels=RED))),
    ("InterPodAffinity", "AssignedPodAdd"): ([node(labels=IN_Z1), pod(affinity=LIKES_RED)], put(OCCUPIED)),
    ("NodePorts", "AssignedPodDelete"): (
        [node(), pod("other", node="n1", hostPorts=[80]), pod(hostPorts=[80])],
        gone("pod", "other"),
    ),
    ("NodeResourcesFit", "AssignedPodDelete"): (
        [node(cpu=1), pod("other", node="n1", cpu=1), pod(cpu=1)],
        gone("pod", "other"),
    ),
    ("VolumeRestrictions", "AssignedPodDelete"): (
        [node(), pod("other", node="n1", volumes=DISK), pod(volumes=DISK)],
        gone("pod", "other"),
    ),
    ("NodeVolumeLimits", "AssignedPodDelete"): (
        [{"csiNode": {"name": "n1", "drivers": {"d": 1}}}, *FULL_OF_VOLUMES],
        gone("pod", "other"),
    ),
    ("PodTopologySpread", "AssignedPodDelete"): (ONE_RED_IN_Z1, gone("pod", "other")),
    ("InterPodAffinity", "AssignedPodDelete"): (
        [node(labels=IN_Z1), OCCUPIED, pod(antiAffinity=LIKES_RED)],
        gone("pod", "other"),
    ),
    ("PodTopologySpread", "AssignedPodUpdatePodLabel"): (ONE_RED_IN_Z1, change("pod", "other", labels=BLUE)),
    ("InterPodAffinity", "AssignedPodUpdatePodLabel"): (
        [node(labels=IN_Z1), pod("other", node="n1", labels=BLUE), pod(affinity=LIKES_RED)],
        change("pod", "other", labels=RED),
    ),
    ("NodeResourcesFit", "AssignedPodUpdatePodScaleDown"): (
        [node(cpu=2), pod("other", node="n1", cpu=2), pod(cpu=1)],
        change("pod", "other", cpu=1),
    ),
    # --- namespaces -----------------------------------------------------------------------------------------------
    ("InterPodAffinity", "NamespaceAdd"): (
        [node(labels=IN_Z1), OCCUPIED, pod(affinity=LIKES_RED_IN_LIVE)],
        put(namespace("live")),
    ),
    ("InterPodAffinity", "NamespaceUpdate"): (
        [namespace("test"), node(labels=IN_Z1), OCCUPIED, pod(affinity=LIKES_RED_IN_LIVE)],
        change("namespace", "default", labels={"stage": "live"}),
    ),
    ("InterPodAffinity", "NamespaceDelete"): (
        [namespace("live"), node(labels=IN_Z1), OCCUPIED, pod(antiAffinity=LIKES_RED_IN_LIVE)],
        gone("namespace", "default"),
    ),
    # --- the pod itself -------------------------------------------------------------------------------------------
    ("PodTopologySpread", "TargetPodUpdatePodLabel"): (ONE_RED_IN_Z1, change("pod", "p", labels=BLUE)),
    ("InterPodAffinity", "TargetPodUpdatePodLabel"): (
        [node(labels=IN_Z1), pod(labels=BLUE, affinity=LIKES_RED)],
        change("pod", "p", labels=RED),
    ),
    ("NodeResourcesFit", "TargetPodUpdatePodScaleDown"): ([node(cpu=1), pod(cpu=2)], change("pod", "p", cpu=1)),
    ("NodeUnschedulable", "TargetPodUpdatePodToleration"): (
        [node(unschedulable=True), pod()],
        change("pod", "p", tolerations=["node.kubernetes.io/unschedulable"]),
    ),
    ("TaintToleration", "TargetPodUpdatePodToleration"): (
        [node(taints=["gpu:NoSchedule"]), pod()],
        change("pod", "p", tolerations=["gpu"]),
    ),
    ("PodTopologySpread", "TargetPodUpdatePodToleration"): (
        [
            *(node(labels=IN_Z1), OCCUPIED),
            *(node("n2", labels=IN_Z2, unschedulable=True, taints=["gpu:NoSchedule"]),),
            *(pod("third", node="n2", labels=RED),),
            pod(labels=RED, spread=spread(nodeTaintsPolicy="Honor", minDomains=2)),
        ],
        change("pod", "p", tolerations=["gpu"]),
    ),
    ("SchedulingGates", "TargetPodUpdatePodSchedulingGatesEliminated"): (
        [node(), pod(gates=["later"])],
        change("pod", "p", gates=[]),
    ),
    ("DynamicResources", "TargetPodUpdatePodGeneratedResourceClaim"): (
        [pod(claimTemplates={"e": "t"}), node(), CLASS, DEVICES_OF_N1, OWN_CLAIM],
        change("pod", "p", claimStatuses={"e": "c1"}),
    ),
    # --- nodes ----------------------------------------------------------------------------------------------------
    ("NodeUnschedulable", "NodeAdd"): ([node(unschedulable=True), pod()], put(node("n2"))),
    ("TaintToleration", "NodeAdd"): ([node(taints=["gpu:NoSchedule"]), pod()], put(node("n2"))),
    ("NodeAffinity", "NodeAdd"): ([node(), pod(nodeSelector={"pool": "a"})], put(node("n2", labels={"pool": "a"}))),
    ("NodePorts", "NodeAdd"): (
        [node(), pod("other", node="n1", hostPorts=[80]), pod(hostPorts=[80])],
        put(node("n2")),
    ),
    ("NodeResourcesFit", "NodeAdd"): ([node(cpu=1), pod(cpu=2)], put(node("n2", cpu=2))),
    ("VolumeRestrictions", "NodeAdd"): (
        [node(), pod("other", node="n1", volumes=DISK), pod(volumes=DISK)],
        put(node("n2")),
    ),
    ("VolumeBinding", "NodeAdd"): (
        [node(), pv(nodeAffinity={"pool": ["a"]}), pvc(volume="v1"), pod(pvcs=["data"])],
        put(node("n2", labels={"pool": "a"})),
    ),
    ("VolumeZone", "NodeAdd"): (
        [node(labels=IN_Z2), pv(labels=IN_Z1), pvc(volume="v1"), pod(pvcs=["data"])],
        put(node("n2", labels=IN_Z1)),
    ),
    ("PodTopologySpread", "NodeAdd"): ([node(), pod(labels=RED, spread=spread())], put(node("n2", labels=IN_Z1))),
    ("InterPodAffinity", "NodeAdd"): (
        [node(labels=IN_Z1), OCCUPIED, pod(antiAffinity=LIKES_RED)],
        put(node("n2", labels=IN_Z2)),
    ),
    ("DynamicResources", "NodeAdd"): (
        [node("n2"), CLASS, DEVICES_OF_N1, CLAIM, pod(claims=["c1"])],
        put(node("n1")),
    ),
    ("NodeDeclaredFeatures", "NodeAdd"): (
        [node(), pod(hostNetwork=True, hostUsers=False)],
        put(node("n2", features=[FEATURE])),
    ),
    ("PodTopologySpread", "NodeDelete"): (ONE_RED_IN_Z1, gone("node", "n2")),
    ("NodeResourcesFit", "NodeUpdateNodeAllocatable"): ([node(cpu=1), pod(cpu=2)], change("node", "n1", cpu=2)),
    ("DynamicResources", "NodeUpdateNodeAllocatable"): (
        [node(), {"deviceClass": {"name": "device", "extendedResource": "example.com/gpu"}}, pod(extended=GPU)],
        change("node", "n1", extended=GPU),
    ),
    ("NodeAffinity", "NodeUpdateNodeLabel"): (
        [node(), pod(nodeSelector={"pool": "a"})],
        change("node", "n1", labels={"pool": "a"}),
    ),
    ("VolumeBinding", "NodeUpdateNodeLabel"): (
        [node(), pv(nodeAffinity={"pool": ["a"]}), pvc(volume="v1"), pod(pvcs=["data"])],
        change("node", "n1", labels={"pool": "a"}),
    ),
    ("VolumeZone", "NodeUpdateNodeLabel"): (
        [node(labels=IN_Z2), pv(labels=IN_Z1), pvc(volume="v1"), pod(pvcs=["data"])],
        change("node", "n1", labels=IN_Z1),
    ),
    ("PodTopologySpread", "NodeUpdateNodeLabel"): (
        [node(), pod(labels=RED, spread=spread())],
        change("node", "n1", labels=IN_Z1),
    ),
    ("InterPodAffinity", "NodeUpdateNodeLabel"): (
        [node(labels=IN_Z1), OCCUPIED, node("n2", labels=IN_Z1), pod(antiAffinity=LIKES_RED)],
        change("node", "n2", labels=IN_Z2),
    ),
    ("NodeUnschedulable", "NodeUpdateNodeTaint"): (
        [node(unschedulable=True), pod()],
        change("node", "n1", unschedulable=False),
    ),
    ("TaintToleration", "NodeUpdateNodeTaint"): (
        [node(taints=["gpu:NoSchedule"]), pod()],
        change("node", "n1", taints=[]),
    ),
    ("PodTopologySpread", "NodeUpdateNodeTaint"): (
        [node(labels=IN_Z1), CLOSED_Z2, OCCUPIED, pod(labels=RED, spread=spread(nodeTaintsPolicy="Honor"))],
        change("node", "n2", taints=["gpu:NoSchedule"]),
    ),
    ("NodeDeclaredFeatures", "NodeUpdateNodeDeclaredFeature"): (
        [node(), pod(hostNetwork=True, hostUsers=False)],
        change("node", "n1", features=[FEATURE]),
    ),
    # --- volumes --------------------------------------------------------------------------------------------------
    ("VolumeZone", "PersistentVolumeAdd"): ([node(labels=IN_Z1), pvc(volume="v1"), pod(pvcs=["data"])], put(pv())),
    ("VolumeBinding", "PersistentVolumeAdd"): (
        [{"storageClass": LOCAL}, node(), pvc(**{"class": "local"}), pod(pvcs=["data"])],
        put({"pv": {"name": "v1", "class": "local"}}),
    ),
    ("VolumeZone", "PersistentVolumeClaimUpdate"): (
        [
            *(node(labels=IN_Z1), pv(labels=IN_Z2), pv("v2", labels=IN_Z1)),
            *(pvc(volume="v1"), pod(pvcs=["data"])),
        ],
        change("pvc", "data", volume="v2"),
    ),
    ("VolumeRestrictions", "PersistentVolumeClaimAdd"): (
        [node(), pv(), pod(pvcs=["data"])],
        put(pvc(volume="v1")),
    ),
    ("VolumeBinding", "PersistentVolumeUpdate"): (
        [node(), pv(nodeAffinity={"pool": ["a"]}), pvc(volume="v1"), pod(pvcs=["data"])],
        change("pv", "v1", nodeAffinity={"kubernetes.io/hostname": ["n1"]}, claim="data"),
    ),
    ("VolumeZone", "PersistentVolumeUpdate"): (
        [node(labels=IN_Z2), pv(labels=IN_Z1), pvc(volume="v1"), pod(pvcs=["data"])],
        change("pv", "v1", labels=IN_Z2, claim="data"),
    ),
    ("VolumeBinding", "PersistentVolumeClaimUpdate"): (
        [node(), pv(), pvc(), pod(pvcs=["data"])],
        change("pvc", "data", volume="v1"),
    ),
    ("NodeVolumeLimits", "storage.k8s.io/CSINodeUpdate"): (
        [{"csiNode": {"name": "n1", "drivers": {"d": 1}}}, *FULL_OF_VOLUMES],
        change("csiNode", "n1", drivers={"d": 2}),
    ),
    ("NodeVolumeLimits", "storage.k8s.io/VolumeAttachmentDelete"): (
        [
            {"csiNode": {"name": "n1", "drivers": {"d": 1}}},
            *(pv("v1", csi="d"), pvc("data", volume="v1"), pv("v2", csi="d", claim="more")),
            {"volumeAttachment": {"name": "a", "attacher": "d", "node": "n1", "pv": "v2"}},
            *(node(), pod(pvcs=["data"])),
        ],
        gone("volumeAttachment", "a"),
    ),
    ("VolumeBinding", "storage.k8s.io/CSIStorageCapacityAdd"): (
        [{"storageClass": LATE}, {"csiDriver": {"name": "d", "storageCapacity": True}}, node(), *PROVISIONED],
        put({"csiCapacity": {"name": "c", "class": "late", "capacity": "9Gi"}}),
    ),
    ("VolumeBinding", "storage.k8s.io/CSIStorageCapacityUpdate"): (
        [
            *({"storageClass": LATE}, {"csiDriver": {"name": "d", "storageCapacity": True}}, node()),
            {"csiCapacity": {"name": "c", "class": "late", "capacity": "1Mi"}},
            *PROVISIONED,
        ],
        change("csiCapacity", "c", **{"class": "late", "capacity": "9Gi"}),
    ),
    ("VolumeBinding", "storage.k8s.io/StorageClassAdd"): ([node(), *PROVISIONED], put({"storageClass": LATE})),
    ("VolumeBinding", "storage.k8s.io/StorageClassUpdate"): (
        [{"storageClass": {**LATE, "topology": {"pool": ["a"]}}}, node(labels={"pool": "b"}), *PROVISIONED],
        change("storageClass", "late", mode="WaitForFirstConsumer", provisioner="d", topology={"pool": ["a", "b"]}),
    ),
    # --- devices --------------------------------------------------------------------------------------------------
    ("DynamicResources", "resource.k8s.io/ResourceClaimAdd"): (
        [node(), CLASS, DEVICES_OF_N1, pod(claims=["c1"])],
        put(CLAIM),
    ),
    ("DynamicResources", "resource.k8s.io/ResourceClaimDelete"): (
        [
            *(node(), CLASS, DEVICES_OF_N1, CLAIM),
            {"claim": {"name": "c2", "class": "device", "allocated": {"driver": "d", "device": "d0", "node": "n1"}}},
            pod(claims=["c1"]),
        ],
        gone("claim", "c2"),
    ),
    ("DynamicResources", "resource.k8s.io/ResourceClaimUpdate"): (
        [
            *(node(), CLASS, DEVICES_OF_N1, CLAIM),
            {"claim": {"name": "c2", "class": "device", "allocated": {"driver": "d", "device": "d0", "node": "n1"}}},
            pod(claims=["c1"]),
        ],
        change("claim", "c2", allocated=None),
    ),
    ("DynamicResources", "resource.k8s.io/ResourceSliceAdd"): (
        [node(), CLASS, CLAIM, pod(claims=["c1"])],
        put(DEVICES_OF_N1),
    ),
    ("DynamicResources", "resource.k8s.io/ResourceSliceUpdate"): (
        [node(), CLASS, CLAIM, {"slice": {**DEVICES_OF_N1["slice"], "devices": []}}, pod(claims=["c1"])],
        change("slice", "s1", driver="d", node="n1", devices=["d0"]),
    ),
    ("DynamicResources", "resource.k8s.io/DeviceClassAdd"): (
        [node(), DEVICES_OF_N1, CLAIM, pod(claims=["c1"])],
        put(CLASS),
    ),
    ("DynamicResources", "NodeUpdateNodeLabel"): (
        [node(), CLASS, CLAIM, SHARED_DEVICES, pod(claims=["c1"])],
        change("node", "n1", labels={"pool": "a"}),
    ),
    ("NodeResourcesFit", "resource.k8s.io/DeviceClassAdd"): (
        [node(), DEVICES_OF_N1, pod(extended=GPU)],
        put({"deviceClass": {"name": "device", "extendedResource": "example.com/gpu"}}),
    ),
    ("NodeResourcesFit", "resource.k8s.io/DeviceClassUpdate"): (
        [node(), DEVICES_OF_N1, CLASS, pod(extended=GPU)],
        change("deviceClass", "device", extendedResource="example.com/gpu"),
    ),
}
