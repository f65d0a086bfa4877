"""How victims of preemption go, and what else a preemption takes away: promises made to less important pods.

    waiting for permission, in PreBind   called back in memory: nothing was sent to the API server yet
    everything else                      condition and deletion, through the API server

Results go through the inbox, so that they take effect between two cycles. Without the gate SchedulerAsyncPreemption the
loop waits for them (`under_way`) before the preemptor goes back to the queue.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from pilotage.api.calls import Outcome, Why
from pilotage.api.conditions import PodCondition
from pilotage.api.preemption import Evicted, Eviction, OnEvicted
from pilotage.calls.dispatcher import Dispatcher
from pilotage.calls.recorder import EventRecorder
from pilotage.calls.victim_eviction import VictimEviction
from pilotage.clock import Clock, rfc3339
from pilotage.cluster.nominations import Nominations
from pilotage.cycle.cluster_writes import ClusterWrites
from pilotage.cycle.failure import OnPromiseGone
from pilotage.cycle.inbox import Inbox
from pilotage.cycle.pre_bind import PodsInPreBind
from pilotage.framework.waiting_pods import WaitingPods
from pilotage.model import Pod

log = logging.getLogger(__name__)

_IN_MEMORY = " (in kube-scheduler memory)."


@dataclass(frozen=True, slots=True)
class EvictorParts:
    """What evictions need of the scheduler."""

    dispatcher: Dispatcher
    writes: ClusterWrites
    recorder: EventRecorder
    inbox: Inbox
    waiting_pods: WaitingPods
    nominations: Nominations
    clock: Clock
    on_promise_gone: OnPromiseGone


class Evictor:
    """Carries out what preemption has decided; never waits."""

    def __init__(self, parts: EvictorParts) -> None:
        self._parts = parts
        self._dispatcher = parts.dispatcher
        self._recorder = parts.recorder
        self._waiting_pods = parts.waiting_pods
        self._nominations = parts.nominations
        self._clock = parts.clock
        self._called_back: dict[str, list[OnEvicted]] = {}
        self.in_pre_bind = PodsInPreBind()
        self.under_way = 0
        """Evictions that are not over."""
        self.failures = 0

    def evict(self, eviction: Eviction, on_evicted: OnEvicted) -> None:
        self.under_way += 1

        def over(evicted: Evicted) -> None:
            self.under_way -= 1
            self.failures += evicted.error is not None
            on_evicted(evicted)

        self._evict(eviction, over)

    def _evict(self, eviction: Eviction, on_evicted: OnEvicted) -> None:
        uid = eviction.victim.uid
        if uid in self._called_back:
            self._called_back[uid].append(on_evicted)
            return
        if self._is_called_back(eviction):
            self._record(eviction, _IN_MEMORY)
            self._called_back[uid] = [on_evicted]
            return
        call = VictimEviction(eviction.victim, self._condition(eviction))

        def tell(outcome: Outcome) -> None:
            self._parts.inbox.put(lambda: self._settle(eviction, call, outcome, on_evicted))

        self._dispatcher.submit(call, tell)

    def place_given_up(self, uid: str) -> None:
        """A pod that was being bound is not on its node any more: if it was called back, that is done now."""
        for on_evicted in self._called_back.pop(uid, ()):
            on_evicted(Evicted(is_in_memory=True))

    def withdraw_nominations(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            node_name = self._nominations.node_of(pod.uid)
            if not node_name:
                continue
            self._nominations.remove(pod.uid)
            self._parts.writes.patch_status(pod, nomination="")
            self._tell_others_later(pod, node_name)

    def _tell_others_later(self, pod: Pod, node_name: str) -> None:
        # Not during the cycle of the preemptor: to it, it is no news.
        self._parts.inbox.put(lambda: self._parts.on_promise_gone(pod, node_name))

    def _is_called_back(self, eviction: Eviction) -> bool:
        uid = eviction.victim.uid
        waiting = self._waiting_pods.get(uid)
        if waiting is not None and waiting.preempt("preempted"):
            return True
        return self.in_pre_bind.cancel(uid, f"preempted by {eviction.plugin}")

    def _condition(self, eviction: Eviction) -> PodCondition:
        scheduler = eviction.preemptor.spec.scheduler_name
        return PodCondition(
            type="DisruptionTarget",
            status="True",
            reason="PreemptionByScheduler",
            message=f"{scheduler}: preempting to accommodate a higher priority pod",
            observed_generation=eviction.victim.generation,
            now=rfc3339(self._clock.time()),
        )

    def _settle(self, eviction: Eviction, call: VictimEviction, outcome: Outcome, on_evicted: OnEvicted) -> None:
        error = outcome.error
        if error is not None:
            log.error("eviction failed: pod=%s for=%s error=%s", eviction.victim.key, eviction.preemptor.key, error)
        elif call.was_there:
            self._record(eviction)
        is_gone = outcome.why is Why.OBJECT_GONE or (error is None and not call.was_there)
        on_evicted(Evicted(was_gone=is_gone, error=error))

    def _record(self, eviction: Eviction, suffix: str = "") -> None:
        preemptor = eviction.preemptor
        note = f"Preempted by pod {preemptor.uid} on node {eviction.node_name}{suffix}"
        self._recorder.record(eviction.victim, "Normal", "Preempted", "Preempting", note, related=preemptor)
