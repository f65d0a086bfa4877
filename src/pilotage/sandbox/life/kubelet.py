"""Simulated kubelets: pods on simulated nodes start, become ready, exit, restart and terminate as time passes.

One object plays the kubelets of all nodes with the annotation `sandbox.pilotage.dev/simulated: "true"`. What a pod
does is said by its annotations (see `pod_plan`), the rules of a file (`pod_rules`), the commands of its containers
(`programs`) and, where all are silent, by `KubeletSettings`.

    bound -> [start delay] -> `PodRun`: init containers, containers, exits, restarts -> Succeeded | Failed
    deletionTimestamp -> [min(grace, stop delay)] -> removed

Each transition is one status write. A pod is in care (`_Care`: the times that are set for it) only while something is
to happen to it; a hundred thousand pods that just run cost nothing. Timers are rounded up to whole ticks, so that pods
bound at about the same time are started together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from pilotage.clock import parse_rfc3339
from pilotage.sandbox.life import pod_status
from pilotage.sandbox.life.container_env import container_env
from pilotage.sandbox.life.controllers.controller import (
    ControllerContext,
    Due,
    Interest,
    Object,
    record_event,
)
from pilotage.sandbox.life.facts import NO_ANNOTATIONS, NodeObjectFacts, PodAnnotations, PodFacts
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.life.pod_plan import PlanError, PodPlan, read_plan
from pilotage.sandbox.life.pod_rules import PodRule, asked_of
from pilotage.sandbox.life.pod_run import ContainerPlan, PodMoment, PodRun, PodRunTimes
from pilotage.sandbox.life.probes import probed
from pilotage.sandbox.life.programs import FOREVER, ProgramOutcome, outcome_of
from pilotage.sandbox.storage.store import Key

_TICK_SECONDS: Final = 0.01
_KILLED: Final = 137
_NO_PORTS: Final = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
_ANY_ADDRESS: Final = ("", "0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class KubeletSettings:
    """How simulated kubelets behave where a pod's annotations do not say."""

    start_seconds: float = 1.0
    start_jitter_seconds: float = 0.5
    stop_seconds: float = 0.5
    job_run_seconds: float | None = 10.0
    """How long pods of a Job run; None: until deleted."""
    never_run_seconds: float | None = 10.0
    """How long other pods with restartPolicy Never run, which are to end some time; None: until deleted."""
    rules: Sequence[PodRule] = ()
    """What pods do whose annotations do not say."""
    manages_all_nodes: bool = False
    """Also play the kubelet of nodes without the annotation."""
    silent_node_seconds: float = 40.0
    """How long after a node has stopped it is known to be unreachable."""
    lost_node_seconds: float = 5.0
    """How long after the deletion of a node its pods are removed."""

    def plays(self, node: NodeObjectFacts) -> bool:
        """Whether this node is simulated and does not play dead."""
        is_simulated = self.manages_all_nodes if node.is_simulated is None else node.is_simulated
        return is_simulated and not node.is_stopped


@dataclass(slots=True)
class _Care:
    """The times (on the monotonic clock) that are set for one pod."""

    start_at: float | None = None
    stop_at: float | None = None
    times: PodRunTimes = field(default_factory=PodRunTimes)


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
            plan = read_plan(self._asked(pod))
        except PlanError as error:
            return self._reject(pod, str(error))
        return self._advance(pod, plan)

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
        return () if pod.is_observed or pod.phase != "Running" else (Due(pod.key),)

    def _node_seen(self, seen: ObservedChange) -> Iterable[Due]:
        """A node that is simulated from now on takes in the pods that are on it already."""
        if not isinstance(seen.new, NodeObjectFacts) or not self._settings.plays(seen.new):
            return ()
        if isinstance(seen.old, NodeObjectFacts) and self._settings.plays(seen.old):
            return ()
        pods = [pod for key in self._context.index.pods_on(seen.new.key.name) if (pod := self._context.index.pod(key))]
        return [due for pod in pods for due in self._pod_seen(ObservedChange(None, pod, pod))]

    def _is_mine(self, pod: PodFacts) -> bool:
        node = self._context.index.node(pod.node_name)
        return node is not None and self._settings.plays(node)

    def _take_into_care(self, pod: PodFacts) -> Iterable[Due]:
        if pod.phase == "Running" and pod.is_ready and pod.is_observed and not self._has_plan(pod):
            return ()
        care = self._cares[pod.uid] = _Care()
        if pod.phase == "Running" or pod.ip:
            return (Due(pod.key),)
        care.start_at = self._in_whole_ticks(self._start_delay(pod))
        return (Due(pod.key, care.start_at - self._context.clock.monotonic()),)

    def _has_plan(self, pod: PodFacts) -> bool:
        """Whether something may still happen to a pod that runs and is ready."""
        asked = self._asked(pod)
        return asked is not NO_ANNOTATIONS or pod.has_deadline or pod.has_command or self._default_run(pod) is not None

    def _asked(self, pod: PodFacts) -> PodAnnotations:
        """What the annotations ask for and, where they are silent, the rules."""
        return asked_of(self._settings.rules, pod)

    def _care_for_stop(self, pod: PodFacts) -> Iterable[Due]:
        care = self._cares.setdefault(pod.uid, _Care())
        delay = min(float(pod.grace_seconds), self._settings.stop_seconds)
        stop_at = self._in_whole_ticks(0.0 if pod.is_finished else delay)
        care.stop_at = stop_at if care.stop_at is None else min(stop_at, care.stop_at)
        return (Due(pod.key, care.stop_at - self._context.clock.monotonic()),)

    def _start_delay(self, pod: PodFacts) -> float:
        try:
            asked = read_plan(self._asked(pod)).start_delay
        except PlanError:
            asked = 0.0
        if asked is not None:
            return asked
        return self._settings.start_seconds + self._context.rng.uniform(0.0, self._settings.start_jitter_seconds)

    def _in_whole_ticks(self, delay: float) -> float:
        return math.ceil((self._context.clock.monotonic() + delay) / _TICK_SECONDS) * _TICK_SECONDS

    def _default_run(self, pod: PodFacts) -> float | None:
        """How long the pod runs if nothing says so."""
        owner = pod.controller
        if owner is not None and owner.kind == "Job":
            return self._settings.job_run_seconds
        return self._settings.never_run_seconds if pod.restart_policy == "Never" else None

    def _advance(self, pod: PodFacts, plan: PodPlan) -> float | None:
        care = self._cares.setdefault(pod.uid, _Care())
        now = self._context.clock.monotonic()
        if care.start_at is not None and now < care.start_at:
            return care.start_at - now
        obj = self._context.read(pod.key)
        if obj is None:
            return None
        before = msgspec.json.encode(obj.get("status"))
        if not (obj.get("status") or {}).get("startTime"):
            care.times.admitted_at = now
            if self._lacks_ports(pod, obj):
                pod_status.refuse(obj, self._transition(pod), "NodePorts", _NO_PORTS)
                self._context.write_status(pod.key, obj)
                return None
        moment = PodMoment(now, self._transition(pod), self._monotonic)

        def plan_of(kind: str, container: Object) -> ContainerPlan:
            outcome = outcome_of(container, container_env(obj, container, self._context.api))
            return self._container_plan(pod, plan, kind, container, outcome)

        run = PodRun(obj, care.times, moment, plan_of)
        run.advance()
        if msgspec.json.encode(obj["status"]) != before:
            self._context.write_status(pod.key, obj)
        for name, probe in run.killed:
            self._record_kill(obj, name, probe)
        if run.due is not None:
            return max(run.due - now, 0.0)
        if obj["status"].get("phase") == "Running" and not self._has_plan(pod):
            self._cares.pop(pod.uid, None)
        return None

    def _record_kill(self, obj: Object, name: str, probe: str) -> None:
        record_event(self._context, obj, "Warning", "Unhealthy", f"{probe.capitalize()} probe failed: it is simulated")
        message = f"Container {name} failed {probe} probe, will be restarted"
        record_event(self._context, obj, "Normal", "Killing", message)

    def _lacks_ports(self, pod: PodFacts, obj: Object) -> bool:
        """Whether a port of the node that the pod wants is that of a pod which is there already."""
        wanted = _host_ports(obj)
        if not wanted:
            return False
        for key in self._context.index.pods_on(pod.node_name):
            other = self._context.index.pod(key)
            if other is None or other.uid == pod.uid or other.is_finished:
                continue
            found = self._context.read(key) or {}
            if (found.get("status") or {}).get("startTime") and any(
                _same_port(one, taken) for one in wanted for taken in _host_ports(found)
            ):
                return True
        return False

    def _container_plan(
        self, pod: PodFacts, plan: PodPlan, kind: str, container: Object, outcome: ProgramOutcome | None
    ) -> ContainerPlan:
        """Annotations first, then what the command does, then the settings."""
        found = probed(container, plan)
        if kind == "main" and plan.run_for is not None:
            return ContainerPlan(plan.run_for, plan.exit_code, found)
        if outcome is not None:
            seconds = None if outcome.seconds == FOREVER else outcome.seconds
            code = plan.exit_code if kind == "main" and plan.exit_code else outcome.exit_code
            return ContainerPlan(seconds, code, found, outcome.termination_message(container))
        if kind == "init":
            return ContainerPlan(0.0)
        if kind == "main":
            return ContainerPlan(self._default_run(pod), plan.exit_code, found)
        return ContainerPlan(probed=found)

    def _reject(self, pod: PodFacts, message: str) -> float | None:
        obj = self._context.read(pod.key)
        if obj is not None and pod.phase != "Running" and pod_status.reject(obj, self._transition(pod), message):
            self._context.write_status(pod.key, obj)
        return None

    def _stop(self, pod: PodFacts) -> float | None:
        care = self._cares.setdefault(pod.uid, _Care())
        now = self._context.clock.monotonic()
        if care.stop_at is not None and now < care.stop_at:
            return care.stop_at - now
        if pod.finalizers and not pod.is_finished:
            self._record_end(pod)
        self._context.delete(pod, gracePeriodSeconds=0)
        return None

    def _record_end(self, pod: PodFacts) -> None:
        """Write how the pod ended: a client holds it by a finalizer and wants to know."""
        obj = self._context.read(pod.key)
        if obj is not None:
            pod_status.kill(obj, self._transition(pod), _KILLED)
            self._context.write_status(pod.key, obj)

    def _transition(self, pod: PodFacts) -> pod_status.Transition:
        node = self._context.index.node(pod.node_name)
        # The revision of the write is unique, so the address is too (for sixteen million writes), even after a restart.
        number = (self._context.api.store.revision + 1) % 0xFFFFFE + 1
        address = f"10.{number >> 16}.{number >> 8 & 0xFF}.{number & 0xFF}"
        return pod_status.Transition(self._context.timestamp(), address, node.address if node is not None else "")

    def _monotonic(self, timestamp: str) -> float:
        """The monotonic time of a timestamp in a status: all that is known after a restart of the sandbox."""
        return self._context.clock.monotonic() - (self._context.clock.time() - parse_rfc3339(timestamp))


def _host_ports(pod: Object) -> list[tuple[str, str, int]]:
    """The ports of its node that the pod wants: address, protocol, number."""
    containers = (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"])
    ports = (port for container in containers for port in container.get("ports") or ())
    return [(p.get("hostIP") or "", p.get("protocol") or "TCP", p["hostPort"]) for p in ports if p.get("hostPort")]


def _same_port(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    is_same_address = one[0] == other[0] or one[0] in _ANY_ADDRESS or other[0] in _ANY_ADDRESS
    return is_same_address and one[1:] == other[1:]
