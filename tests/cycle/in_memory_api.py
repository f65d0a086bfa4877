"""An API server in memory, as the scheduler sees it: it enforces the rules of binding and tells every change.

Pods are JSON with resource versions. A binding is rejected for a pod that is gone, is another one of that name, is
being deleted or is bound already. Faults are chosen by the test: errors before or after the write, and latency.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from pilotage.clock import Clock, rfc3339
from pilotage.cycle.intake import Intake
from pilotage.kube.errors import ApiStatusError
from pilotage.model import KINDS, WatchEvent
from pilotage.model.kinds import KindInfo
from pilotage.testing import NodeBuilder, PodBuilder

Json = dict[str, Any]


class InMemoryApi:
    """Implements the writer that API calls need, and feeds one intake like a watch."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._version = 0
        self._intake: Intake | None = None
        self.pods: dict[str, Json] = {}
        self.nodes: dict[str, Json] = {}
        self.events: list[Json] = []
        self.bindings: list[tuple[float, str, str]] = []
        """(time, pod, node) of every binding that was accepted."""
        self.latency = 0.0
        self.status_latency = 0.0
        self.reject_bindings: deque[Exception] = deque()
        """Errors for the next bindings, which are not done."""
        self.lose_answers: deque[Exception] = deque()
        """Errors for the next bindings, which are done all the same."""
        self.reject_patches: deque[Exception] = deque()
        """Errors for the next status patches, which are not done."""
        self.patches: list[str] = []
        """Names of the pods whose status the scheduler has patched."""
        self.reject_deletions: deque[Exception] = deque()
        """Errors for the next deletions, which are not done."""
        self.deletions: list[str] = []
        """Names of the pods that the scheduler has deleted."""
        self.watch_is_cut = False
        self.answers_are_unreadable = False
        """Of deletions."""
        self.deletion_attempts = 0
        self._held: list[tuple[str, str, Json]] | None = None

    # --- the watch ---------------------------------------------------------------------------------------------

    def connect(self, intake: Intake) -> None:
        self._intake = intake
        self.relist()

    def relist(self) -> None:
        """What a reflector does after a cut: everything that is there, as it is."""
        self.watch_is_cut = False
        assert self._intake is not None
        self._intake.replace("Node", [self._decoded("nodes", obj) for obj in self.nodes.values()])
        self._intake.replace("Pod", [self._decoded("pods", obj) for obj in self.pods.values()])

    def hold_watch(self) -> None:
        """From now on the watch of pods lags: what happens is told when `release_watch` is called."""
        self._held = []

    def create_pod_shown_at_once(self, *builders: PodBuilder) -> None:
        """Create pods that the watch shows at once, although it lags."""
        held, self._held = self._held, None
        self.create_pod(*builders)
        self._held = held

    def release_watch(self) -> None:
        held, self._held = self._held or [], None
        for news in held:
            self._tell(*news)

    def _tell(self, change: str, resource: str, obj: Json) -> None:
        if self._held is not None and resource == "pods":
            self._held.append((change, resource, obj))
            return
        if self._intake is not None and not self.watch_is_cut:
            self._intake.apply(KINDS[resource].kind, [WatchEvent(change, self._decoded(resource, obj))])

    @staticmethod
    def _decoded(resource: str, obj: Json) -> Any:
        return KINDS[resource].decode(msgspec.json.encode(obj))

    # --- what users and controllers do -------------------------------------------------------------------------

    def put_node(self, builder: NodeBuilder) -> None:
        obj = self._stamped(builder.json(), uid=f"uid-{builder.build().name}")
        name = obj["metadata"]["name"]
        change = "MODIFIED" if name in self.nodes else "ADDED"
        self.nodes[name] = obj
        self._tell(change, "nodes", obj)

    def delete_node(self, name: str) -> None:
        self._tell("DELETED", "nodes", self._stamped(self.nodes.pop(name)))

    def create_pod(self, *builders: PodBuilder) -> None:
        for builder in builders:
            built = builder.build()
            assert built.key not in self.pods, f"{built.key} exists already"
            self._save("ADDED", self._stamped(builder.json(), uid=built.uid))

    def update_pod(self, builder: PodBuilder) -> None:
        """Another spec or other labels; the status stays."""
        built = builder.build()
        obj = builder.json()
        obj["status"] = {**self.pods[built.key].get("status", {}), **obj.get("status", {})}
        self._save("MODIFIED", self._stamped(obj, uid=built.uid))

    def delete_pod(self, name: str, namespace: str = "default") -> None:
        obj = self.pods.pop(f"{namespace}/{name}")
        self._tell("DELETED", "pods", self._stamped(obj))

    def _save(self, change: str, obj: Json) -> None:
        self.pods[f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"] = obj
        self._tell(change, "pods", obj)

    def _stamped(self, obj: Json, uid: str | None = None) -> Json:
        self._version += 1
        metadata = {**obj["metadata"], "resourceVersion": str(self._version)}
        return {**obj, "metadata": metadata if uid is None else {**metadata, "uid": uid}}

    # --- what the scheduler writes -----------------------------------------------------------------------------

    async def get(self, kind: KindInfo, namespace: str, name: str) -> bytes:
        assert kind.plural == "pods"
        obj = self.pods.get(f"{namespace}/{name}")
        if obj is None:
            raise ApiStatusError(404, "NotFound", f'pods "{name}" not found')
        return msgspec.json.encode(obj)

    async def bind(self, namespace: str, pod: str, uid: str, node: str) -> None:
        if self.latency:
            await self._clock.sleep(self.latency)
        if self.reject_bindings:
            raise self.reject_bindings.popleft()
        obj = self._current(namespace, pod, uid)
        if "deletionTimestamp" in obj["metadata"]:
            raise ApiStatusError(409, "Conflict", f"pod {pod} is being deleted, cannot be assigned to a host")
        bound = obj["spec"].get("nodeName")
        if bound:
            raise ApiStatusError(409, "Conflict", f'pod {pod} is already assigned to node "{bound}"')
        condition = {"type": "PodScheduled", "status": "True"}
        status = {**obj.get("status", {}), "conditions": [condition]}
        self.bindings.append((self._clock.monotonic(), pod, node))
        self._save("MODIFIED", self._stamped({**obj, "spec": {**obj["spec"], "nodeName": node}, "status": status}))
        if self.lose_answers:
            raise self.lose_answers.popleft()

    async def patch(
        self, kind: KindInfo, namespace: str, name: str, body: bytes, *, content_type: str = "", subresource: str = ""
    ) -> bytes:
        if kind.plural == "events":
            event = next(event for event in self.events if event["metadata"]["name"] == name)
            event.update(msgspec.json.decode(body))
            return b""
        assert (kind.plural, subresource) == ("pods", "status")
        if self.status_latency:
            await self._clock.sleep(self.status_latency)
        if self.reject_patches:
            raise self.reject_patches.popleft()
        self.patches.append(name)
        patch = msgspec.json.decode(body)
        obj = self._current(namespace, name, patch["metadata"]["uid"])
        status = dict(obj.get("status", {}))
        changed = {condition["type"]: condition for condition in patch["status"].pop("conditions", [])}
        kept = [condition for condition in status.get("conditions", []) if condition["type"] not in changed]
        status["conditions"] = [*kept, *changed.values()]
        status.update(patch["status"])
        status = {field: value for field, value in status.items() if value is not None}
        self._save("MODIFIED", self._stamped({**obj, "status": status}))
        return msgspec.json.encode(self.pods[f"{namespace}/{name}"])

    async def create(self, kind: KindInfo, namespace: str, body: bytes) -> bytes:
        assert kind.plural == "events"
        self.events.append(msgspec.json.decode(body))
        return body

    async def update(self, *arguments: Any, **options: Any) -> bytes:
        raise AssertionError("the scheduler updates nothing yet")

    async def delete(self, kind: KindInfo, namespace: str, name: str, options: bytes | None = None) -> bytes:
        """A pod with a grace period stays and is marked; without one (as pods are here by default) it goes at once."""
        assert kind.plural == "pods"
        self.deletion_attempts += 1
        if self.latency:
            await self._clock.sleep(self.latency)
        if self.reject_deletions:
            raise self.reject_deletions.popleft()
        wanted = msgspec.json.decode(options or b"{}")
        obj = self._current(namespace, name, wanted["preconditions"]["uid"])
        self.deletions.append(name)
        if grace := obj["spec"].get("terminationGracePeriodSeconds"):
            marked = {"deletionTimestamp": rfc3339(self._clock.time()), "deletionGracePeriodSeconds": grace}
            self._save("MODIFIED", self._stamped({**obj, "metadata": {**obj["metadata"], **marked}}))
            return self._answer({"kind": "Pod", **self.pods[f"{namespace}/{name}"]})
        self.delete_pod(name, namespace)
        return self._answer({"kind": "Status", "status": "Success"})

    def _answer(self, obj: Json) -> bytes:
        return b"" if self.answers_are_unreadable else msgspec.json.encode(obj)

    def _current(self, namespace: str, name: str, uid: str) -> Json:
        obj = self.pods.get(f"{namespace}/{name}")
        if obj is None:
            raise ApiStatusError(404, "NotFound", f'pods "{name}" not found')
        if obj["metadata"]["uid"] != uid:
            raise ApiStatusError(409, "Conflict", f"the UID of pod {name} is not {uid}")
        return obj
