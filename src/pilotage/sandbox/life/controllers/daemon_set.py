"""DaemonSets: a pod on every node that fits, placed there by the scheduler.

A node fits if the pod's node selector and required affinity select it and its taints are tolerated. The pod carries an
affinity for its one node, by name, and tolerations for nodes in trouble; the rest is the scheduler's. What to do next
is decided in `daemon_set_steps`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from pilotage.model.node import Taint
from pilotage.model.pod_spec import PodSpecFields, Toleration
from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.life.controllers.controller import (
    CHILD_DELAY,
    ControllerContext,
    Due,
    Interest,
    Object,
    itself,
    pause_after_batch,
)
from pilotage.sandbox.life.controllers.daemon_set_steps import DaemonSteps, DaemonView, Fit, next_daemon_steps
from pilotage.sandbox.life.controllers.int_or_percent import scaled_value
from pilotage.sandbox.life.controllers.pod_template import PodTemplate
from pilotage.sandbox.life.controllers.revisions import REVISION_HASH, RevisionHistory, Revisions, hash_of
from pilotage.sandbox.life.facts import NodeObjectFacts, ObjectFacts, PodFacts
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.storage.store import Key

DAEMON_SETS: Final = "daemonsets.apps"

_BATCH: Final = 250
"""More than other controllers create at a time, because all nodes are looked at for each batch."""
_GENERATION: Final = "pod-template-generation"
_DEPRECATED_GENERATION: Final = "deprecated.daemonset.template.generation"
_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


class DaemonSetController:
    name = "daemonset"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._history = RevisionHistory(context)

    def interests(self) -> Mapping[str, Interest]:
        return {DAEMON_SETS: itself, "pods": self._set_of_pod, "nodes": self._node_seen}

    def reconcile(self, key: Key) -> float | None:
        daemon_set = self._context.read(key)
        if daemon_set is None or "deletionTimestamp" in daemon_set["metadata"]:
            return None
        revisions = self._history.of(daemon_set)
        view, wait = self._view(daemon_set, revisions)
        steps = next_daemon_steps(view)
        try:
            self._act(daemon_set, revisions, steps)
        finally:
            self._update_status(key, daemon_set, revisions, view.fits)
        used = {pod.labels.get(REVISION_HASH, "") for pods in view.pods.values() for pod in pods}
        self._history.forget_old(daemon_set, revisions, used)
        left = max(len(steps.create), len(steps.delete)) - _BATCH
        return pause_after_batch(left) if left > 0 else wait

    def _set_of_pod(self, seen: ObservedChange) -> Iterable[Due]:
        owner = seen.facts.controller or (seen.old.controller if seen.old is not None else None)
        if owner is None or owner.kind != "DaemonSet":
            return ()
        return (Due(Key(DAEMON_SETS, seen.key.namespace, owner.name), CHILD_DELAY),)

    def _node_seen(self, seen: ObservedChange) -> Iterable[Due]:
        if _what_fits(seen.old) == _what_fits(seen.new):
            return ()
        return [Due(record.key, CHILD_DELAY) for record in self._context.api.store.list(DAEMON_SETS)]

    def _view(self, daemon_set: Object, revisions: Revisions) -> tuple[DaemonView, float | None]:
        """What is there, and in how many seconds the next pod counts as available by itself."""
        spec = daemon_set["spec"]
        fits = self._fits(daemon_set)
        pods = self._pods_by_node(daemon_set)
        strategy = spec.get("updateStrategy") or {}
        rolling = strategy.get("rollingUpdate") or {}
        wanted = sum(fit.should_run for fit in fits.values())
        current, patience = hash_of(revisions.current), spec.get("minReadySeconds") or 0
        everyone = [pod for group in pods.values() for pod in group]
        waits = [self._wait(pod, patience) for pod in everyone if pod.is_active and pod.is_ready] if patience else []
        view = DaemonView(
            fits,
            pods,
            is_new=lambda pod: pod.labels.get(REVISION_HASH) == current,
            is_available=lambda pod: pod.is_active and pod.is_ready and self._wait(pod, patience) <= 0,
            is_rolling=strategy.get("type") != "OnDelete",
            max_unavailable=scaled_value(_given(rolling.get("maxUnavailable"), 1), wanted, round_up=True),
            max_surge=scaled_value(_given(rolling.get("maxSurge"), 0), wanted, round_up=True),
        )
        return view, min((wait for wait in waits if wait > 0), default=None)

    def _wait(self, pod: PodFacts, patience: int) -> float:
        return self._context.seconds_until(pod.ready_since, patience) if patience else 0.0

    def _fits(self, daemon_set: Object) -> dict[str, Fit]:
        pod_spec = msgspec.convert(_pod_spec(daemon_set, ""), PodSpecFields)
        only = daemon_set["spec"]["template"]["spec"].get("nodeName")
        nodes = (node for node in self._context.index.nodes() if not node.is_deleting)
        return {node.key.name: fit_of(pod_spec, node) for node in nodes if not only or node.key.name == only}

    def _pods_by_node(self, daemon_set: Object) -> dict[str, list[PodFacts]]:
        found: dict[str, list[PodFacts]] = {}
        owned = self._context.index.owned_pods(daemon_set["metadata"]["uid"]).pods()
        for pod in sorted(owned, key=lambda pod: (not pod.node_name, pod.created, pod.key.name)):
            node = pod.node_name or pod.target_node
            if node:
                found.setdefault(node, []).append(pod)
        return found

    def _act(self, daemon_set: Object, revisions: Revisions, steps: DaemonSteps) -> None:
        for pod in steps.delete[:_BATCH]:
            self._context.delete(pod)
        digest = hash_of(revisions.current)
        generation = (daemon_set["metadata"].get("annotations") or {}).get(_DEPRECATED_GENERATION)
        labels = {REVISION_HASH: digest, _GENERATION: generation or str(daemon_set["metadata"].get("generation", 1))}
        rejection: ApiError | None = None
        for node in steps.create[:_BATCH]:
            template = {**daemon_set["spec"]["template"], "spec": _pod_spec(daemon_set, node)}
            made = PodTemplate({**daemon_set, "spec": {"template": template}}, labels=labels).make()
            try:
                self._context.create_pods(daemon_set, [made])
            except ApiError as error:  # the next node may be right
                rejection = error
        if rejection is not None:
            raise rejection

    def _update_status(self, key: Key, daemon_set: Object, revisions: Revisions, fits: Mapping[str, Fit]) -> None:
        current, patience = hash_of(revisions.current), daemon_set["spec"].get("minReadySeconds") or 0
        counts = dict.fromkeys(_COUNTS, 0)
        pods = self._pods_by_node(daemon_set)
        for node, fit in fits.items():
            mine = [pod for pod in pods.get(node, ()) if not pod.is_deleting]
            counts["desiredNumberScheduled"] += fit.should_run
            counts["currentNumberScheduled"] += fit.should_run and bool(mine)
            counts["numberMisscheduled"] += not fit.should_run and bool(mine)
            if fit.should_run and mine:
                ready = [pod for pod in mine if pod.is_ready]
                counts["numberReady"] += bool(ready)
                counts["numberAvailable"] += any(self._wait(pod, patience) <= 0 for pod in ready)
                counts["updatedNumberScheduled"] += any(pod.labels.get(REVISION_HASH) == current for pod in mine)
        counts["numberUnavailable"] = counts["desiredNumberScheduled"] - counts["numberAvailable"]
        before = daemon_set.get("status") or {}
        status: Object = {name: count for name, count in counts.items() if count or name in _ALWAYS_SHOWN}
        status["observedGeneration"] = daemon_set["metadata"].get("generation", 0)
        for kept in ("collisionCount", "conditions"):
            if before.get(kept):
                status[kept] = before[kept]
        if status != before:
            daemon_set["status"] = status
            self._context.write_status(key, daemon_set)


def _what_fits(node: ObjectFacts | None) -> object:
    """What of a node decides who runs on it."""
    return (node.labels, node.taints) if isinstance(node, NodeObjectFacts) else None


_ALWAYS_SHOWN: Final = ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady")
_COUNTS: Final = (*_ALWAYS_SHOWN, "numberAvailable", "numberUnavailable", "updatedNumberScheduled")


def fit_of(pod_spec: PodSpecFields, node: NodeObjectFacts) -> Fit:
    """Whether the node is one for pods of this spec, which holds the tolerations of daemon pods."""
    name, labels = node.key.name, node.labels
    if any(labels.get(key) != value for key, value in pod_spec.node_selector.items()):
        return Fit(False, False)
    affinity = pod_spec.affinity.node_affinity if pod_spec.affinity is not None else None
    if affinity is not None and affinity.required is not None and not affinity.required.matches(labels, name):
        return Fit(False, False)
    untolerated = {taint.effect for taint in node.taints if not _is_tolerated(pod_spec.tolerations, taint)}
    return Fit(not untolerated & {"NoSchedule", "NoExecute"}, "NoExecute" not in untolerated)


def _is_tolerated(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    return any(toleration.tolerates(taint) for toleration in tolerations)


def _pod_spec(daemon_set: Object, node: str) -> Object:
    """The pod's spec with the tolerations of daemon pods and, if a node is given, for that node alone."""
    spec: Object = dict(daemon_set["spec"]["template"].get("spec") or {})
    keys = [
        *_TOLERATED,
        *([("node.kubernetes.io/network-unavailable", "NoSchedule")] if spec.get("hostNetwork") else []),
    ]
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in keys]
    given = [one for one in spec.get("tolerations") or () if one not in added]
    spec["tolerations"] = [*given, *added]
    if node:
        spec["affinity"] = _bound_to(spec.get("affinity") or {}, node)
    return spec


def _bound_to(affinity: Object, node: str) -> Object:
    """The affinity with the node's name in the place of what selects nodes: that was judged before."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {
        **affinity,
        "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), required: {"nodeSelectorTerms": [by_name]}},
    }


def _given(value: int | str | None, default: int) -> int | str:
    return default if value is None else value
