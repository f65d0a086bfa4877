"""The cluster of a simulation: an API server in memory that keeps pods as the scheduler wants them.

Everything but pods is what `MemoryApi` makes of it: JSON that is decoded whenever it changes. Pods come and go by the
million, so they stay decoded: a binding, or why a pod waits, changes one field of a struct. JSON is made of a pod only
for those who write anything else into it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from pilotage.api.conditions import POD_SCHEDULED
from pilotage.clock import Clock
from pilotage.kube.errors import ApiStatusError
from pilotage.lab.checkpoint import SavedCluster
from pilotage.lab.controllers import bind_volumes
from pilotage.model import Condition, Pod, WatchEvent
from pilotage.model.frozen_map import FrozenMap
from pilotage.model.kinds import KindInfo
from pilotage.model.pod_status import PodStatus
from pilotage.simulate.memory_api import Json, Key, MemoryApi, key_of, merged

_STOP_SECONDS = 0.5
"""How long a pod takes to stop if its grace period lets it, as that of a simulated kubelet."""


class PodListener(Protocol):
    """Whoever wants to know what becomes of the pods."""

    def pod_bound(self, pod: Pod, node_name: str) -> None:
        """It runs from now on."""

    def pod_rejected(self, pod: Pod, message: str) -> None:
        """It was tried in vain, for this reason."""

    def pod_stopping(self, pod: Pod, seconds: float) -> None:
        """The scheduler evicts it; it is gone after so many seconds."""


class _Kept(msgspec.Struct, eq=False):
    """A pod, and the JSON that it came as."""

    pod: Pod
    raw: msgspec.Raw


class _StatusPatch(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    conditions: tuple[_WireCondition, ...] = ()
    nominated_node_name: str | msgspec.UnsetType | None = msgspec.UNSET


class _WireCondition(msgspec.Struct, rename="camel"):
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0

    def condition(self) -> Condition:
        return Condition(self.type, self.status, self.reason, self.message, self.observed_generation)


class _PatchMeta(msgspec.Struct, forbid_unknown_fields=True):
    uid: str = ""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class _PodPatch(msgspec.Struct, forbid_unknown_fields=True):
    """What the scheduler and plugins write into pods that wait."""

    metadata: _PatchMeta = msgspec.field(default_factory=_PatchMeta)
    status: _StatusPatch = msgspec.field(default_factory=_StatusPatch)


_pod_patch = msgspec.json.Decoder(_PodPatch)


class LiveCluster(MemoryApi):
    """All objects of the moment."""

    def __init__(self, clock: Clock, listener: PodListener) -> None:
        super().__init__(clock)
        self._listener = listener
        self._pods: dict[Key, _Kept] = {}

    # --- points at which a simulation can go on ---------------------------------------------------------------

    def saved(self, bound_at: Callable[[str], float]) -> SavedCluster:
        """Everything that is there, as JSON: pods by UID in the order in which they were bound."""
        objects = [msgspec.json.encode(obj) for obj in self._objects.values()]
        pods = [
            msgspec.json.encode(_document(kept))
            for kept in sorted(self._pods.values(), key=lambda kept: bound_at(kept.pod.uid))
        ]
        return SavedCluster(self._version, self.bindings, objects, pods)

    def restore(self, saved: SavedCluster) -> list[Json]:
        """All of it comes at once; returns the objects that are no pods."""
        objects = [msgspec.json.decode(body) for body in saved.objects]
        for obj in objects:
            self._objects[key_of(obj)] = obj
            self._send("ADDED", obj)
        for body in saved.pods:
            raw = msgspec.Raw(body)
            self._keep("ADDED", self.decode_pod(raw), raw)
        self._version, self.bindings = saved.version, saved.bindings
        return objects

    # --- what happens to the cluster ---------------------------------------------------------------------------

    def put(self, obj: Json) -> None:
        """Any object but a pod comes or changes."""
        key = key_of(obj)
        known = self._objects.get(key)
        if known is None:
            self.add(obj)
        else:
            metadata = {**obj["metadata"], "uid": known["metadata"]["uid"]}
            self._save("MODIFIED", {**obj, "metadata": metadata})

    def drop(self, key: Key) -> bool:
        """Any object but a pod goes; False if there is none."""
        if key not in self._objects:
            return False
        self.remove(key)
        self._gone.clear()
        return True

    def decode_pod(self, raw: msgspec.Raw) -> Pod:
        """The pod of this JSON; DecodeError if it is none."""
        pod: Pod = self._cluster.kinds.own["pods"].decode(bytes(raw))
        return pod

    def pod(self, key: Key) -> Pod | None:
        kept = self._pods.get(key)
        return None if kept is None else kept.pod

    def pods(self) -> Iterator[Pod]:
        return (kept.pod for kept in self._pods.values())

    def add_pod(self, pod: Pod, raw: msgspec.Raw) -> Pod:
        """A pod comes, as it is or with a UID of its own if it has none; returns it."""
        self._version += 1
        changes: dict[str, Any] = {"resource_version": str(self._version)}
        if not pod.uid:
            changes["uid"] = f"{pod.name}-{self._version}"
        if pod.creation_timestamp is None:
            changes["creation_timestamp"] = self._now()
        pod = replace(pod, **changes)
        self._keep("ADDED", pod, raw)
        return pod

    def change_pod(self, pod: Pod, raw: msgspec.Raw) -> None:
        """Somebody else changed a pod: what this cluster has decided about it stays."""
        key = ("Pod", pod.namespace, pod.name)
        known = self._pods[key].pod
        status = replace(
            pod.status,
            phase=known.status.phase,
            conditions=known.status.conditions,
            nominated_node_name=known.status.nominated_node_name,
        )
        own = {"uid": known.uid, "node_name": known.node_name, "deletion_timestamp": known.deletion_timestamp}
        created = {"creation_timestamp": known.creation_timestamp}
        self._keep("MODIFIED", replace(pod, status=status, resource_version=self._next(), **own, **created), raw)

    def remove_pod(self, key: Key) -> Pod | None:
        """A pod is gone; returns it as it was."""
        kept = self._pods.pop(key, None)
        if kept is None:
            return None
        self._show("DELETED", kept.pod)
        return kept.pod

    def raw_of(self, key: Key) -> msgspec.Raw:
        """The JSON that a pod came as."""
        return self._pods[key].raw

    # --- what the scheduler writes -----------------------------------------------------------------------------

    async def bind(self, namespace: str, pod: str, uid: str, node: str) -> None:
        known = self._same_pod(("Pod", namespace, pod), uid)
        if known.node_name:
            raise ApiStatusError(409, "Conflict", f"pod {pod} is already assigned to node {known.node_name}")
        if known.is_terminating:
            raise ApiStatusError(409, "Conflict", f"pod {pod} is being deleted, cannot be assigned to a host")
        self.bindings += 1
        status = known.status
        if status.conditions or status.nominated_node_name:
            kept = tuple(one for one in status.conditions if one.type != POD_SCHEDULED)
            status = replace(status, conditions=kept, nominated_node_name="")
        self._change(replace(known, node_name=node, status=status, resource_version=self._next()))
        self._listener.pod_bound(known, node)

    async def create(self, kind: KindInfo, namespace: str, body: bytes) -> bytes:
        if kind.kind == "Event":
            return body
        return await super().create(kind, namespace, body)

    async def patch(
        self, kind: KindInfo, namespace: str, name: str, body: bytes, *, content_type: str = "", subresource: str = ""
    ) -> bytes:
        if kind.kind != "Pod":
            return await super().patch(kind, namespace, name, body, content_type=content_type, subresource=subresource)
        try:
            wanted = _pod_patch.decode(body)
        except msgspec.DecodeError:
            return await super().patch(kind, namespace, name, body, content_type=content_type, subresource=subresource)
        known = self._same_pod(("Pod", namespace, name), wanted.metadata.uid)
        version = self._next()
        changes: dict[str, Any] = {"resource_version": version}
        if wanted.metadata.annotations:
            changes["annotations"] = FrozenMap({**known.annotations, **wanted.metadata.annotations})
        if wanted.status.conditions or wanted.status.nominated_node_name is not msgspec.UNSET:
            changes["status"] = _patched(known.status, wanted.status)
        self._change(replace(known, **changes))
        for condition in wanted.status.conditions:
            if condition.type == POD_SCHEDULED and condition.status == "False":
                self._listener.pod_rejected(known, condition.message)
        return b'{"metadata":{"resourceVersion":"%s"}}' % version.encode()

    async def delete(self, kind: KindInfo, namespace: str, name: str, options: bytes | None = None) -> bytes:
        if kind.kind != "Pod":
            return await super().delete(kind, namespace, name, options)
        wanted = msgspec.json.decode(options).get("preconditions", {}).get("uid", "") if options else ""
        known = self._same_pod(("Pod", namespace, name), wanted)
        if not known.is_terminating:
            grace = known.spec.termination_grace_period_seconds
            seconds = min(_STOP_SECONDS, 30.0 if grace is None else float(grace))
            self._change(replace(known, deletion_timestamp=self._now(), resource_version=self._next()))
            self._listener.pod_stopping(known, seconds)
        return b"{}"

    # --- inside ------------------------------------------------------------------------------------------------

    def _next(self) -> str:
        self._version += 1
        return str(self._version)

    def _same_pod(self, key: Key, uid: str) -> Pod:
        kept = self._pods.get(key)
        if kept is None:
            raise ApiStatusError(404, "NotFound", f"Pod {key[2]} not found")
        if uid and kept.pod.uid != uid:
            raise ApiStatusError(409, "Conflict", f"the UID of Pod {key[2]} is not {uid}")
        return kept.pod

    def _change(self, pod: Pod) -> None:
        self._keep("MODIFIED", pod, self._pods["Pod", pod.namespace, pod.name].raw)

    def _keep(self, change: str, pod: Pod, raw: msgspec.Raw) -> None:
        self._pods["Pod", pod.namespace, pod.name] = _Kept(pod, raw)
        self._show(change, pod)

    def _show(self, change: str, pod: Pod) -> None:
        assert self._intake is not None, "connected before anything happens"
        self._intake.apply("Pod", [WatchEvent(change, pod)])

    # Pods for those who write something else into them: JSON while they do so.

    def find(self, key: Key) -> Json | None:
        kept = self._pods.get(key)
        return super().find(key) if kept is None else _document(kept)

    def _known(self, key: Key) -> Json:
        kept = self._pods.get(key)
        return super()._known(key) if kept is None else _document(kept)

    def _save(self, change: str, obj: Json) -> None:
        if obj["kind"] != "Pod":
            super()._save(change, obj)
            if change == "MODIFIED":
                bind_volumes(self, obj)
            return
        raw = msgspec.Raw(msgspec.json.encode(self._stamped(obj)))
        self._keep(change, self.decode_pod(raw), raw)


def _patched(status: PodStatus, patch: _StatusPatch) -> PodStatus:
    changes: dict[str, Any] = {}
    if patch.conditions:
        types = {condition.type for condition in patch.conditions}
        kept = (condition for condition in status.conditions if condition.type not in types)
        changes["conditions"] = (*kept, *(condition.condition() for condition in patch.conditions))
    if patch.nominated_node_name is not msgspec.UNSET:
        changes["nominated_node_name"] = patch.nominated_node_name or ""
    return replace(status, **changes)


def _document(kept: _Kept) -> Json:
    """The pod as JSON: as it came, with what was decided about it since."""
    pod = kept.pod
    status: Json = {"conditions": msgspec.to_builtins(pod.status.conditions)}
    status["nominatedNodeName"] = pod.status.nominated_node_name or None
    if pod.status.phase:
        status["phase"] = pod.status.phase
    metadata = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.uid,
        "resourceVersion": pod.resource_version,
        "creationTimestamp": pod.creation_timestamp,
        "deletionTimestamp": pod.deletion_timestamp,
        "annotations": dict(pod.annotations),
    }
    spec = {"nodeName": pod.node_name or None}
    document: Json = {"apiVersion": "v1", "kind": "Pod", **msgspec.json.decode(kept.raw)}
    return merged(document, {"metadata": metadata, "spec": spec, "status": status})
