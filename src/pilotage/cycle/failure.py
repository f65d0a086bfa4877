"""What becomes of a pod whose attempt failed: back to the queue, and the reason into its status and an Event."""

from __future__ import annotations

from msgspec import Struct

from pilotage.api.conditions import BUDGET_EXCEEDED, POD_SCHEDULED, PodCondition
from pilotage.api.events import Action, ClusterEvent, Resource
from pilotage.calls.event import shortened
from pilotage.calls.recorder import EventRecorder
from pilotage.clock import Clock, rfc3339
from pilotage.cluster.state import Cluster
from pilotage.cycle.cluster_writes import ClusterWrites
from pilotage.framework.diagnosis import Diagnosis
from pilotage.model import Pod
from pilotage.queue.scheduling_queue import SchedulingQueue
from pilotage.queue.sub_queues import Ticket

_POD_DELETED = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
_LONGEST_MESSAGE = 32 * 1024
"""Bytes of a condition's message, as Kubernetes' own conditions allow."""


class Failure(Struct, frozen=True):
    """How an attempt ended."""

    reason: str
    message: str
    diagnosis: Diagnosis | None = None
    nomination: str | None = ""
    """The nominated node to write: "" clears it, None leaves it as it is."""


class FailureHandler:
    """Gives tickets back and records why in conditions and Events."""

    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        writes: ClusterWrites,
        recorder: EventRecorder,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._writes = writes
        self._recorder = recorder
        self._clock = clock

    def handle(self, ticket: Ticket, failure: Failure) -> None:
        attempted = ticket.pod
        known: Pod | None = self._cluster.objects("Pod").get(attempted.key)
        if known is not None and known.uid != attempted.uid:
            # Recreated under the same name: the new pod was queued by its own event.
            self._queue.done(ticket)
            return
        self._recorder.record(known or attempted, "Warning", "FailedScheduling", "Scheduling", failure.message)
        if known is None or known.node_name:
            # Gone, or bound after all: there is nothing to be said in its status.
            self._queue.done(ticket)
        else:
            self._give_back(ticket, known, failure)

    def dismiss(self, ticket: Ticket) -> None:
        """There is nothing to be done for the pod, or nothing can be done."""
        self._queue.done(ticket)

    def clear_nomination(self, pod: Pod, node_name: str, nominated: str) -> None:
        """The pod has its node; if its nominated one is another, the place that was kept there is free for others."""
        self._cluster.nominations.remove(pod.uid)
        if nominated != node_name:
            self._queue.on_nomination_removed(pod, nominated)

    def give_up_place(self, pod: Pod) -> None:
        """A pod that was assumed to be on a node is not bound after all."""
        if self._cluster.forget(pod.uid) is not None:
            self._queue.on_event(_POD_DELETED, pod, None)

    def _give_back(self, ticket: Ticket, pod: Pod, failure: Failure) -> None:
        diagnosis = failure.diagnosis
        rejectors = frozenset(diagnosis.rejectors) if diagnosis else frozenset[str]()
        pending = frozenset(diagnosis.pending) if diagnosis else frozenset[str]()
        ticket.entry.message = failure.message
        nominated = self._cluster.nominations.node_of(pod.uid)
        pod = self._writes.patch_status(pod, self._condition(pod, failure), nomination=failure.nomination)
        if failure.nomination is not None:
            self._cluster.nominations.nominate(pod, failure.nomination)
        if failure.reason == BUDGET_EXCEEDED:
            self._queue.give_back_over_budget(ticket, pod)
        else:
            self._queue.give_back(ticket, pod, rejectors, pending)
        if nominated and failure.nomination is not None and failure.nomination != nominated:
            self._queue.on_nomination_removed(pod, nominated)

    def _condition(self, pod: Pod, failure: Failure) -> PodCondition:
        return PodCondition(
            type=POD_SCHEDULED,
            status="False",
            reason=failure.reason,
            message=shortened(failure.message, _LONGEST_MESSAGE),
            observed_generation=pod.generation,
            now=rfc3339(self._clock.time()),
        )
