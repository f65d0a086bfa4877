"""An API server in memory for scenarios: objects as they are written, sent to the scheduler at once.

It has no admission and no validation, because a scenario may ask for changes that a real server would reject (a pod
that shrinks while it waits). It enforces what scheduling depends on: the rules of binding, UIDs and resource versions,
and that deleting a pod with a grace period only marks it. Faults are chosen by the scenario.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from pilotage.clock import Clock, rfc3339
from pilotage.cluster.state import Cluster
from pilotage.cycle.intake import Intake
from pilotage.kube.errors import ApiStatusError
from pilotage.model import DecodeError, WatchEvent
from pilotage.model.kinds import KindInfo

Json = dict[str, Any]
Key = tuple[str, str, str]
"""Kind, namespace ("" for cluster-scoped objects) and name."""


@dataclass(slots=True)
class Fault:
    """The next requests of a kind take time, fail, or both."""

    request: str
    pod: str = ""
    code: int = 0
    delay: float = 0.0
    times: int = 1


class MemoryApi:
    """Implements the writer of API calls, and feeds one intake like a watch without lag."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._version = 0
        self._intake: Intake | None = None
        self._cluster = Cluster()
        self._kinds: dict[str, str] = {}
        """For each kind of a plugin, as which `kind` its objects were written."""
        self._objects: dict[Key, Json] = {}
        self._gone: dict[Key, Json] = {}
        self.faults: list[Fault] = []
        self.bindings = 0
        """How many were asked for by the scheduler."""
        self.events: list[tuple[str, str]] = []
        """(pod, reason) of every Event that was recorded."""

    def connect(self, intake: Intake, cluster: Cluster) -> None:
        """Where news goes; `cluster` knows which kinds plugins watch."""
        self._intake = intake
        self._cluster = cluster

    # --- what users and controllers do -------------------------------------------------------------------------

    def find(self, key: Key) -> Json | None:
        return self._objects.get(key)

    def last_known(self, key: Key) -> Json:
        """The object, or what it was before it went; empty if it was never there."""
        return self._objects.get(key) or self._gone.get(key, {})

    def add(self, obj: Json) -> None:
        key = key_of(obj)
        if key in self._objects:
            raise ApiStatusError(409, "AlreadyExists", f"{key[0]} {key[2]} exists already")
        self._version += 1
        metadata = {**obj["metadata"], "uid": f"{key[2]}-{self._version}", "creationTimestamp": self._now()}
        self._save("ADDED", {**obj, "metadata": metadata})

    def merge(self, key: Key, patch: Json) -> None:
        """Apply a JSON merge patch, status included."""
        self._save("MODIFIED", merged(self._known(key), patch))

    def remove(self, key: Key) -> None:
        """The object is gone at once, whatever its grace period."""
        self._send("DELETED", self._stamped(self._known(key)))
        self._gone[key] = self._objects.pop(key)

    def terminate(self, key: Key) -> None:
        if "deletionTimestamp" not in self._known(key)["metadata"]:
            self.merge(key, {"metadata": {"deletionTimestamp": self._now()}})

    def assign(self, key: Key, node_name: str) -> None:
        """What a binding does to a pod."""
        pod = self._known(key)
        conditions = [c for c in pod.get("status", {}).get("conditions", ()) if c["type"] != "PodScheduled"]
        conditions.append({"type": "PodScheduled", "status": "True"})
        status = {"conditions": conditions, "nominatedNodeName": None}
        self.merge(key, {"spec": {"nodeName": node_name}, "status": status})

    # --- what the scheduler writes -----------------------------------------------------------------------------

    async def get(self, kind: KindInfo, namespace: str, name: str) -> bytes:
        return msgspec.json.encode(self._known(self._key(kind, namespace, name)))

    async def bind(self, namespace: str, pod: str, uid: str, node: str) -> None:
        self.bindings += 1
        await self._suffer("bind", pod)
        key = ("Pod", namespace, pod)
        known = self._same(key, uid)
        if known["spec"].get("nodeName"):
            raise ApiStatusError(409, "Conflict", f"pod {pod} is already assigned to node {known['spec']['nodeName']}")
        if "deletionTimestamp" in known["metadata"]:
            raise ApiStatusError(409, "Conflict", f"pod {pod} is being deleted, cannot be assigned to a host")
        self.assign(key, node)

    async def create(self, kind: KindInfo, namespace: str, body: bytes) -> bytes:
        obj = msgspec.json.decode(body)
        if kind.kind == "Event":
            self.events.append((obj["regarding"]["name"], obj["reason"]))
            return body
        if "generateName" in obj["metadata"]:
            obj["metadata"].setdefault("name", f"{obj['metadata']['generateName']}{self._version + 1}")
        obj = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        self.add(obj)
        return msgspec.json.encode(self._objects[key_of(obj)])

    async def update(self, kind: KindInfo, namespace: str, name: str, body: bytes, *, subresource: str = "") -> bytes:
        key = self._key(kind, namespace, name)
        known, wanted = self._known(key), msgspec.json.decode(body)
        version = wanted["metadata"].get("resourceVersion", "")
        if version and version != known["metadata"]["resourceVersion"]:
            raise ApiStatusError(409, "Conflict", f"{kind.kind} {name} was changed meanwhile")
        wanted["metadata"] = {**known["metadata"], **wanted["metadata"]}
        self._save("MODIFIED", {**known, "status": wanted.get("status")} if subresource == "status" else wanted)
        return msgspec.json.encode(self._known(key))

    async def patch(
        self, kind: KindInfo, namespace: str, name: str, body: bytes, *, content_type: str = "", subresource: str = ""
    ) -> bytes:
        if kind.kind == "Pod":
            await self._suffer("patchStatus", name)
        key = self._key(kind, namespace, name)
        patch = msgspec.json.decode(body)
        known = self._same(key, patch.get("metadata", {}).get("uid", ""))
        if "strategic" in content_type:
            patch = _with_whole_lists(known, patch)
        self.merge(key, patch)
        return msgspec.json.encode(self._known(key))

    async def delete(self, kind: KindInfo, namespace: str, name: str, options: bytes | None = None) -> bytes:
        if kind.kind == "Pod":
            await self._suffer("deletePod", name)
        key = self._key(kind, namespace, name)
        wanted = msgspec.json.decode(options).get("preconditions", {}).get("uid", "") if options else ""
        known = self._same(key, wanted)
        if known["kind"] == "Pod" and known["spec"].get("terminationGracePeriodSeconds", 0) > 0:
            self.terminate(key)
        else:
            self.remove(key)
        return b"{}"

    # --- inside ------------------------------------------------------------------------------------------------

    async def _suffer(self, request: str, pod: str) -> None:
        fault = next((f for f in self.faults if f.request == request and f.pod in ("", pod)), None)
        if fault is None:
            return
        fault.times -= 1
        if fault.times <= 0:
            self.faults.remove(fault)
        if fault.delay:
            await self._clock.sleep(fault.delay)
        if fault.code:
            raise ApiStatusError(fault.code, "", "the scenario wants this request to fail")

    def _known(self, key: Key) -> Json:
        known = self._objects.get(key)
        if known is None:
            raise ApiStatusError(404, "NotFound", f"{key[0]} {key[2]} not found")
        return known

    def _same(self, key: Key, uid: str) -> Json:
        known = self._known(key)
        if uid and known["metadata"]["uid"] != uid:
            raise ApiStatusError(409, "Conflict", f"the UID of {key[0]} {key[2]} is not {uid}")
        return known

    def _save(self, change: str, obj: Json) -> None:
        stamped = self._objects[key_of(obj)] = self._stamped(obj)
        self._send(change, stamped)

    def _stamped(self, obj: Json) -> Json:
        self._version += 1
        return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._version)}}

    def _key(self, kind: KindInfo, namespace: str, name: str) -> Key:
        return self._kinds.get(kind.kind, kind.kind), namespace if kind.namespaced else "", name

    def _send(self, change: str, obj: Json) -> None:
        if self._intake is None:
            return
        for kind in self._cluster.kinds.of_manifest(obj):
            is_foreign = kind.kind in self._cluster.kinds.foreign
            if is_foreign:
                self._kinds[kind.kind] = obj["kind"]
            try:
                self._intake.apply(kind.kind, [WatchEvent(change, kind.decode(msgspec.json.encode(obj)))])
            except DecodeError as error:
                if not is_foreign:
                    raise
                self._cluster.skipped.skip(kind.kind, error.key, "decode", error)

    def _now(self) -> str:
        return rfc3339(self._clock.time())


def key_of(obj: Json) -> Key:
    metadata = obj["metadata"]
    return obj["kind"], metadata.get("namespace", ""), metadata["name"]


def merged(target: Json, patch: Json) -> Json:
    """JSON merge patch: null removes, objects are merged, everything else is replaced."""
    made = dict(target)
    for field, value in patch.items():
        if value is None:
            made.pop(field, None)
        elif isinstance(value, dict):
            known = made.get(field)
            made[field] = merged(known if isinstance(known, dict) else {}, value)
        else:
            made[field] = value
    return made


def _with_whole_lists(known: Json, patch: Json) -> Json:
    """A strategic merge patch of conditions (merged by type) as a plain merge patch."""
    changed = patch.get("status", {}).get("conditions")
    if changed is None:
        return patch
    types = {condition["type"] for condition in changed}
    kept = [c for c in known.get("status", {}).get("conditions", ()) if c["type"] not in types]
    return {**patch, "status": {**patch["status"], "conditions": [*kept, *changed]}}
