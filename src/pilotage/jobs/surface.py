"""The engine of workload queueing as the shell sees it: facts in, effects out, nothing waits, no locks.

    engine = JobQueueing(clock, rng, configuration)     # pilotage.jobs.engine
    engine.upsert(obj)  engine.delete(obj)              # any Kueue kind, LimitRange, RuntimeClass, as from the watch
    engine.pods_ready("ns/w", True) ...                 # what adapters know of the job
    while engine.cycle(): pass                          # until nothing changes
    for effect in engine.take_effects(): ...            # write, record, count
    due = engine.next_due()                             # sleep until then, engine.fire_timers(), cycle again

Rules for the shell
- A workload is known by its key ("namespace/name"). Hand in every watch event; the engine compares with what it saw
  before and takes what others changed: spec, admission check states, reclaimablePods, WaitingForReplacementPods. Its
  own writes (all other conditions, admission, requeueState, schedulingStats) it knows; an older echo does no harm.
- The first sight of a workload (start, change of leader) is the exception: then its whole status is taken over, so that
  reservations, back-off and timers go on where they were.
- Times are whole epoch seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pilotage.jobs.effects import Effect
from pilotage.jobs.queue_lines import Window
from pilotage.jobs.reports import (
    ClusterQueueReport,
    LocalQueueReport,
    PendingWorkload,
    QueueLine,
    UnadmittedCount,
    WorkloadReport,
)
from pilotage.model.kueue import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LocalQueue,
    QueueStatus,
    ResourceFlavor,
    Workload,
)
from pilotage.model.limit_ranges import LimitRange
from pilotage.model.policy import RuntimeClass

QueueingObject = (
    ClusterQueue | LocalQueue | Cohort | ResourceFlavor | AdmissionCheck | Workload | LimitRange | RuntimeClass
)


class QueueingEngine(Protocol):
    """What `JobQueueing` offers."""

    def upsert(self, obj: QueueingObject) -> None:
        """An object was created or changed."""

    def delete(self, obj: QueueingObject) -> None:
        """An object is gone."""

    def set_namespace(self, name: str, labels: dict[str, str]) -> None:
        """A namespace has these labels."""

    def delete_namespace(self, name: str) -> None: ...

    def pods_ready(self, key: str, is_ready: bool) -> None:
        """Whether all pods of the workload's job are ready or succeeded."""

    def pods_gone(self, key: str) -> None:
        """The stopped job of an evicted workload has no pods left: the eviction is complete. May be said again."""

    def finished(self, key: str, reason: str, message: str) -> None:
        """The job ended: Succeeded, Failed, OutOfSync, OwnerNotFound or FailedToStart."""

    def write_rejected(self, key: str, message: str, retry_seconds: float) -> None:
        """The API server refuses the status for good: a reservation that nobody knows of is taken back."""

    def settle(self) -> None:
        """Apply what was noted of the configuration."""

    @property
    def culprit(self) -> tuple[str, str] | None:
        """After an exception: kind and key of what the engine was looking at. Such an engine is not to be used on."""

    def cycle(self) -> bool:
        """One scheduling cycle over the queues that something happened to; whether another may change something."""

    def fire_timers(self) -> None:
        """Do what is due by now."""

    def next_due(self) -> int | None:
        """When the next timer fires, in epoch seconds."""

    def take_effects(self) -> Sequence[Effect]:
        """What is to be done since the last time, in order."""

    def take_changed_queues(self) -> tuple[Sequence[str], Sequence[str]]:
        """Names of ClusterQueues and keys of LocalQueues whose status changed since the last time."""

    def cluster_queue_status(self, name: str) -> QueueStatus: ...

    def local_queue_status(self, key: str) -> QueueStatus: ...

    def cluster_queues(self) -> Sequence[ClusterQueueReport]: ...

    def local_queues(self) -> Sequence[LocalQueueReport]: ...

    def unadmitted(self) -> Sequence[UnadmittedCount]:
        """How many workloads are not admitted, by queue and reason."""

    def pending_amounts(self) -> Mapping[tuple[str, str, str], int]:
        """(ClusterQueue, flavor or "", resource) -> what pending workloads ask for."""

    def cohort_shares(self) -> Mapping[str, int]:
        """How far each cohort is above its share."""

    def pending(self, cluster_queue: str) -> Sequence[PendingWorkload]:
        """All that wait in a ClusterQueue, in queue order."""

    def lines_of_cluster_queue(self, name: str, window: Window) -> Sequence[QueueLine] | None:
        """Some of them, with what they wait for; None if there is no such queue."""

    def lines_of_local_queue(self, key: str, window: Window) -> Sequence[QueueLine] | None:
        """The same for those of one LocalQueue ("namespace/name")."""

    def quota_tree(self, cluster_queue: str) -> str:
        """The same text for all ClusterQueues that share quota with each other."""

    def workload(self, key: str) -> Workload | None:
        """The object with the status as the engine has it."""

    def explain(self, key: str) -> WorkloadReport | None:
        """Why a workload is where it is."""

    def check(self) -> None:
        """Assert the invariants."""
