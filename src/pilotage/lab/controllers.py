"""What controllers of a cluster do at once in a simulation, because pods would wait for it or take it with them.

the claim controller   takes a pod that is gone out of the claims that it used; claims made for it go with it
the volume controller  binds a claim to the volume that the scheduler chose, or makes one on the node that it chose
"""

from __future__ import annotations

from pilotage.model import Pod
from pilotage.simulate.memory_api import Json, Key, MemoryApi

_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_HOSTNAME = "kubernetes.io/hostname"
_CLAIM, _VOLUME = "PersistentVolumeClaim", "PersistentVolume"


def release_claims(api: MemoryApi, pod: Pod) -> None:
    """The pod is gone: its devices are free, unless other pods use the same claim."""
    generated = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    names = [one.resource_claim_name or generated.get(one.name) for one in pod.spec.resource_claims]
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        names.append(extended.resource_claim_name)
    for name in names:
        key = ("ResourceClaim", pod.namespace, name or "")
        claim = api.find(key)
        if claim is not None:
            _release(api, key, claim, pod)


def _release(api: MemoryApi, key: Key, claim: Json, pod: Pod) -> None:
    if any(owner.get("uid") == pod.uid for owner in claim["metadata"].get("ownerReferences") or ()):
        api.remove(key)
        return
    users = (claim.get("status") or {}).get("reservedFor") or ()
    left = [user for user in users if user.get("uid") != pod.uid]
    if len(left) < len(users):
        api.merge(key, {"status": {"reservedFor": left} if left else {"reservedFor": None, "allocation": None}})


def bind_volumes(api: MemoryApi, obj: Json) -> None:
    """Somebody has written a claim or a volume: do what follows from it."""
    if obj["kind"] == _CLAIM:
        _provision(api, obj)
    elif obj["kind"] == _VOLUME and obj["spec"].get("claimRef"):
        wanted = obj["spec"]["claimRef"]
        key = (_CLAIM, wanted.get("namespace", ""), wanted["name"])
        claim = api.find(key)
        if claim is not None and not claim["spec"].get("volumeName"):
            _bind(api, key, obj["metadata"]["name"])


def _provision(api: MemoryApi, claim: Json) -> None:
    """Make a volume for a claim that is to be used on a node; it can be reached from that node, by its hostname."""
    metadata, spec = claim["metadata"], claim["spec"]
    node = (metadata.get("annotations") or {}).get(_SELECTED_NODE)
    if not node or spec.get("volumeName"):
        return
    name = f"pvc-{metadata['uid']}"
    hostname = (api.last_known(("Node", "", node)).get("metadata", {}).get("labels") or {}).get(_HOSTNAME)
    term = {"matchExpressions": [{"key": _HOSTNAME, "operator": "In", "values": [hostname]}]}
    requests = (spec.get("resources") or {}).get("requests") or {}
    volume: Json = {
        "apiVersion": "v1",
        "kind": _VOLUME,
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": requests.get("storage", "1Gi")},
            "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
            "storageClassName": spec.get("storageClassName", ""),
            "claimRef": {"namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]},
            **({"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}} if hostname else {}),
        },
        "status": {"phase": "Bound"},
    }
    if api.find((_VOLUME, "", name)) is None:
        api.add(volume)
        _bind(api, (_CLAIM, metadata["namespace"], metadata["name"]), name)


def _bind(api: MemoryApi, claim: Key, volume: str) -> None:
    bound = {"metadata": {"annotations": {_BIND_COMPLETED: "yes"}}, "status": {"phase": "Bound"}}
    api.merge(claim, {**bound, "spec": {"volumeName": volume}})
