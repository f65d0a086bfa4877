"""What of an object goes into a trace: what scheduling reads, and nothing that may be somebody's secret.

An object is decoded as the scheduler decodes it and written again. What the scheduler does not know of (environment,
arguments, commands, probes, managed fields) is thereby gone. Beyond that annotations are left out that no part of
Kubernetes schedules by, and a few fields in which drivers keep what they like. Of a pod's status its phase and the
names of its claims stay: the rest tells what became of it on its node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final

import msgspec

from pilotage.model.codec import Codec, ListPage, WatchEvent, without_nulls
from pilotage.model.kinds import KINDS, KindInfo
from pilotage.model.pod_wire import WirePod

RECORDED: Final = (
    *("namespaces", "priorityclasses", "runtimeclasses", "limitranges"),
    *("storageclasses", "csidrivers", "nodes", "csinodes", "csistoragecapacities", "deviceclasses"),
    *("resourceslices", "devicetaintrules", "persistentvolumes", "persistentvolumeclaims", "resourceclaimtemplates"),
    *("resourceclaims", "services", "replicationcontrollers", "replicasets", "statefulsets", "poddisruptionbudgets"),
    *("podgroups", "resourceflavors", "workloadpriorityclasses", "admissionchecks", "cohorts", "clusterqueues"),
    *("localqueues", "workloads", "jobs", "pods"),
)
"""The kinds that a trace is made of, by plural; what others refer to comes first."""

OBSERVED_NODE: Final = "trace.pilotage.dev/observed-node"
OBSERVED_BOUND_AT: Final = "trace.pilotage.dev/observed-bound-at"
"""Annotations of pods: where the cluster that was watched ran them, and since which second of the trace."""

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
ENDED: Final = frozenset({"Succeeded", "Failed"})
_SCHEDULING_ANNOTATIONS: Final = (
    *("trace.pilotage.dev/", "openb.pilotage.dev/", "pilotage.dev/", "sandbox.pilotage.dev/"),
    *("scheduling.k8s.io/", "scheduler.alpha.kubernetes.io/", "scheduling.x-k8s.io/", "kueue.x-k8s.io/"),
    *("kubernetes.io/config.mirror", "batch.kubernetes.io/", "cluster-autoscaler.kubernetes.io/"),
    *("pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/", "storage.alpha.kubernetes.io/"),
    *("storageclass.kubernetes.io/", "storageclass.beta.kubernetes.io/", "resource.kubernetes.io/"),
)
_NOT_OF_THE_OBJECT: Final = ("resourceVersion", "generation", "finalizers", "generateName", "managedFields")
_POD_STATUS: Final = ("phase", "startTime", "resourceClaimStatuses", "extendedResourceClaimStatus")
_LEFT_OUT: Final[Mapping[str, tuple[str, ...]]] = {
    "Node": ("spec.providerID", "status.conditions"),
    "StorageClass": ("parameters", "mountOptions"),
    "PersistentVolume": ("spec.mountOptions", "spec.csi.volumeAttributes", "status.message"),
    "PersistentVolumeClaim": ("status.conditions",),
    "DeviceClass": ("spec.config",),
    "ResourceClaim": ("spec.devices.config", "status.devices", "status.allocation.devices.config"),
    "ResourceClaimTemplate": ("spec.spec.devices.config",),
    "PriorityClass": ("description",),
    "WorkloadPriorityClass": ("description",),
    "AdmissionCheck": ("spec.parameters",),
    "PodDisruptionBudget": ("status.conditions", "status.disruptedPods"),
    "ReplicaSet": ("spec.template", "spec.replicas", "status"),
    "StatefulSet": ("spec.template", "spec.replicas", "status"),
    "ReplicationController": ("spec.replicas", "status"),
    "Job": ("spec.suspend", "status"),
    "ClusterQueue": ("status",),
    "LocalQueue": ("status",),
    "Cohort": ("status",),
}
"""By kind, fields that scheduling does not decide by, or in which a driver keeps what it likes."""


class Redaction(msgspec.Struct, frozen=True):
    """What is kept beyond, or hidden of, what scheduling reads."""

    annotations: tuple[str, ...] = ()
    """Further annotations that are kept, by the beginning of their key; "" keeps all."""
    hash_images: bool = False


class Sighting(msgspec.Struct, frozen=True):
    """An object as the server showed it, cut down to what a trace keeps."""

    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    content: dict[str, Any]

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def sighting(info: KindInfo, data: bytes, redaction: Redaction) -> Sighting:
    """What a trace keeps of an object; DecodeError if it is none of this kind."""
    known = info.decode(data)
    wire = _pod_on_the_wire(data) if info.plural == "pods" else known
    content = msgspec.json.decode(msgspec.json.encode(wire))
    version = content["metadata"].get("resourceVersion", "")
    kept = _cut_down(info, content, redaction)
    metadata = kept["metadata"]
    uid = metadata.get("uid", "")
    return Sighting(info.kind, metadata.get("namespace", ""), metadata["name"], uid, version, kept)


def _pod_on_the_wire(data: bytes) -> WirePod:
    try:
        return msgspec.json.decode(data, type=WirePod)
    except msgspec.ValidationError:
        repaired = msgspec.json.encode(without_nulls(msgspec.json.decode(data)))
        return msgspec.json.decode(repaired, type=WirePod)


def _cut_down(info: KindInfo, content: dict[str, Any], redaction: Redaction) -> dict[str, Any]:
    kept: dict[str, Any] = {"apiVersion": info.api_version, "kind": info.kind, **content}
    for path in _LEFT_OUT.get(info.kind, ()):
        _remove(kept, path)
    metadata = {key: value for key, value in content["metadata"].items() if key not in _NOT_OF_THE_OBJECT}
    kept["metadata"] = _with_kept_annotations(metadata, redaction)
    for holder in _template_holders(info.kind, kept):
        if template := holder.get("template"):
            template["metadata"] = _with_kept_annotations(template.get("metadata") or {}, redaction)
    if info.kind == "Pod":
        spec, status = kept.get("spec") or {}, kept.get("status") or {}
        if volumes := [volume for volume in spec.pop("volumes", ()) if len(volume) > 1]:
            spec["volumes"] = volumes
        kept["status"] = {key: status[key] for key in _POD_STATUS if status.get(key)}
    if redaction.hash_images:
        _hash_images(info.kind, kept)
    return kept


def _remove(tree: dict[str, Any], path: str) -> None:
    *above, last = path.split(".")
    found: Any = tree
    for name in above:
        found = found.get(name) if isinstance(found, dict) else None
    if isinstance(found, dict):
        found.pop(last, None)


def _with_kept_annotations(metadata: dict[str, Any], redaction: Redaction) -> dict[str, Any]:
    kept = (*_SCHEDULING_ANNOTATIONS, *redaction.annotations)
    chosen = {key: value for key, value in (metadata.pop("annotations", None) or {}).items() if key.startswith(kept)}
    return {**metadata, "annotations": chosen} if chosen else metadata


def _template_holders(kind: str, tree: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Where a kind has templates of pods."""
    spec = tree.get("spec") or {}
    if kind == "Job":
        return [spec]
    return list(spec.get("podSets") or ()) if kind == "Workload" else []


def _hash_images(kind: str, tree: dict[str, Any]) -> None:
    """Equal images stay equal, so that a node that has one can still be distinguished from one that has not."""
    for image in (tree.get("status") or {}).get("images") or () if kind == "Node" else ():
        image["names"] = [hashed_image(name) for name in image.get("names") or ()]
    specs = [tree.get("spec") or {}] if kind == "Pod" else []
    specs += [(holder.get("template") or {}).get("spec") or {} for holder in _template_holders(kind, tree)]
    for spec in specs:
        for containers in ("containers", "initContainers", "ephemeralContainers"):
            for container in spec.get(containers) or ():
                if container.get("image"):
                    container["image"] = hashed_image(container["image"])
        for volume in spec.get("volumes") or ():
            if (volume.get("image") or {}).get("reference"):
                volume["image"]["reference"] = hashed_image(volume["image"]["reference"])


def hashed_image(name: str) -> str:
    """A name for an image that says nothing; with and without the tag "latest" it is the same."""
    has_tag = ":" in name.rpartition("/")[2] or "@" in name
    return f"image-{blake2b((name if has_tag else f'{name}:latest').encode(), digest_size=8).hexdigest()}:latest"


def fingerprint(content: Mapping[str, Any]) -> bytes:
    """Equal for two states of an object between which nothing happened that a trace tells of.

    Status counts for nodes only, and for pods the names of their claims. A pod's node, what was observed of it, and
    what the admission of a Job changes are the answer and not the question.
    """
    compared = {key: value for key, value in content.items() if key != "status" or content["kind"] == "Node"}
    if content["kind"] == "Pod":
        metadata, spec = content["metadata"], content.get("spec") or {}
        annotations = {
            key: value
            for key, value in (metadata.get("annotations") or {}).items()
            if key not in (OBSERVED_NODE, OBSERVED_BOUND_AT)
        }
        compared["metadata"] = {**metadata, "annotations": annotations, "deletionTimestamp": None}
        compared["spec"] = {key: value for key, value in spec.items() if key != "nodeName"}
        compared["status"] = (content.get("status") or {}).get("resourceClaimStatuses")
    elif content["kind"] == "Job":
        # Its template is changed by whoever admits it, to lead its pods to a flavor.
        compared["spec"] = {key: value for key, value in (content.get("spec") or {}).items() if key != "template"}
    return blake2b(msgspec.json.encode(compared, order="sorted"), digest_size=8).digest()


class ContentCodec(Codec[Sighting]):
    """Decodes the objects of a kind into what a trace keeps of them, so that a long list of them is small."""

    def __init__(self, info: KindInfo, redaction: Redaction) -> None:
        self.kind = info.kind
        self._info = info
        self._redaction = redaction

    def decode(self, data: bytes | msgspec.Raw) -> Sighting:
        return sighting(self._info, bytes(data), self._redaction)

    def decode_list(self, data: bytes) -> ListPage:
        return self._decode_list_one_by_one(data)

    def decode_events(self, data: bytes) -> list[WatchEvent]:
        return [self._decode_event_alone(line) for line in data.splitlines() if line.strip()]


def recorded_kinds(redaction: Redaction) -> list[KindInfo]:
    """The kinds of `RECORDED`, whose objects are decoded into sightings."""
    infos = [KINDS[plural] for plural in RECORDED]
    return [replace(info, codec=ContentCodec(info, redaction)) for info in infos]
