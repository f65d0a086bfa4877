"""Simulated nodes: ready from the moment they are created, and heard of whenever someone asks.

A node that is created without a Ready condition (a bare `kind: Node` with the annotation) gets a complete status. What
a user writes into a status later stays: that is how a node is made NotReady by hand.

Ten thousand kubelets that renew their Leases every ten seconds would keep a processor busy for nobody. So a heartbeat
is written when it is looked at (`on_read`): a Lease that is read, or the Leases while they are watched, and the
lastHeartbeatTime of a node that is read. What a client sees is what it would see if all beats had been written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pilotage.clock import parse_rfc3339, rfc3339_micro
from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.life.controllers.controller import BATCH, ControllerContext, Due, Interest, Object
from pilotage.sandbox.life.facts import NodeObjectFacts
from pilotage.sandbox.life.kubelet import KubeletSettings
from pilotage.sandbox.life.node_templates import complete_status
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.storage.store import Key

LEASES: Final = "leases.coordination.k8s.io"
LEASE_NAMESPACE: Final = "kube-node-lease"
ALL_LEASES: Final = Key(LEASES, LEASE_NAMESPACE, "")

_RENEWED_SECONDS: Final = 10.0
_STATUS_SECONDS: Final = 300.0
"""A kubelet writes a status in which nothing has changed every five minutes."""
_WATCHED_SECONDS: Final = 600.0
"""A watch ends before, and is begun anew by those who still look."""
_MOST_AT_ONCE: Final = 5_000
"""Of a list of more Leases or nodes the rest is renewed in the background."""


class NodeController:
    name = "node"

    def __init__(self, context: ControllerContext, settings: KubeletSettings) -> None:
        self._context = context
        self._settings = settings
        self._renewed_at: dict[str, float] = {}
        self._posted_at: dict[str, float] = {}
        self._watched_until = 0.0

    def interests(self) -> Mapping[str, Interest]:
        return {"nodes": self._node_seen}

    def reconcile(self, key: Key) -> float | None:
        if key == ALL_LEASES:
            return self._sweep()
        node = self._context.index.node(key.name)
        if node is not None and self._beats(node) and not node.has_ready_condition:
            self._register(key)
        return None

    def on_read(self, resource: str, namespace: str | None, name: str, *, is_watch: bool) -> bool:
        """Write the heartbeats that a reader is about to see; whether there is more to do in the background."""
        if resource == "nodes":
            for node in self._beating(name, self._posted_at, _STATUS_SECONDS)[:_MOST_AT_ONCE]:
                self._post_status(node)
            return False
        if resource != LEASES or namespace not in (None, LEASE_NAMESPACE):
            return False
        now = self._context.clock.monotonic()
        for node in self._beating(name, self._renewed_at, _RENEWED_SECONDS)[:_MOST_AT_ONCE]:
            self._renew_lease(node)
        if is_watch:
            self._watched_until = now + _WATCHED_SECONDS
        return is_watch or bool(self._beating(name, self._renewed_at, _RENEWED_SECONDS))

    def _node_seen(self, seen: ObservedChange) -> Iterable[Due]:
        node = seen.new
        if not isinstance(node, NodeObjectFacts):
            self._renewed_at.pop(seen.key.name, None)
            self._posted_at.pop(seen.key.name, None)
            return ()
        if not self._beats(node):
            return ()
        if seen.old is None:
            self._posted_at[node.key.name] = self._context.clock.monotonic()
            if self._watched_until > self._context.clock.monotonic():
                return (Due(ALL_LEASES),)
        return () if node.has_ready_condition else (Due(node.key),)

    def _beats(self, node: NodeObjectFacts) -> bool:
        return self._settings.plays(node) and not node.is_deleting

    def _beating(self, name: str, done_at: Mapping[str, float], seconds: float) -> list[NodeObjectFacts]:
        """The nodes (or the one with this name) whose last beat is too long ago."""
        one = self._context.index.node(name) if name else None
        nodes = self._context.index.nodes() if not name else [one] if one is not None else []
        oldest = self._context.clock.monotonic() - seconds
        return [node for node in nodes if done_at.get(node.key.name, -1.0) <= oldest and self._beats(node)]

    def _sweep(self) -> float | None:
        """Renew a batch of Leases, in the background."""
        due = self._beating("", self._renewed_at, _RENEWED_SECONDS)
        for node in due[: 4 * BATCH]:
            self._renew_lease(node)
        if len(due) > 4 * BATCH:
            return 0.0
        return _RENEWED_SECONDS if self._watched_until > self._context.clock.monotonic() else None

    def _register(self, key: Key) -> None:
        node = self._context.read(key)
        if node is None:
            return
        status = complete_status(node.get("status") or {})
        now = self._context.timestamp()
        for condition in status["conditions"]:
            condition.setdefault("lastHeartbeatTime", now)
            condition.setdefault("lastTransitionTime", now)
        if not any(condition["type"] == "Ready" for condition in status["conditions"]):
            status["conditions"].append({"type": "Ready", "status": "True", "lastTransitionTime": now})
        node["status"] = status
        self._context.write_status(key, node)

    def _post_status(self, node: NodeObjectFacts) -> None:
        self._posted_at[node.key.name] = self._context.clock.monotonic()
        obj, now = self._context.outline(node.key), self._context.timestamp()
        conditions = (obj.get("status") or {}).get("conditions") or () if obj is not None else ()
        beats = [condition.get("lastHeartbeatTime") for condition in conditions]
        if obj is None or not any(beat and _age(self._context, beat) >= _STATUS_SECONDS for beat in beats):
            return
        for condition in conditions:
            condition["lastHeartbeatTime"] = now
        self._context.write_status(node.key, obj)

    def _renew_lease(self, node: NodeObjectFacts) -> None:
        name, now = node.key.name, rfc3339_micro(self._context.clock.time())
        self._renewed_at[name] = self._context.clock.monotonic()
        key = Key(LEASES, LEASE_NAMESPACE, name)
        lease = self._context.read(key)
        if lease is not None:
            lease["spec"]["renewTime"] = now
            self._context.write(key, lease)
            return
        try:
            self._context.create(LEASES, LEASE_NAMESPACE, _lease(node, now))
        except ApiError as error:
            if error.code != 404:  # without the namespace there are no leases
                raise


def _age(context: ControllerContext, timestamp: str) -> float:
    return context.clock.time() - parse_rfc3339(timestamp)


def _lease(node: NodeObjectFacts, now: str) -> Object:
    name = node.key.name
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name,
            "namespace": LEASE_NAMESPACE,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.uid}],
        },
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now},
    }
