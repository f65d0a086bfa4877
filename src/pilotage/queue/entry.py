"""A pod in the queue and the ticket under which it is being scheduled."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from pilotage.api.events import Action, ClusterEvent, Resource
from pilotage.model import Pod
from pilotage.observe.decision_log import Step


class SubQueue(StrEnum):
    """Where a queued pod is; every pod has exactly one home."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in flight"


QUEUE_NAMES = {
    SubQueue.ACTIVE: "active",
    SubQueue.BACKOFF: "backoff",
    SubQueue.ERROR_BACKOFF: "backoff",
    SubQueue.UNSCHEDULABLE: "unschedulable",
    SubQueue.GATED: "gated",
}
"""How metrics call the parts of the queue."""
INCOMING_NAMES = {**QUEUE_NAMES, SubQueue.GATED: "unschedulable"}
"""How the metric of moves calls them: kube-scheduler does not tell gated pods apart there."""

POD_ADDED = ClusterEvent(Resource.UNSCHEDULED_POD, Action.ADD)


class Entry(msgspec.Struct, eq=False):
    """Everything that the queue remembers of a pod between its attempts."""

    pod: Pod
    timestamp: float
    home: SubQueue = SubQueue.ACTIVE
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    overruns: int = 0
    """Attempts in a row that used up the CPU time of their cycle."""
    first_attempt_at: float | None = None
    rejectors: frozenset[str] = frozenset()
    """Plugins that rejected the pod in its last attempt, or that gate it."""
    pending: frozenset[str] = frozenset()
    """Those of them after whose events no backoff is due."""
    gated_by: str = ""
    gate_message: str = ""
    backoff_until: float = 0.0
    must_back_off: bool = False
    """What followed its last attempt failed: it sits out its backoff, even if nothing else is to do."""
    was_flushed: bool = False
    flushed_at: float = 0.0
    place: int = 0
    """Number of the newest place taken in a heap: older places of this entry are void."""
    message: str = ""
    """Why the last attempt failed, for people."""
    history: list[Step] | None = None
    """What happened to the pod so far; None as long as nothing out of the ordinary did: it came, and was tried."""

    def beginning(self, popped_at: float | None = None) -> list[Step]:
        """The story of a pod that came into the active queue and (if it was popped) was tried for the first time."""
        steps: list[Step] = [(self.first_attempt_at or self.timestamp, "moved", SubQueue.ACTIVE.value, POD_ADDED.label)]
        return steps if popped_at is None else [*steps, (popped_at, "tried", 1, "")]


class Ticket(msgspec.Struct, eq=False):
    """Given out by `pop`, handed back by `give_back` or `done`. Keyed by UID, so a recreated pod is another ticket."""

    entry: Entry
    popped_at: float
    events_from: int
    """Events recorded from this number on happened while the pod was in flight."""
    started: float = 0.0
    """When its scheduling began, on the clock that never goes backwards: what durations are measured from."""
    is_open: bool = True

    @property
    def pod(self) -> Pod:
        return self.entry.pod

    @property
    def uid(self) -> str:
        return self.entry.pod.uid
