"""How victims of preemption go, and what else a preemption takes away: promises made to less important pods.

    waiting for permission, in PreBind   called back in memory: nothing was sent to the API server yet
    everything else                      condition and deletion, through the API server

Results go through the inbox, so that they take effect between two cycles.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from msgspec.structs import replace

from pilotage.api.preemption import Evicted, Eviction, OnEvicted
from pilotage.calls.dispatcher import Dispatcher
from pilotage.calls.pod_status import PodCondition, PodStatusPatch
from pilotage.calls.recorder import EventRecorder
from pilotage.calls.victim_eviction import VictimEviction
from pilotage.clock import Clock, rfc3339
from pilotage.cluster.nominations import Nominations
from pilotage.cycle.inbox import Inbox
from pilotage.cycle.pre_bind import PodsInPreBind
from pilotage.framework.waiting_pods import WaitingPods
from pilotage.model import Pod

log = logging.getLogger(__name__)

_IN_MEMORY = " (in kube-scheduler memory)."


class Evictor:
    """Carries out what preemption has decided; never waits."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        recorder: EventRecorder,
        inbox: Inbox,
        waiting_pods: WaitingPods,
        nominations: Nominations,
        clock: Clock,
    ) -> None:
        self._dispatcher = dispatcher
        self._recorder = recorder
        self._inbox = inbox
        self._waiting_pods = waiting_pods
        self._nominations = nominations
        self._clock = clock
        self._called_back: dict[str, list[OnEvicted]] = {}
        self.in_pre_bind = PodsInPreBind()

    def evict(self, eviction: Eviction, on_evicted: OnEvicted) -> None:
        uid = eviction.victim.uid
        if uid in self._called_back:
            self._called_back[uid].append(on_evicted)
            return
        if self._is_called_back(eviction):
            self._record(eviction, _IN_MEMORY)
            self._called_back[uid] = [on_evicted]
            return
        call = VictimEviction(eviction.victim, self._condition(eviction))

        def tell(error: Exception | None) -> None:
            self._inbox.put(lambda: self._settle(eviction, call, error, on_evicted))

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
            # What we wrote last may not have come back by watch yet; it is what is to be taken back.
            written = replace(pod, status=replace(pod.status, nominated_node_name=node_name))
            self._dispatcher.submit(PodStatusPatch(written, None, ""))

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

    def _settle(self, eviction: Eviction, call: VictimEviction, error: Exception | None, on_evicted: OnEvicted) -> None:
        if error is not None:
            log.error("eviction failed: pod=%s for=%s error=%s", eviction.victim.key, eviction.preemptor.key, error)
        elif call.was_there:
            self._record(eviction)
        on_evicted(Evicted(was_gone=error is None and not call.was_there, error=error))

    def _record(self, eviction: Eviction, suffix: str = "") -> None:
        preemptor = eviction.preemptor
        note = f"Preempted by pod {preemptor.uid} on node {eviction.node_name}{suffix}"
        self._recorder.record(eviction.victim, "Normal", "Preempted", "Preempting", note, related=preemptor)
