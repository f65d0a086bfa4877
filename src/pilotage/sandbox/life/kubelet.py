"""Simulated kubelets: pods on simulated nodes start, become ready, exit, restart and terminate as time passes.

One object plays the kubelets of all nodes with the annotation `sandbox.pilotage.dev/simulated: "true"`. What a pod
does is said by its annotations (see `pod_plan`) and, where they are silent, by `KubeletSettings`.

    bound -> [start delay] -> Running, ready -> [run time] -> Succeeded | Failed | CrashLoopBackOff
    CrashLoopBackOff -> [back-off] -> Running
    deletionTimestamp -> [min(grace, stop delay)] -> removed

Each transition is one status write. A pod is in care (`_Care`: the times that are set for it) only while something is
to happen to it; a hundred thousand pods that just run cost nothing. Timers are rounded up to whole ticks, so that pods
bound at about the same time are started together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pilotage.clock import parse_rfc3339
from pilotage.sandbox.life import pod_status
from pilotage.sandbox.life.controllers.controller import ControllerContext, Due, Interest, Object
from pilotage.sandbox.life.facts import NO_ANNOTATIONS, NodeObjectFacts, PodFacts
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.life.pod_plan import PlanError, PodPlan, read_plan
from pilotage.sandbox.storage.store import Key

_TICK_SECONDS: Final = 0.01
_FIRST_BACKOFF_SECONDS: Final = 10.0
_LONGEST_BACKOFF_SECONDS: Final = 300.0
_KILLED: Final = 137


@dataclass(frozen=True, slots=True)
class KubeletSettings:
    """How simulated kubelets behave where a pod's annotations do not say."""

    start_seconds: float = 1.0
    start_jitter_seconds: float = 0.5
    stop_seconds: float = 0.5
    job_run_seconds: float | None = 10.0
    """How long pods of a Job run; None: until deleted."""
    manages_all_nodes: bool = False
    """Also play the kubelet of nodes without the annotation."""
    lease_seconds: float | None = None
    """Renew a Lease per node this often; None (best for thousands of nodes): no leases."""
    lost_node_seconds: float = 5.0
    """How long after the deletion of a node its pods are removed."""


@dataclass(slots=True)
class _Care:
    """The times (on the monotonic clock) that are set for one pod."""

    start_at: float | None = None
    started_at: float | None = None
    restart_at: float | None = None
    stop_at: float | None = None


class Kubelet:
    """The kubelets of all simulated nodes."""

    name = "kubelet"

    def __init__(self, context: ControllerContext, settings: KubeletSettings) -> None:
        self._context = context
        self._settings = settings
        self._cares: dict[str, _Care] = {}

    @property
    def pods_in_care(self) -> int:
        """To how many pods something is still to happen."""
        return len(self._cares)

    def interests(self) -> Mapping[str, Interest]:
        return {"pods": self._pod_seen, "nodes": self._node_seen}

    def reconcile(self, key: Key) -> float | None:
        pod = self._context.index.pod(key)
        if pod is None or not self._is_mine(pod):
            return None
        if pod.is_deleting:
            return self._stop(pod)
        if pod.is_finished:
            return None
        try:
            plan = read_plan(pod.annotations)
        except PlanError as error:
            return self._refuse(pod, str(error))
        if pod.phase == "Running":
            return self._go_on(pod, plan)
        return self._start(pod, plan)

    def _pod_seen(self, seen: ObservedChange) -> Iterable[Due]:
        pod = seen.new
        if not isinstance(pod, PodFacts):
            self._cares.pop(seen.facts.uid, None)
            return ()
        if not pod.node_name or not self._is_mine(pod):
            return ()
        if pod.is_deleting:
            return self._care_for_stop(pod)
        if pod.is_finished:
            self._cares.pop(pod.uid, None)
            return ()
        if pod.uid not in self._cares:
            return self._take_into_care(pod)
        if isinstance(seen.old, PodFacts) and seen.old.annotations != pod.annotations:
            return (Due(pod.key),)
        return ()

    def _node_seen(self, seen: ObservedChange) -> Iterable[Due]:
        """A node that is simulated from now on takes in the pods that are on it already."""
        if not isinstance(seen.new, NodeObjectFacts) or not self._simulates(seen.new):
            return ()
        if isinstance(seen.old, NodeObjectFacts) and self._simulates(seen.old):
            return ()
        pods = [pod for key in self._context.index.pods_on(seen.new.key.name) if (pod := self._context.index.pod(key))]
        return [due for pod in pods for due in self._pod_seen(ObservedChange(None, pod, pod))]

    def _simulates(self, node: NodeObjectFacts) -> bool:
        return self._settings.manages_all_nodes if node.is_simulated is None else node.is_simulated

    def _is_mine(self, pod: PodFacts) -> bool:
        node = self._context.index.node(pod.node_name)
        return node is not None and self._simulates(node)

    def _take_into_care(self, pod: PodFacts) -> Iterable[Due]:
        has_plan = pod.annotations is not NO_ANNOTATIONS or self._run_seconds(pod, PodPlan()) is not None
        if pod.phase == "Running" and pod.is_ready and not has_plan:
            return ()
        care = self._cares[pod.uid] = _Care()
        if pod.phase == "Running":
            return (Due(pod.key),)
        care.start_at = self._in_whole_ticks(self._start_delay(pod))
        return (Due(pod.key, care.start_at - self._context.clock.monotonic()),)

    def _care_for_stop(self, pod: PodFacts) -> Iterable[Due]:
        care = self._cares.setdefault(pod.uid, _Care())
        delay = min(float(pod.grace_seconds), self._settings.stop_seconds)
        stop_at = self._in_whole_ticks(0.0 if pod.is_finished else delay)
        care.stop_at = stop_at if care.stop_at is None else min(stop_at, care.stop_at)
        return (Due(pod.key, care.stop_at - self._context.clock.monotonic()),)

    def _start_delay(self, pod: PodFacts) -> float:
        try:
            asked = read_plan(pod.annotations).start_delay
        except PlanError:
            asked = 0.0
        if asked is not None:
            return asked
        return self._settings.start_seconds + self._context.rng.uniform(0.0, self._settings.start_jitter_seconds)

    def _in_whole_ticks(self, delay: float) -> float:
        return math.ceil((self._context.clock.monotonic() + delay) / _TICK_SECONDS) * _TICK_SECONDS

    def _run_seconds(self, pod: PodFacts, plan: PodPlan) -> float | None:
        if plan.run_for is not None:
            return plan.run_for
        owner = pod.controller
        return self._settings.job_run_seconds if owner is not None and owner.kind == "Job" else None

    def _start(self, pod: PodFacts, plan: PodPlan) -> float | None:
        care = self._cares.setdefault(pod.uid, _Care())
        now = self._context.clock.monotonic()
        if care.start_at is not None and now < care.start_at:
            return care.start_at - now
        obj = self._context.read(pod.key)
        if obj is None:
            return None
        run_seconds = self._run_seconds(pod, plan)
        if run_seconds == 0:
            return self._exit(pod, obj, plan)
        care.started_at = now
        is_ready = not plan.is_never_ready and plan.ready_after == 0
        pod_status.start(obj, self._transition(pod), is_ready=is_ready)
        self._context.write_status(pod.key, obj)
        again = self._next_event(care, plan, run_seconds, is_ready)
        if again is None and pod.annotations is NO_ANNOTATIONS:
            self._cares.pop(pod.uid, None)
        return again

    def _go_on(self, pod: PodFacts, plan: PodPlan) -> float | None:
        obj = self._context.read(pod.key)
        if obj is None:
            return None
        care = self._cares.setdefault(pod.uid, _Care())
        state = pod_status.first_state(obj)
        if "running" not in state:
            return self._restart(pod, obj, plan, care)
        now, run_seconds = self._context.clock.monotonic(), self._run_seconds(pod, plan)
        if care.started_at is None:
            care.started_at = self._monotonic(state["running"].get("startedAt"))
        if run_seconds is not None and now >= care.started_at + run_seconds:
            return self._exit(pod, obj, plan)
        is_ready = pod.is_ready
        if not is_ready and not plan.is_never_ready and now >= care.started_at + plan.ready_after:
            is_ready = True
            pod_status.become_ready(obj, self._context.timestamp())
            self._context.write_status(pod.key, obj)
        return self._next_event(care, plan, run_seconds, is_ready)

    def _next_event(self, care: _Care, plan: PodPlan, run_seconds: float | None, is_ready: bool) -> float | None:
        times = [] if run_seconds is None else [run_seconds]
        if not is_ready and not plan.is_never_ready:
            times.append(plan.ready_after)
        if not times or care.started_at is None:
            return None
        return care.started_at + min(times) - self._context.clock.monotonic()

    def _exit(self, pod: PodFacts, obj: Object, plan: PodPlan) -> float | None:
        restarts = pod.restart_policy == "Always" or (pod.restart_policy == "OnFailure" and plan.exit_code != 0)
        if not restarts:
            pod_status.finish(obj, self._transition(pod), plan.exit_code)
            self._context.write_status(pod.key, obj)
            return None
        doublings = min(pod_status.restart_count(obj), 10)
        backoff = min(_FIRST_BACKOFF_SECONDS * 2.0**doublings, _LONGEST_BACKOFF_SECONDS)
        pod_status.crash(obj, self._transition(pod), plan.exit_code, backoff)
        care = self._cares.setdefault(pod.uid, _Care())
        care.restart_at = self._context.clock.monotonic() + backoff
        self._context.write_status(pod.key, obj)
        return backoff

    def _restart(self, pod: PodFacts, obj: Object, plan: PodPlan, care: _Care) -> float | None:
        now = self._context.clock.monotonic()
        if care.restart_at is not None and now < care.restart_at:
            return care.restart_at - now
        if self._run_seconds(pod, plan) == 0:
            return self._exit(pod, obj, plan)
        care.restart_at, care.started_at = None, now
        is_ready = not plan.is_never_ready and plan.ready_after == 0
        pod_status.start(obj, self._transition(pod), is_ready=is_ready)
        self._context.write_status(pod.key, obj)
        return self._next_event(care, plan, self._run_seconds(pod, plan), is_ready)

    def _refuse(self, pod: PodFacts, message: str) -> float | None:
        obj = self._context.read(pod.key)
        if obj is not None and pod.phase != "Running" and pod_status.refuse(obj, self._transition(pod), message):
            self._context.write_status(pod.key, obj)
        return None

    def _stop(self, pod: PodFacts) -> float | None:
        care = self._cares.setdefault(pod.uid, _Care())
        now = self._context.clock.monotonic()
        if care.stop_at is not None and now < care.stop_at:
            return care.stop_at - now
        if pod.finalizers and not pod.is_finished:
            self._tell_end(pod)
        self._context.delete(pod, gracePeriodSeconds=0)
        return None

    def _tell_end(self, pod: PodFacts) -> None:
        """Somebody holds the pod by a finalizer and wants to know how it ended."""
        obj = self._context.read(pod.key)
        if obj is not None:
            pod_status.finish(obj, self._transition(pod), _KILLED)
            self._context.write_status(pod.key, obj)

    def _transition(self, pod: PodFacts) -> pod_status.Transition:
        node = self._context.index.node(pod.node_name)
        # The revision of the write is unique, so the address is too (for sixteen million writes), even after a restart.
        number = (self._context.api.store.revision + 1) % 0xFFFFFE + 1
        address = f"10.{number >> 16}.{number >> 8 & 0xFF}.{number & 0xFF}"
        return pod_status.Transition(self._context.timestamp(), address, node.address if node is not None else "")

    def _monotonic(self, timestamp: str | None) -> float:
        """The monotonic time of a timestamp in a status: all that is known after a restart of the sandbox."""
        if timestamp is None:
            return self._context.clock.monotonic()
        return self._context.clock.monotonic() - (self._context.clock.time() - parse_rfc3339(timestamp))
