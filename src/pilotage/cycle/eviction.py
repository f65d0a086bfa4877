"""Eviction of the victims of preemption.

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
import math
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from pilotage.api.calls import Outcome, Why
from pilotage.api.conditions import PodCondition
from pilotage.api.preemption import Evicted, Eviction, OnEvicted
from pilotage.calls.dispatcher import Dispatcher
from pilotage.calls.recorder import EventRecorder
from pilotage.calls.victim_eviction import VictimEviction
from pilotage.clock import Clock, rfc3339
from pilotage.cycle.attempts import log_preempted
from pilotage.cycle.inbox import Inbox
from pilotage.cycle.intake import Intake
from pilotage.cycle.pods_being_bound import PodsBeingBound
from pilotage.model import Pod

log = logging.getLogger(__name__)

LONGEST_UNSEEN_SECONDS = 30.0
_IN_MEMORY = " (in kube-scheduler memory)."


class _Unseen(Struct, frozen=True):
    """An eviction that was accepted, and whose victim we do not see leaving."""

    victim: Pod
    until: float
    over: Callable[[], None]


class Evictor:
    """Carries out what preemption has decided; never waits."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        inbox: Inbox,
        intake: Intake,
        recorder: EventRecorder,
        being_bound: PodsBeingBound,
        clock: Clock,
    ) -> None:
        self._dispatcher = dispatcher
        self._inbox = inbox
        self._intake = intake
        self._recorder = recorder
        self._being_bound = being_bound
        self._clock = clock
        self._unseen: list[_Unseen] = []
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
        uid, being_bound = eviction.victim.uid, self._being_bound
        given_up = partial(on_evicted, Evicted(is_in_memory=True))
        if being_bound.is_called_back(uid):
            being_bound.when_given_up(uid, given_up)
            return
        if being_bound.call_back(uid, eviction.plugin):
            self._record(eviction, _IN_MEMORY)
            being_bound.when_given_up(uid, given_up)
            return
        call = VictimEviction(eviction.victim, self._condition(eviction), goes_first=eviction.completes)

        def report(outcome: Outcome) -> None:
            self._inbox.put(lambda: self._settle(eviction, call, outcome, on_evicted))

        self._dispatcher.submit(call, report)

    def _condition(self, eviction: Eviction) -> PodCondition:
        scheduler, whom = eviction.preemptor.spec.scheduler_name, "podgroup" if eviction.group else "pod"
        return PodCondition(
            type="DisruptionTarget",
            status="True",
            reason="PreemptionByScheduler",
            message=f"{scheduler}: preempting to accommodate a higher priority {whom}",
            observed_generation=eviction.victim.generation,
            now=rfc3339(self._clock.time()),
        )

    def _settle(self, eviction: Eviction, call: VictimEviction, outcome: Outcome, on_evicted: OnEvicted) -> None:
        if outcome.error is not None:
            self._report_failure(eviction, outcome.error)
            on_evicted(Evicted(error=outcome.error))
            return
        departure, victim = call.departure, eviction.victim
        if departure.was_there:
            self._record(eviction)
        if departure.is_gone:
            self._intake.take_gone(victim)
        elif departure.leaving_at is not None:
            self._intake.take_answer(victim)
        was_gone = outcome.why is Why.OBJECT_GONE or not departure.was_there
        over = partial(on_evicted, Evicted(was_gone=was_gone))
        if self._intake.has_left(victim):
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
            has_left = self._intake.has_left(one.victim)
            if not has_left and now < one.until:
                self._unseen.append(one)
                continue
            if not has_left:
                log.warning("a pod was evicted, and is not seen leaving: pod=%s", one.victim.key)
            self._inbox.put(one.over)

    def quiet_seconds(self) -> float:
        """How long `tick` will have nothing to do."""
        return 0.0 if self._unseen else math.inf

    def _report_failure(self, eviction: Eviction, error: Exception) -> None:
        victim, preemptor = eviction.victim, eviction.preemptor
        log.error("eviction failed: pod=%s for=%s error=%s", victim.key, preemptor.key, error)
        note = f"cannot evict pod {victim.key} from node {eviction.node_name}: {error}"
        self._recorder.record(preemptor, "Warning", "FailedPreemption", "Preempting", note)

    def _record(self, eviction: Eviction, suffix: str = "") -> None:
        preemptor = eviction.preemptor
        log_preempted(eviction)
        group = eviction.group
        by = f"podgroup {group.uid} on node cluster" if group else f"pod {preemptor.uid} on node {eviction.node_name}"
        note = f"Preempted by {by}{suffix}"
        self._recorder.record(eviction.victim, "Normal", "Preempted", "Preempting", note, related=preemptor)
