"""Watches all pods from outside: who was bound when and where, and whether a node ever held more than it has."""

from __future__ import annotations

import time

from tests.real_cluster.bindings_seen import BindingsSeen
from tests.real_cluster.client import Client, Json

POD_MILLIS = 100
"""Every pod of these programs asks for so much CPU."""


class Witness(BindingsSeen):
    """Used as a context."""

    def __init__(self, client: Client, node_millis: int) -> None:
        super().__init__(client)
        self._node_millis = node_millis
        self._home: dict[str, str] = {}
        """Of the pods that exist, by UID."""
        self._names: set[str] = set()
        self._used: dict[str, int] = {}
        self.bound_at: list[float] = []
        """When bindings were seen, on the monotonic clock."""
        self.overcommitted: list[str] = []

    def note(self, change: str, pod: Json) -> None:
        super().note(change, pod)
        uid, node_name = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        if change == "DELETED":
            home = self._home.pop(uid, "")
            self._names.discard(pod["metadata"]["name"])
            if home:
                self._used[home] -= POD_MILLIS
        elif node_name and uid not in self._home:
            self._home[uid] = node_name
            self._names.add(pod["metadata"]["name"])
            self._used[node_name] = self._used.get(node_name, 0) + POD_MILLIS
            self.bound_at.append(time.monotonic())
            if self._used[node_name] > self._node_millis:
                self.overcommitted.append(f"{node_name}: {self._used[node_name]}m of {self._node_millis}m")

    def has_bound(self, name: str) -> bool:
        """Does the pod of this name exist, and is it on a node?"""
        return name in self._names

    def first_binding_after(self, moment: float) -> float | None:
        return next((at for at in self.bound_at if at > moment), None)
