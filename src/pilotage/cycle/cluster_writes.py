"""Writes that go through the cluster state: what is decided is seen at once, and sent in the background.

Every reader of a pod sees after `patch_status` the new status, although the API server does not have it yet. The
version that the watch has brought is kept beside it: if the call fails, it comes back.

    patch_status -> call queue -> shown = received version + calls on their way -> cluster
    watch event  -> call queue (sync) ------------------^
    call failed  -> received version + what is still on its way ------------> cluster
"""

from __future__ import annotations

import math
from typing import Final

from pilotage.api.calls import Ending, Outcome
from pilotage.api.conditions import POD_SCHEDULED, PodCondition
from pilotage.calls.binding import PodBinding
from pilotage.calls.call_queue import CallQueue
from pilotage.calls.pod_status import PodStatusPatch
from pilotage.calls.recorder import EventRecorder
from pilotage.calls.synchronous_calls import Calls
from pilotage.clock import Clock, rfc3339
from pilotage.cluster.state import Cluster
from pilotage.cycle.inbox import Inbox
from pilotage.model import Pod
from pilotage.queue.pod_groups import QueuedGroup
from pilotage.queue.sub_queues import QueuedPodInfo, SubQueue

SCHEDULING_GATED: Final = "SchedulingGated"
HELD_BACK: Final = (SubQueue.GATED, SubQueue.INCOMPLETE)


class ClusterWrites:
    """The cluster as a middleware between the scheduler and the API server (KEP-5229, proposal C)."""

    def __init__(self, cluster: Cluster, calls: Calls, queue: CallQueue, inbox: Inbox, clock: Clock) -> None:
        self._cluster = cluster
        self.calls = calls
        """Where cycles and plugins leave their calls."""
        self._queue = queue
        self._inbox = inbox
        self._clock = clock

    def patch_status(self, pod: Pod, *conditions: PodCondition, nomination: str | None = None) -> Pod:
        """Write conditions and (unless None; "" clears it) the nominated node; returns the pod as it is seen now."""
        known: Pod | None = self._cluster.objects("Pod").get(pod.key)
        if known is not None and known.uid == pod.uid:
            pod = known
        self.calls.submit(
            PodStatusPatch(pod, *conditions, nomination=nomination), lambda outcome: self._over(pod, outcome)
        )
        return self._show(self._received(pod))

    def write_gated(self, pod: Pod, message: str) -> None:
        """Write that a PreEnqueue plugin rejected the pod, unless its status says already why it is not scheduled.

        Of pods with scheduling gates the API server says so itself; a pod that was tried before keeps the reason of its
        last attempt, which is more precise.
        """
        known: Pod | None = self._cluster.objects("Pod").get(pod.key)
        if known is None or known.uid != pod.uid or known.node_name:
            return
        if not pod.spec.scheduling_gates and pod.status.condition(POD_SCHEDULED) is None:
            now = rfc3339(self._clock.time())
            self.patch_status(pod, PodCondition(POD_SCHEDULED, "False", SCHEDULING_GATED, message, pod.generation, now))

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Bind a pod, which counts on its node from now on; returns when it is done, raises what went wrong."""
        is_first = self._cluster.placed_pod(pod.uid) is None
        if is_first:
            self._cluster.assume(pod.with_node(node_name))
        try:
            await self.calls.perform(PodBinding(pod, node_name))
        except BaseException:
            if is_first:
                self._inbox.put(lambda: self._forget(pod))
            raise

    def _forget(self, pod: Pod) -> None:
        self._cluster.forget(pod.uid)

    def _received(self, pod: Pod) -> Pod:
        """The newest version of the pod that the API server has sent."""
        known: Pod | None = self._cluster.received("Pod", pod.key)
        return known if known is not None and known.uid == pod.uid else pod

    def _over(self, pod: Pod, outcome: Outcome) -> None:
        if outcome.ending is Ending.FAILED:
            self._inbox.put(lambda: self._revert(pod))

    def _revert(self, pod: Pod) -> None:
        self._show(self._received(pod))

    def _show(self, received: Pod) -> Pod:
        shown: Pod = self._queue.shown(received.uid, received)
        self._cluster.show("Pod", shown, received)
        return shown


class DelayedGatedStatus:
    """Writes that a pod is gated, if it still is at the second tick; of a pod group it is written into all members.

    Most pods that wait for their claim to be created are gated for an instant only; to write that into their status
    would cost the API server as much as binding them. A pod whose group does not exist has an Event too.
    """

    def __init__(self, writes: ClusterWrites, recorder: EventRecorder) -> None:
        self._writes = writes
        self._recorder = recorder
        self._new: dict[str, QueuedPodInfo] = {}
        self._due: dict[str, QueuedPodInfo] = {}

    def on_move(self, entry: QueuedPodInfo, _: str) -> None:
        """Listens to the queue, for pods that are held back."""
        if entry.pod.uid not in self._due:
            self._new[entry.pod.uid] = entry

    def quiet_seconds(self) -> float:
        """How long `tick` will have nothing to do."""
        return 0.0 if self._new or self._due else math.inf

    def tick(self) -> None:
        due, self._due, self._new = self._due, self._new, {}
        for entry in due.values():
            if entry.home not in HELD_BACK:
                continue
            if isinstance(entry, QueuedGroup):
                for member in entry.members.values():
                    self._writes.write_gated(member.pod, _message_for(member, entry))
                continue
            self._writes.write_gated(entry.pod, entry.gate_message)
            if entry.home is SubQueue.INCOMPLETE:
                self._recorder.record(entry.pod, "Warning", "FailedScheduling", "Scheduling", entry.gate_message)


def _message_for(member: QueuedPodInfo, group: QueuedGroup) -> str:
    """Why a member is held back: by itself, or because another one is."""
    # The status that a member got when it came may not say what gates the group now.
    is_own = member.gated_by == group.gated_by
    return member.gate_message if is_own else f"waiting with its pod group: {group.gate_message}"
