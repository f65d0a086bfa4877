"""NoExecute taints: pods that do not tolerate them go, others when the time that they tolerate them is over.

A pod goes with the condition DisruptionTarget, which says why. Time counts from when the taint was added, as it says
itself, or else from when it was seen first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from pilotage.clock import parse_rfc3339
from pilotage.model.node import Taint
from pilotage.model.pod_spec import Toleration
from pilotage.sandbox.life.controllers.conditions import set_condition
from pilotage.sandbox.life.controllers.controller import ControllerContext, Due, Interest
from pilotage.sandbox.life.facts import NodeObjectFacts, PodFacts
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.storage.store import Key

_NO_EXECUTE: Final = "NoExecute"
_MESSAGE: Final = "Taint manager: deleting due to NoExecute taint"


class TaintEvictionController:
    name = "taint-eviction"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._seen_at: dict[str, dict[tuple[str, str], float]] = {}
        """By node, when each of its NoExecute taints was seen first."""

    def interests(self) -> Mapping[str, Interest]:
        return {"nodes": self._node_seen, "pods": self._pod_seen}

    def reconcile(self, key: Key) -> float | None:
        pod = self._context.index.pod(key)
        node = self._context.index.node(pod.node_name) if pod is not None else None
        taints = _evicting(node) if node is not None else []
        if pod is None or not taints or not pod.is_active:
            return None
        obj = self._context.read(key)
        if obj is None:
            return None
        tolerations = msgspec.convert(obj["spec"].get("tolerations") or [], list[Toleration])
        wait = self._wait(pod.node_name, taints, tolerations)
        if wait is None or wait > 0:
            return wait
        status, now = obj.setdefault("status", {}), self._context.timestamp()
        set_condition(status, "DisruptionTarget", "True", now, reason="DeletionByTaintManager", message=_MESSAGE)
        self._context.write_status(key, obj)
        self._context.delete(pod)
        return None

    def _node_seen(self, seen: ObservedChange) -> Iterable[Due]:
        node = seen.new
        if not isinstance(node, NodeObjectFacts):
            self._seen_at.pop(seen.key.name, None)
            return ()
        taints = _evicting(node)
        if not taints:
            self._seen_at.pop(seen.key.name, None)
            return ()
        if isinstance(seen.old, NodeObjectFacts) and seen.old.taints == node.taints:
            return ()
        known, now = self._seen_at.get(seen.key.name, {}), self._context.clock.monotonic()
        self._seen_at[seen.key.name] = {(t.key, t.value): known.get((t.key, t.value), now) for t in taints}
        return [Due(key) for key in self._context.index.pods_on(seen.key.name)]

    def _pod_seen(self, seen: ObservedChange) -> Iterable[Due]:
        pod = seen.new
        if not self._seen_at or not isinstance(pod, PodFacts) or pod.node_name not in self._seen_at:
            return ()
        is_known = isinstance(seen.old, PodFacts) and seen.old.node_name == pod.node_name and pod.is_observed
        return () if is_known else (Due(pod.key),)

    def _wait(self, node: str, taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> float | None:
        """In how many seconds the pod goes; None: it may stay."""
        waits: list[float] = []
        for taint in taints:
            matching = [one for one in tolerations if one.tolerates(taint)]
            if not matching:
                return 0.0
            limits = [one.toleration_seconds for one in matching if one.toleration_seconds is not None]
            if limits:
                waits.append(self._since(node, taint) + max(min(limits), 0) - self._context.clock.time())
        return min(waits, default=None)

    def _since(self, node: str, taint: Taint) -> float:
        if taint.time_added:
            return parse_rfc3339(taint.time_added)
        clock = self._context.clock
        seen_at = self._seen_at.get(node, {}).get((taint.key, taint.value), clock.monotonic())
        return clock.time() - (clock.monotonic() - seen_at)


def _evicting(node: NodeObjectFacts) -> list[Taint]:
    return [taint for taint in node.taints if taint.effect == _NO_EXECUTE]
