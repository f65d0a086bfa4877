"""Which pod is meant: by name, or by the workload that makes it."""

from __future__ import annotations

from pilotage.cluster.state import Cluster
from pilotage.model import Pod, shared_spec
from pilotage.model.frozen_map import FrozenMap
from pilotage.model.workloads import PodTemplate

_KINDS = {
    "pod": "Pod",
    "pods": "Pod",
    "po": "Pod",
    "deploy": "Deployment",
    "deployment": "Deployment",
    "deployments": "Deployment",
    "rs": "ReplicaSet",
    "replicaset": "ReplicaSet",
    "sts": "StatefulSet",
    "statefulset": "StatefulSet",
    "job": "Job",
    "jobs": "Job",
}


class UnknownSubject(LookupError):
    """There is no such object; the text says what there is."""


def find_subject(cluster: Cluster, text: str, namespace: str) -> Pod:
    """`NAME`, `pod/NAME`, `deploy/NAME`, ...: of a workload, a pending pod or one made from its template."""
    prefix, slash, name = text.rpartition("/")
    kind = _KINDS.get(prefix.lower()) if slash else "Pod"
    if kind is None:
        raise UnknownSubject(f'"{prefix}" is no kind that has pods; say pod/, deploy/, rs/, sts/ or job/')
    key = f"{namespace}/{name}"
    found = cluster.objects(kind).get(key)
    if found is None:
        raise UnknownSubject(f'{kind.lower()} "{name}" not found in namespace "{namespace}"{_others(cluster, kind)}')
    if isinstance(found, Pod):
        return found
    return _pending_pod(cluster, found.uid, namespace) or _from_template(found.spec.template, namespace, name)


def _others(cluster: Cluster, kind: str) -> str:
    keys = sorted(cluster.objects(kind))[:3]
    return f"; there are {', '.join(keys)}" if keys else f"; there is no {kind.lower()} at all"


def _pending_pod(cluster: Cluster, uid: str, namespace: str) -> Pod | None:
    """A pod of the workload that waits, directly or through a ReplicaSet."""
    owners = {uid} | {
        replica_set.uid
        for replica_set in cluster.objects("ReplicaSet").values()
        if any(owner.uid == uid for owner in replica_set.metadata.owner_references)
    }
    for pod in cluster.objects("Pod").values():
        if pod.namespace == namespace and not pod.node_name and pod.controller and pod.controller.uid in owners:
            found: Pod = pod
            return found
    return None


def _from_template(template: PodTemplate, namespace: str, name: str) -> Pod:
    return Pod(
        name=f"{name}-(next)",
        namespace=namespace,
        uid=f"{namespace}/{name}/next",
        labels=FrozenMap(template.metadata.labels),
        spec=shared_spec(template.spec),
    )
