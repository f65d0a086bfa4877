"""How victims of preemption go, and what else a preemption takes away: nominations of less important pods.

    waiting for permission, in PreBind   called back in memory: nothing was sent to the API server yet
    everything else                      condition and deletion, through the API server

Results go through the inbox, so that they take effect between two cycles. An eviction is over when our view shows the
victim leaving: the answer to its deletion is applied at once, and only if it cannot be read the watch is waited for, up
to `LONGEST_UNSEEN_SECONDS`. Until then the preemptor is held back: with the old view it would choose again.

Without the gate SchedulerAsyncPreemption the loop waits for evictions (`under_way`) before the preemptor goes back to
the queue.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from pilotage.api.calls import Outcome, Why
from pilotage.api.conditions import PodCondition
from pilotage.api.preemption import Evicted, Eviction, OnEvicted
from pilotage.calls.dispatcher import Dispatcher
from pilotage.calls.recorder import EventRecorder
from pilotage.calls.victim_eviction import VictimEviction
from pilotage.clock import Clock, rfc3339
from pilotage.cluster.state import Cluster
from pilotage.cycle.attempt_log import log as attempt_log
from pilotage.cycle.attempt_log import log_preempted
from pilotage.cycle.cluster_writes import ClusterWrites
from pilotage.cycle.inbox import Inbox
from pilotage.cycle.intake import Intake
from pilotage.cycle.pre_bind import PodsInPreBind
from pilotage.framework.waiting_pods import WaitingPods
from pilotage.model import Pod
from pilotage.observe.verbosity import ATTEMPTS

log = logging.getLogger(__name__)

LONGEST_UNSEEN_SECONDS = 30.0
_IN_MEMORY = " (in kube-scheduler memory)."


@dataclass(frozen=True, slots=True)
class EvictorParts:
    """What evictions need of the scheduler."""

    dispatcher: Dispatcher
    writes: ClusterWrites
    recorder: EventRecorder
    inbox: Inbox
    waiting_pods: WaitingPods
    cluster: Cluster
    clock: Clock
    intake: Intake


@dataclass(frozen=True, slots=True)
class _Unseen:
    """An eviction that was accepted, and whose victim we do not see leaving."""

    victim: Pod
    until: float
    over: Callable[[], None]


class Evictor:
    """Carries out what preemption has decided; never waits."""

    def __init__(self, parts: EvictorParts) -> None:
        self._parts = parts
        self._dispatcher = parts.dispatcher
        self._recorder = parts.recorder
        self._waiting_pods = parts.waiting_pods
        self._cluster = parts.cluster
        self._nominations = parts.cluster.nominations
        self._clock = parts.clock
        self._called_back: dict[str, list[OnEvicted]] = {}
        self._unseen: list[_Unseen] = []
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
        self._parts.inbox.put(lambda: self._parts.intake.on_nomination_removed(pod, node_name))

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
        if outcome.error is not None:
            self._tell_failure(eviction, outcome.error)
            on_evicted(Evicted(error=outcome.error))
            return
        departure, victim = call.departure, eviction.victim
        if departure.was_there:
            self._record(eviction)
        if departure.is_gone:
            self._parts.intake.take_gone(victim)
        elif departure.leaving_at is not None:
            self._parts.intake.take_answer(victim)
        was_gone = outcome.why is Why.OBJECT_GONE or not departure.was_there
        over = partial(on_evicted, Evicted(was_gone=was_gone))
        if self._has_left(victim):
            over()
        else:
            self._unseen.append(_Unseen(victim, self._clock.monotonic() + LONGEST_UNSEEN_SECONDS, over))

    def tick(self) -> None:
        """End the evictions whose victims have been seen leaving, or were waited for too long; call it every second."""
        if not self._unseen:
            return
        now = self._clock.monotonic()
        waiting, self._unseen = self._unseen, []
        for one in waiting:
            has_left = self._has_left(one.victim)
            if not has_left and now < one.until:
                self._unseen.append(one)
                continue
            if not has_left:
                log.warning("a pod was evicted, and is not seen leaving: pod=%s", one.victim.key)
            self._parts.inbox.put(one.over)

    def _has_left(self, victim: Pod) -> bool:
        known: Pod | None = self._cluster.objects("Pod").get(victim.key)
        return known is None or known.uid != victim.uid or known.is_terminating

    def _tell_failure(self, eviction: Eviction, error: Exception) -> None:
        victim, preemptor = eviction.victim, eviction.preemptor
        log.error("eviction failed: pod=%s for=%s error=%s", victim.key, preemptor.key, error)
        note = f"cannot evict pod {victim.key} from node {eviction.node_name}: {error}"
        self._recorder.record(preemptor, "Warning", "FailedPreemption", "Preempting", note)

    def _record(self, eviction: Eviction, suffix: str = "") -> None:
        preemptor = eviction.preemptor
        if attempt_log.isEnabledFor(ATTEMPTS):
            log_preempted(eviction)
        note = f"Preempted by pod {preemptor.uid} on node {eviction.node_name}{suffix}"
        self._recorder.record(eviction.victim, "Normal", "Preempted", "Preempting", note, related=preemptor)
