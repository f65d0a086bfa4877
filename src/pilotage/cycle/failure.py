"""What becomes of a pod whose attempt failed: back to the queue, and the reason into its status and an Event."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from pilotage.calls.dispatcher import Dispatcher
from pilotage.calls.pod_status import PodCondition, PodStatusPatch
from pilotage.calls.recorder import EventRecorder
from pilotage.clock import Clock, rfc3339
from pilotage.cluster.state import Cluster
from pilotage.framework.diagnosis import Diagnosis
from pilotage.model import Pod
from pilotage.queue.entry import Ticket
from pilotage.queue.scheduling_queue import SchedulingQueue

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


@dataclass(frozen=True, slots=True)
class Failure:
    """How an attempt ended."""

    reason: str
    message: str
    diagnosis: Diagnosis | None = None
    nomination: str | None = ""
    """The nominated node to write: "" clears it, None leaves it as it is."""


class FailureHandler:
    """Gives tickets back and tells people why."""

    def __init__(
        self, cluster: Cluster, queue: SchedulingQueue, dispatcher: Dispatcher, recorder: EventRecorder, clock: Clock
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._dispatcher = dispatcher
        self._recorder = recorder
        self._clock = clock

    def handle(self, ticket: Ticket, failure: Failure, announced: str = "") -> None:
        """`announced` is the node that was written as nominated during the attempt, "" if none was."""
        attempted = ticket.pod
        known: Pod | None = self._cluster.objects("Pod").get(attempted.key)
        if known is not None and known.uid != attempted.uid:
            # Recreated under the same name: the new pod was queued by its own event.
            self._queue.done(ticket)
            return
        if known is None or known.node_name:
            self._queue.done(ticket)
        else:
            self._give_back(ticket, known, failure)
        self._tell(_as_written(known or attempted, announced), failure)

    def _give_back(self, ticket: Ticket, pod: Pod, failure: Failure) -> None:
        diagnosis = failure.diagnosis
        rejectors = frozenset(diagnosis.rejectors) if diagnosis else frozenset[str]()
        pending = frozenset(diagnosis.pending) if diagnosis else frozenset[str]()
        ticket.entry.message = failure.message
        if failure.nomination is not None:
            self._cluster.nominations.nominate(pod, failure.nomination)
        self._queue.give_back(ticket, pod, rejectors, pending)

    def _tell(self, pod: Pod, failure: Failure) -> None:
        self._recorder.record(pod, "Warning", "FailedScheduling", "Scheduling", failure.message)
        condition = PodCondition(
            type="PodScheduled",
            status="False",
            reason=failure.reason,
            message=failure.message,
            observed_generation=pod.generation,
            now=rfc3339(self._clock.time()),
        )
        self._dispatcher.submit(PodStatusPatch(pod, condition, failure.nomination))


def _as_written(pod: Pod, announced: str) -> Pod:
    """What we wrote may not have come back by watch yet; it is what is to be taken back."""
    if not announced or pod.status.nominated_node_name:
        return pod
    return replace(pod, status=replace(pod.status, nominated_node_name=announced))
