"""Pods whose node is gone: no kubelet runs them any more, so after a short while they are removed.

The wait gives a node that is deleted and made anew the chance to keep its pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pilotage.sandbox.life import pod_status
from pilotage.sandbox.life.controllers.conditions import set_condition
from pilotage.sandbox.life.controllers.controller import ControllerContext, Due, Interest
from pilotage.sandbox.life.facts import PodFacts
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.storage.store import Key

_LOST: Final = 137


class PodGarbageCollector:
    name = "pod-gc"

    def __init__(self, context: ControllerContext, lost_node_seconds: float) -> None:
        self._context = context
        self._seconds = lost_node_seconds
        self._lost_at: dict[str, float] = {}

    def interests(self) -> Mapping[str, Interest]:
        return {"pods": self._pod_seen, "nodes": self._node_seen}

    def reconcile(self, key: Key) -> float | None:
        pod = self._context.index.pod(key)
        if pod is None or not pod.node_name or self._context.index.node(pod.node_name) is not None:
            return None
        wait = self._remaining(pod.node_name)
        if wait > 0:
            return wait
        if pod.finalizers and not pod.is_finished:
            self._record_end(pod)
        self._context.delete(pod, gracePeriodSeconds=0)
        if not self._context.index.pods_on(pod.node_name):
            self._lost_at.pop(pod.node_name, None)
        return None

    def _node_seen(self, seen: ObservedChange) -> Iterable[Due]:
        name = seen.key.name
        if seen.new is not None:
            self._lost_at.pop(name, None)
            return ()
        pods = self._context.index.pods_on(name)
        if pods:
            self._lost_at[name] = self._context.clock.monotonic()
        return [Due(key, self._seconds) for key in pods]

    def _pod_seen(self, seen: ObservedChange) -> Iterable[Due]:
        pod = seen.new
        if not isinstance(pod, PodFacts) or not pod.node_name or self._context.index.node(pod.node_name) is not None:
            return ()
        is_known = isinstance(seen.old, PodFacts) and seen.old.node_name == pod.node_name
        return () if is_known else (Due(pod.key, self._remaining(pod.node_name)),)

    def _remaining(self, node_name: str) -> float:
        now = self._context.clock.monotonic()
        return self._lost_at.setdefault(node_name, now) + self._seconds - now

    def _record_end(self, pod: PodFacts) -> None:
        """Write how the pod ended: a client holds it by a finalizer and wants to know."""
        obj = self._context.read(pod.key)
        if obj is None:
            return
        now = self._context.timestamp()
        pod_status.kill(obj, pod_status.Transition(now), _LOST)
        message = "PodGC: node no longer exists"
        set_condition(obj["status"], "DisruptionTarget", "True", now, reason="DeletionByPodGC", message=message)
        self._context.write_status(pod.key, obj)
