"""Which pod is meant: by name, or by the workload that makes it."""

from __future__ import annotations

from pilotage.api.group_members import group_key
from pilotage.cluster.state import Cluster
from pilotage.model import Pod, shared_spec
from pilotage.model.frozen_map import FrozenMap
from pilotage.model.suggestions import suggestion
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
_GROUP_WORDS = ("podgroup", "podgroups", "pg")


class UnknownSubject(LookupError):
    """There is no such object; the text says what there is."""


def group_subject(cluster: Cluster, text: str, namespace: str) -> str:
    """The key of the group that `podgroup/NAME` names; "" if the text is about something else.

    UnknownSubject if there is none of that name and no pod waits for it.
    """
    if not is_about_group(text):
        return ""
    name = text.rpartition("/")[2]
    key = f"{namespace}/{name}"
    known = cluster.objects("PodGroup")
    if key in known or any(group_key(pod) == key for pod in cluster.objects("Pod").values()):
        return key
    if (skipped := cluster.skipped.about("PodGroup", key)) is not None:
        raise UnknownSubject(skipped.sentence)
    if "PodGroup" not in cluster.kinds.keys:
        raise UnknownSubject("pod groups are not looked at: the feature gate GenericWorkload is off")
    near = suggestion(name, [group.name for group in known.values() if group.namespace == namespace])
    raise UnknownSubject(
        f'podgroup "{name}" not found in namespace "{namespace}"{near or _others(cluster, "PodGroup")}'
    )


def is_about_group(text: str) -> bool:
    """Whether the text names a pod group."""
    prefix, slash, _ = text.rpartition("/")
    return bool(slash) and prefix.lower() in _GROUP_WORDS


def job_named(text: str, pod: Pod) -> str:
    """The job that `text` names or that owns the pod, or the pod or group that is queued itself; "" if none."""
    prefix, _, name = text.rpartition("/")
    if _KINDS.get(prefix.lower()) == "Job":
        return name
    owner = pod.controller
    if owner is not None and owner.kind == "Job":
        return owner.name
    # A scheduler that queues no workloads does without the whole package.
    from pilotage.jobs.adapters.plain_pods import group_of, takes_part

    return (group_of(pod) or pod.name) if takes_part(pod) else ""


def find_subject(cluster: Cluster, text: str, namespace: str) -> Pod:
    """`NAME`, `pod/NAME`, `deploy/NAME`, ...: of a workload, a pending pod or one made from its template."""
    prefix, slash, name = text.rpartition("/")
    kind = _KINDS.get(prefix.lower()) if slash else "Pod"
    if kind is None:
        raise UnknownSubject(f'"{prefix}" is no kind that has pods; say pod/, deploy/, rs/, sts/, job/ or podgroup/')
    key = f"{namespace}/{name}"
    found = cluster.objects(kind).get(key)
    if found is None and (skipped := cluster.skipped.about(kind, key)) is not None:
        raise UnknownSubject(skipped.sentence)
    if found is None and (
        waiting := _pending_pods(cluster, _unwatched_owners(cluster, kind, name, namespace), namespace)
    ):
        return waiting[0]
    if found is None:
        near = suggestion(name, [one.name for one in cluster.objects(kind).values() if one.namespace == namespace])
        others = near or _others(cluster, kind)
        raise UnknownSubject(f'{kind.lower()} "{name}" not found in namespace "{namespace}"{others}')
    if isinstance(found, Pod):
        return found
    waiting = _pending_pods(cluster, _owners(cluster, found.uid), namespace)
    return waiting[0] if waiting else _from_template(found.spec.template, namespace, name)


def find_siblings(cluster: Cluster, text: str, pod: Pod) -> tuple[list[Pod], str]:
    """The pending pods of the workload that `text` names, or of the owner of the pod that it names; and its name."""
    prefix, slash, name = text.rpartition("/")
    kind = _KINDS.get(prefix.lower(), "Pod") if slash else "Pod"
    if kind != "Pod":
        workload = cluster.objects(kind).get(f"{pod.namespace}/{name}")
        if workload is None:
            owners = _unwatched_owners(cluster, kind, name, pod.namespace)
        else:
            owners = _owners(cluster, workload.uid)
        return _pending_pods(cluster, owners, pod.namespace), text
    owner = pod.controller
    if owner is None:
        return [], ""
    return _pending_pods(cluster, {owner.uid}, pod.namespace), f"{owner.kind.lower()}/{owner.name}"


def _others(cluster: Cluster, kind: str) -> str:
    keys = sorted(cluster.objects(kind))[:3]
    return f"; there are {', '.join(keys)}" if keys else f"; there is no {kind.lower()} at all"


def _owners(cluster: Cluster, uid: str) -> set[str]:
    """UIDs of the workload and of its ReplicaSets."""
    return {uid} | {
        replica_set.uid
        for replica_set in cluster.objects("ReplicaSet").values()
        if any(owner.uid == uid for owner in replica_set.metadata.owner_references)
    }


def _unwatched_owners(cluster: Cluster, kind: str, name: str, namespace: str) -> set[str]:
    """UIDs of a workload that a scheduler does not watch (Deployments, Jobs), known from what it owns; and below it."""
    owned = [
        one.metadata.owner_references for one in cluster.objects("ReplicaSet").values() if one.namespace == namespace
    ]
    owned += [one.owner_references for one in cluster.objects("Pod").values() if one.namespace == namespace]
    named = {owner.uid for owners in owned for owner in owners if (owner.kind, owner.name) == (kind, name)}
    return {below for uid in named for below in _owners(cluster, uid)}


def _pending_pods(cluster: Cluster, owners: set[str], namespace: str) -> list[Pod]:
    """The pods of these owners that wait for a node."""
    return [
        pod
        for pod in cluster.objects("Pod").values()
        if pod.namespace == namespace and not pod.node_name and pod.controller and pod.controller.uid in owners
    ]


def _from_template(template: PodTemplate, namespace: str, name: str) -> Pod:
    return Pod(
        name=f"{name}-(next)",
        namespace=namespace,
        uid=f"{namespace}/{name}/next",
        labels=FrozenMap(template.metadata.labels),
        spec=shared_spec(template.spec),
    )
