"""The API server of a scenario, played by a server in another process: real or the sandbox.

Scenarios run in virtual time, so the scheduler is in this process; but every write, of the scenario and of the
scheduler, goes to the server, and what the scheduler is told is what the server stored. A write is told at once,
before anything else happens: scenarios know no lag.

Where a scenario asks for one change that the API has in two places (an object and its status), both are written and
the outcome is told once.
"""

from __future__ import annotations

import time
from urllib.parse import quote

import msgspec

from pilotage.clock import Clock
from pilotage.kube.errors import ApiStatusError
from pilotage.model import kind_of
from pilotage.model.kinds import KINDS, KindInfo
from pilotage.simulate.memory_api import Json, Key, MemoryApi, key_of

from .client import MERGE, Client, Refused

CLASS_KNOWN_WITHIN = 250
STRATEGIC = "application/strategic-merge-patch+json"

_STATUS_APART = frozenset(
    {"Pod", "Node", "PersistentVolumeClaim", "PersistentVolume", "ResourceClaim", "PodDisruptionBudget"}
)
_STATUS_APART_AT_CREATION = _STATUS_APART - {"Node"}


class ServedApi(MemoryApi):
    """What it holds is what the server answered."""

    def __init__(self, clock: Clock, client: Client) -> None:
        super().__init__(clock)
        self._client = client
        self._known_classes: set[str] = set()
        self._pod_groups = client.kinds["podgroups"]

    # --- what users and controllers do -------------------------------------------------------------------------

    def last_known(self, key: Key) -> Json:
        """Without the condition by which the server itself says that a pod is gated: scenarios know the scheduler's."""
        known = super().last_known(key)
        conditions = known.get("status", {}).get("conditions", ())
        if not any(entry.get("reason") == "SchedulingGated" for entry in conditions):
            return known
        kept = [entry for entry in conditions if entry.get("reason") != "SchedulingGated"]
        return {**known, "status": {**known["status"], "conditions": kept}}

    def add(self, obj: Json) -> None:
        obj = self._with_priority_class(self._in_its_version(obj))
        stored = self._created(obj)
        status = obj.get("status")
        if status and obj["kind"] in _STATUS_APART_AT_CREATION:
            stored = self._client.request("PATCH", f"{self._path(key_of(stored))}/status", {"status": status}, MERGE)
        self._keep("ADDED", stored)

    def merge(self, key: Key, patch: Json) -> None:
        stored = self._known(key)
        parts = dict(patch)
        status = parts.pop("status", None) if key[0] in _STATUS_APART else None
        if key[0] == "Pod" and "spec" in parts:
            parts["spec"] = _with_tolerations_kept(stored, parts["spec"])
        if key[0] == "Pod" and "containers" in parts.get("spec", {}):
            stored = self._client.request("PATCH", f"{self._path(key)}/resize", _resize(parts), STRATEGIC)
        elif parts:
            stored = self._client.request("PATCH", self._path(key), parts, MERGE)
        if status is not None:
            stored = self._client.request("PATCH", f"{self._path(key)}/status", {"status": status}, MERGE)
        self._keep("MODIFIED", stored)

    def remove(self, key: Key) -> None:
        known = self._known(key)
        if known["metadata"].get("finalizers"):
            self._client.request("PATCH", self._path(key), {"metadata": {"finalizers": None}}, MERGE)
        self._client.request("DELETE", self._path(key), {"gracePeriodSeconds": 0})
        self._gone_now(key)

    def terminate(self, key: Key) -> None:
        """As `kubectl delete` does it; a pod that is on no node needs a finalizer to remain."""
        if "deletionTimestamp" in self._known(key)["metadata"]:
            return
        self._client.request("PATCH", self._path(key), {"metadata": {"finalizers": ["example.com/remain"]}}, MERGE)
        self._client.request("DELETE", self._path(key), {})
        self._keep("MODIFIED", self._client.request("GET", self._path(key)))

    def assign(self, key: Key, node_name: str) -> None:
        self._bind(key, "", node_name)

    # --- what the scheduler writes -----------------------------------------------------------------------------

    async def bind(self, namespace: str, pod: str, uid: str, node: str) -> None:
        await self._suffer("bind", pod)
        with _as_the_client_tells_it():
            self._bind(("Pod", namespace, pod), uid, node)

    async def create(self, kind: KindInfo, namespace: str, body: bytes) -> bytes:
        obj = msgspec.json.decode(body)
        with _as_the_client_tells_it():
            stored = self._client.request("POST", kind.path(namespace), obj)
        if kind.kind == "Event":
            self.events.append((obj["regarding"]["name"], obj["reason"]))
        else:
            self._keep("ADDED", stored)
        return msgspec.json.encode(stored)

    async def update(self, kind: KindInfo, namespace: str, name: str, body: bytes, *, subresource: str = "") -> bytes:
        return self._written("PUT", kind, namespace, name, body, "application/json", subresource)

    async def patch(
        self,
        kind: KindInfo,
        namespace: str,
        name: str,
        body: bytes,
        *,
        content_type: str = MERGE,
        subresource: str = "",
    ) -> bytes:
        if kind.kind == "Pod":
            await self._suffer("patchStatus", name)
        return self._written("PATCH", kind, namespace, name, body, content_type, subresource)

    async def delete(self, kind: KindInfo, namespace: str, name: str, options: bytes | None = None) -> bytes:
        if kind.kind == "Pod":
            await self._suffer("deletePod", name)
        path = kind.path(namespace, name)
        with _as_the_client_tells_it():
            self._client.request("DELETE", path, msgspec.json.decode(options) if options else {})
        key = (kind.kind, namespace if kind.namespaced else "", name)
        try:
            self._keep("MODIFIED", self._client.request("GET", path))
        except Refused:
            self._gone_now(key)
        return b"{}"

    # --- inside ------------------------------------------------------------------------------------------------

    def _created(self, obj: Json) -> Json:
        for _ in range(CLASS_KNOWN_WITHIN):
            try:
                return self._client.request("POST", self._collection(obj), obj)
            except Refused as refused:
                # The admission of a real server hears of a new class a moment later.
                if "no PriorityClass with name" not in str(refused):
                    raise
                time.sleep(0.02)
        raise AssertionError(f"the server does not get to know {obj['spec']['priorityClassName']}")

    def _bind(self, key: Key, uid: str, node_name: str) -> None:
        metadata = {"name": key[2], **({"uid": uid} if uid else {})}
        target = {"apiVersion": "v1", "kind": "Node", "name": node_name}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        self._client.request("POST", f"{self._path(key)}/binding", binding)
        self._keep("MODIFIED", self._client.request("GET", self._path(key)))

    def _written(
        self, method: str, kind: KindInfo, namespace: str, name: str, body: bytes, content_type: str, subresource: str
    ) -> bytes:
        path = kind.path(namespace, name) + (f"/{subresource}" if subresource else "")
        with _as_the_client_tells_it():
            stored = self._client.request(method, path, msgspec.json.decode(body), content_type)
        self._keep("MODIFIED", stored)
        return msgspec.json.encode(stored)

    def _keep(self, change: str, stored: Json) -> None:
        key = key_of(stored)
        if change == "MODIFIED" and self._is_same(key, stored):
            return  # a write that changes nothing is told to nobody
        self._objects[key] = stored
        self._send(change, stored)

    def _is_same(self, key: Key, stored: Json) -> bool:
        known = self._objects.get(key)
        return known is not None and known["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]

    def _gone_now(self, key: Key) -> None:
        known = self._objects.pop(key)
        self._gone[key] = known
        self._send("DELETED", known)

    def _in_its_version(self, obj: Json) -> Json:
        """Kubernetes 1.36 says the disruption mode of a group in a word."""
        if obj["kind"] != "PodGroup" or self._pod_groups.version == "v1beta1":
            return obj
        mode = "PodGroup" if "all" in obj["spec"]["disruptionMode"] else "Pod"
        return {**obj, "apiVersion": self._pod_groups.api_version, "spec": {**obj["spec"], "disruptionMode": mode}}

    def _collection(self, obj: Json) -> str:
        return self._kind(obj["kind"]).path(obj["metadata"].get("namespace"))

    def _path(self, key: Key) -> str:
        return self._kind(key[0]).path(key[1], quote(key[2]))

    def _kind(self, name: str) -> KindInfo:
        kind = self._pod_groups if name == "PodGroup" else kind_of(name)
        assert kind is not None, name
        return kind

    def _with_priority_class(self, obj: Json) -> Json:
        """A real server takes the priority of a pod, and of a group, from a class only."""
        spec = obj.get("spec", {})
        value, policy = spec.get("priority", 0), spec.get("preemptionPolicy", "PreemptLowerPriority")
        if obj["kind"] not in ("Pod", "PodGroup") or (value, policy) == (0, "PreemptLowerPriority"):
            return obj
        name = f"p{value}-{policy.lower()}".replace("p-", "minus-")
        if name not in self._known_classes:
            made = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
            self._client.request("POST", KINDS["priorityclasses"].path(), made)
            self._known_classes.add(name)
        return {**obj, "spec": {**spec, "priorityClassName": name}}


class _as_the_client_tells_it:
    """A rejection becomes the error that the scheduler's own client would raise."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Refused):
            raise ApiStatusError(error.code, error.reason, str(error)) from error


def _with_tolerations_kept(known: Json, spec: Json) -> Json:
    """Tolerations can be added only; admission has given every pod some."""
    if "tolerations" not in spec:
        return spec
    kept = known["spec"].get("tolerations", [])
    return {**spec, "tolerations": [*kept, *(entry for entry in spec["tolerations"] if entry not in kept)]}


def _resize(patch: Json) -> Json:
    """What a pod asks for is changed through a subresource of its own."""
    return {"spec": {"containers": [_only(c, "name", "resources") for c in patch["spec"]["containers"]]}}


def _only(container: Json, *fields: str) -> Json:
    return {field: container[field] for field in fields if field in container}
