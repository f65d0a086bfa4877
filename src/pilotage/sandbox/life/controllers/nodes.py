"""Simulated nodes: ready from the moment they are created, and renewing their leases if that is wanted.

A node that is created without a Ready condition (a bare `kind: Node` with the annotation) gets a complete status. What
a user writes into a status later stays: that is how a node is made NotReady by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pilotage.clock import rfc3339_micro
from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.life.controllers.controller import ControllerContext, Due, Interest, Object
from pilotage.sandbox.life.facts import NodeObjectFacts
from pilotage.sandbox.life.kubelet import KubeletSettings
from pilotage.sandbox.life.node_templates import complete_status
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.storage.store import Key

LEASES: Final = "leases.coordination.k8s.io"
LEASE_NAMESPACE: Final = "kube-node-lease"


class NodeController:
    name = "node"

    def __init__(self, context: ControllerContext, settings: KubeletSettings) -> None:
        self._context = context
        self._settings = settings

    def interests(self) -> Mapping[str, Interest]:
        return {"nodes": self._node_seen}

    def reconcile(self, key: Key) -> float | None:
        node = self._context.index.node(key.name)
        if node is None or not self._simulates(node) or node.is_deleting:
            return None
        if not node.has_ready_condition:
            self._register(key)
        if self._settings.lease_seconds is None:
            return None
        self._renew_lease(node)
        return self._settings.lease_seconds

    def _node_seen(self, seen: ObservedChange) -> Iterable[Due]:
        node = seen.new
        if not isinstance(node, NodeObjectFacts) or not self._simulates(node):
            return ()
        is_new = not isinstance(seen.old, NodeObjectFacts) or not self._simulates(seen.old)
        if not node.has_ready_condition or (is_new and self._settings.lease_seconds is not None):
            return (Due(node.key),)
        return ()

    def _simulates(self, node: NodeObjectFacts) -> bool:
        return self._settings.manages_all_nodes if node.is_simulated is None else node.is_simulated

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

    def _renew_lease(self, node: NodeObjectFacts) -> None:
        name, now = node.key.name, rfc3339_micro(self._context.clock.time())
        lease = self._context.read(Key(LEASES, LEASE_NAMESPACE, name))
        if lease is not None:
            lease["spec"]["renewTime"] = now
            self._context.write(Key(LEASES, LEASE_NAMESPACE, name), lease)
            return
        try:
            self._context.create(LEASES, LEASE_NAMESPACE, _lease(node, now))
        except ApiError as error:
            if error.code != 404:  # without the namespace there are no leases
                raise


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
