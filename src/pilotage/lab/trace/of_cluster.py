"""A cluster in memory as documents of a trace of one instant, redacted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from pilotage.api.kinds import Untyped
from pilotage.cluster.state import Cluster
from pilotage.lab.trace.content import Redaction, sighting
from pilotage.model import KINDS, Pod
from pilotage.model.kinds import KindInfo
from pilotage.simulate.memory_api import Json

_OWN_WORDS: Final = frozenset(info.kind for info in KINDS.values())


def object_documents(cluster: Cluster) -> Iterator[Json]:
    """Everything but pods; nodes come last, when what belongs to them is there."""
    for info in (*cluster.kinds.own.values(), *cluster.kinds.foreign.values()):
        if info.kind not in ("Pod", "Node"):
            yield from _documents(cluster, info)
    yield from _documents(cluster, next(info for info in cluster.kinds.own.values() if info.kind == "Node"))


def _documents(cluster: Cluster, info: KindInfo) -> Iterator[Json]:
    for obj in cluster.objects(info.kind).values():
        document = sighting(info, msgspec.json.encode(obj), Redaction()).content
        yield {**document, "kind": _kind_word(info, obj)}


def _kind_word(info: KindInfo, obj: object) -> str:
    """What a trace calls the kind: objects of plugins' types do not say, and their plural is understood, too."""
    if info.kind in _OWN_WORDS:
        return info.kind
    return str(obj["kind"]) if isinstance(obj, Untyped) and obj.get("kind") else info.plural


def pod_document(pod: Pod, *, keeps_node: bool) -> Json:
    """What a trace keeps of a pod: environment, arguments and commands are not read at all."""
    metadata = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.uid,
        "creationTimestamp": pod.creation_timestamp,
        "labels": pod.labels,
        "annotations": pod.annotations,
        "ownerReferences": pod.owner_references,
    }
    spec: Json = msgspec.json.decode(msgspec.json.encode(pod.spec))
    document: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    if keeps_node and pod.node_name:
        spec["nodeName"] = pod.node_name
        metadata["deletionTimestamp"] = pod.deletion_timestamp
        document["status"] = pod.status
    return sighting(KINDS["pods"], msgspec.json.encode(document), Redaction()).content
