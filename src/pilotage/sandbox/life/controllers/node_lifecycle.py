"""Nodes that fail: a kubelet that is heard no more, and the taints that say what is wrong with a node.

A node with the annotation `sandbox.pilotage.dev/stopped: "true"` plays dead: its heartbeats stop, pods neither start
nor end there. After a grace period its conditions become Unknown and its pods unready. Without the annotation it is
back.

    Ready False or Unknown     node.kubernetes.io/not-ready, node.kubernetes.io/unreachable: NoSchedule and NoExecute
    memory, disk, PID pressure, network unavailable, cordoned: NoSchedule

Which conditions hold is the kubelet's or the user's to say; the taints of other keys are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pilotage.sandbox.life.controllers.conditions import find_condition, has_condition, set_condition
from pilotage.sandbox.life.controllers.controller import ControllerContext, Due, Interest, Object
from pilotage.sandbox.life.facts import NodeObjectFacts, PodFacts
from pilotage.sandbox.life.kubelet import KubeletSettings
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.storage.store import Key

_PREFIX: Final = "node.kubernetes.io/"
_PRESSURES: Final = {
    "MemoryPressure": "memory-pressure",
    "DiskPressure": "disk-pressure",
    "PIDPressure": "pid-pressure",
    "NetworkUnavailable": "network-unavailable",
}
_OWN: Final = frozenset(_PREFIX + name for name in ("not-ready", "unreachable", "unschedulable", *_PRESSURES.values()))
_SILENT: Final = "NodeStatusUnknown"
_WHY_SILENT: Final = "Kubelet stopped posting node status."
_HEALTHY: Final = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "simulated kubelet is posting ready status"),
}


class NodeLifecycleController:
    name = "node-lifecycle"

    def __init__(self, context: ControllerContext, settings: KubeletSettings) -> None:
        self._context = context
        self._settings = settings
        self._silent_since: dict[str, float] = {}

    def interests(self) -> Mapping[str, Interest]:
        return {"nodes": self._node_seen}

    def reconcile(self, key: Key) -> float | None:
        facts = self._context.index.node(key.name)
        node = self._context.read(key)
        if facts is None or node is None or facts.is_deleting:
            return None
        wait = self._hear(facts, node)
        wanted = wanted_taints(node)
        if _own_taints(node) != _pairs(wanted):
            self._write_taints(key, node, wanted)
        if not has_condition(node.get("status") or {}, "Ready"):
            self._mark_pods_unready(key.name)
        return wait

    def _node_seen(self, seen: ObservedChange) -> Iterable[Due]:
        new, old = seen.new, seen.old
        if not isinstance(new, NodeObjectFacts):
            self._silent_since.pop(seen.key.name, None)
            return ()
        if isinstance(old, NodeObjectFacts) and _state(old) == _state(new):
            return ()
        is_healthy = new.readiness in ("True", "") and not new.is_stopped and not new.has_pressure
        if old is None and is_healthy and not new.is_unschedulable and not new.taints:
            return ()  # most nodes, most of the time
        return (Due(new.key),)

    def _hear(self, facts: NodeObjectFacts, node: Object) -> float | None:
        """Write what is known about a node that is silent or heard again; how long its silence is still excused."""
        status = node.setdefault("status", {})
        ready = find_condition(status, "Ready") or {}
        name, now = facts.key.name, self._context.timestamp()
        if not facts.is_stopped:
            self._silent_since.pop(name, None)
            if ready.get("reason") == _SILENT:
                for kind, (truth, reason, message) in _HEALTHY.items():
                    set_condition(status, kind, truth, now, reason=reason, message=message)
                self._write_status(facts.key, node)
            return None
        clock = self._context.clock
        since = self._silent_since.setdefault(name, clock.monotonic())
        wait = since + self._settings.silent_node_seconds - clock.monotonic()
        if wait > 0:
            return wait
        if ready.get("reason") != _SILENT:
            for kind in _HEALTHY:
                set_condition(status, kind, "Unknown", now, reason=_SILENT, message=_WHY_SILENT)
            self._write_status(facts.key, node)
        return None

    def _write_status(self, key: Key, node: Object) -> None:
        self._context.write_status(key, node)
        written = self._context.read(key)
        if written is not None:
            node.clear()
            node.update(written)

    def _write_taints(self, key: Key, node: Object, wanted: list[Object]) -> None:
        spec = node.setdefault("spec", {})
        known = {(one["key"], one["effect"]): one for one in spec.get("taints") or ()}
        others = [one for one in spec.get("taints") or () if one["key"] not in _OWN]
        spec["taints"] = [*others, *(known.get((one["key"], one["effect"]), one) for one in wanted)]
        for taint in spec["taints"]:
            if taint["effect"] == "NoExecute" and taint["key"] in _OWN:
                taint.setdefault("timeAdded", self._context.timestamp())
        if not spec["taints"]:
            del spec["taints"]
        self._context.write(key, node)

    def _mark_pods_unready(self, node_name: str) -> None:
        """Their kubelet cannot say any more that they are ready."""
        for key in self._context.index.pods_on(node_name):
            pod = self._context.index.pod(key)
            if isinstance(pod, PodFacts) and pod.is_ready:
                obj = self._context.outline(key)
                if obj is not None:
                    set_condition(obj["status"], "Ready", "False", self._context.timestamp())
                    self._context.write_status(key, obj)


def wanted_taints(node: Object) -> list[Object]:
    """The taints that say what is wrong with the node."""
    status, spec = node.get("status") or {}, node.get("spec") or {}
    ready = (find_condition(status, "Ready") or {}).get("status", "True")
    names = [name for kind, name in _PRESSURES.items() if has_condition(status, kind)]
    names += ["unschedulable"] if spec.get("unschedulable") else []
    failure = {"False": "not-ready", "Unknown": "unreachable"}.get(ready)
    taints = [{"key": _PREFIX + name, "effect": "NoSchedule"} for name in names]
    if failure is not None:
        taints += [{"key": _PREFIX + failure, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
    return taints


def _own_taints(node: Object) -> set[tuple[str, str]]:
    return _pairs(one for one in (node.get("spec") or {}).get("taints") or () if one["key"] in _OWN)


def _pairs(taints: Iterable[Object]) -> set[tuple[str, str]]:
    return {(one["key"], one["effect"]) for one in taints}


def _state(node: NodeObjectFacts) -> tuple[object, ...]:
    return node.readiness, node.is_stopped, node.is_unschedulable, node.has_pressure, node.taints
