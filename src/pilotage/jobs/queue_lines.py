"""The lines of a queue: who waits in which place, for what, and who has it.

Made from the engine's state on request, a window at a time, and the queue is walked no further than that. Who
holds the quota that is lacking is found out once per answer and resource of a flavor, for all that lack it.

A queue may be full of other people's workloads. A look through a LocalQueue shows the names of their own
namespace only; of the rest, how many there are and how much they hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from pilotage.jobs import conditions as c
from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.quota import FlavorResource
from pilotage.jobs.record import WorkloadPlace, WorkloadRecord
from pilotage.jobs.rejections import Obstacle
from pilotage.jobs.reports import Holder, Need, PendingWorkload, QueueLine, QueuePlace
from pilotage.jobs.workloads import Workloads

_MOST_HOLDERS: Final = 5
"""A queue has a thousand lines, and the quota that they wait for a thousand holders."""


@dataclass(frozen=True, slots=True)
class Window:
    """Which lines are wanted."""

    offset: int = 0
    limit: int | None = None

    def of(self, lines: Iterable[tuple[int, int, WorkloadRecord]]) -> Iterator[tuple[int, int, WorkloadRecord]]:
        return islice(lines, self.offset, None if self.limit is None else self.offset + self.limit)


class QueueLines:
    def __init__(self, workloads: Workloads) -> None:
        self._workloads = workloads
        self._tree = workloads.tree
        self._queues = workloads.queues

    def pending(self, cluster_queue: str) -> list[PendingWorkload]:
        """All that wait in a ClusterQueue."""
        queue = self._tree.queues.get(cluster_queue)
        return [] if queue is None else [_pending(*line) for line in self._placed(queue)]

    def of_cluster_queue(self, name: str, window: Window) -> list[QueueLine] | None:
        """None if there is no such queue."""
        queue = self._tree.queues.get(name)
        if queue is None or queue.is_gone:
            return None
        return self._lines(queue, window.of(self._placed(queue)), namespace=None)

    def of_local_queue(self, key: str, window: Window) -> list[QueueLine] | None:
        """Those of one LocalQueue, with their places in its ClusterQueue too; None if there is no such queue."""
        local = self._queues.local_queues.get(key)
        if local is None or local.obj is None:
            return None
        queue = self._tree.queues.get(local.obj.spec.cluster_queue)
        if queue is None:
            return []
        own = (line for line in self._placed(queue) if line[2].local_queue_key == key)
        return self._lines(queue, window.of(own), namespace=local.obj.namespace)

    def _placed(self, queue: QueueState) -> Iterator[tuple[int, int, WorkloadRecord]]:
        """Position in the ClusterQueue, position in the LocalQueue, who."""
        ahead: dict[str, int] = {}
        for at, record in enumerate(self._queues.pending(queue).in_order(self._queues.order.key)):
            key = record.local_queue_key
            before = ahead.get(key, 0)
            ahead[key] = before + 1
            yield at, before, record

    def _lines(
        self, queue: QueueState, window: Iterable[tuple[int, int, WorkloadRecord]], namespace: str | None
    ) -> list[QueueLine]:
        needs, now = _Needs(self._workloads, queue, namespace), self._workloads.timers.now()
        return [
            QueueLine(
                metadata=record.seen.metadata,
                place=_pending(at, in_local, record),
                is_eligible=record.is_eligible(now),
                needs=needs.of(record),
            )
            for at, in_local, record in window
        ]


class _Needs:
    """What the lines of one answer wait for. Holders are looked for once."""

    def __init__(self, workloads: Workloads, queue: QueueState, namespace: str | None) -> None:
        """`namespace`: the only one whose workloads may be named; None for all."""
        self._workloads = workloads
        self._tree = workloads.tree
        self._queue = queue
        self._namespace = namespace
        self._of_quota: dict[FlavorResource, Need] = {}
        self._by_uid: dict[str, WorkloadRecord] | None = None
        self._unready: Need | None = None

    def of(self, record: WorkloadRecord) -> tuple[Need, ...]:
        reason, _ = record.pending_reason
        if reason == c.WAITING_FOR_PODS_READY:
            return (self._pods_ready(),)
        if record.attempt.waits_for:
            return (self._victims(record),)
        rejection = record.rejection
        if record.place is not WorkloadPlace.QUEUED or rejection is None:
            return ()
        return tuple(self._quota(one) for one in rejection.obstacles if one.code == c.WAITING_FOR_QUOTA)

    def _quota(self, obstacle: Obstacle) -> Need:
        pair = (obstacle.flavor, obstacle.resource)
        held = self._of_quota.get(pair)
        if held is None:
            holders = [
                Holder(record.key, other.name, amount)
                for other, record, amount in self._tree.reserving_of(pair, self._queue)
            ]
            held = self._of_quota[pair] = self._shown(c.WAITING_FOR_QUOTA, holders)
        return Need(
            reason=held.reason,
            holders=held.holders,
            others=held.others,
            others_amount=held.others_amount,
            pod_set=obstacle.pod_set,
            flavor=obstacle.flavor,
            resource=obstacle.resource,
            need=obstacle.need,
            free=max(0, self._queue.node.available(pair)),
        )

    def _victims(self, record: WorkloadRecord) -> Need:
        if self._by_uid is None:
            self._by_uid = {
                one.uid: one for one in self._workloads.records.values() if one.place is WorkloadPlace.QUOTA_RESERVED
            }
        victims = (self._by_uid[uid] for uid in record.attempt.waits_for if uid in self._by_uid)
        return self._shown(c.WAITING_FOR_PREEMPTED, [Holder(one.key, one.cluster_queue) for one in victims])

    def _pods_ready(self) -> Need:
        if self._unready is None:
            unready = [Holder(one.key, one.cluster_queue) for one in self._workloads.unready.values()]
            self._unready = self._shown(c.WAITING_FOR_PODS_READY, unready)
        return self._unready

    def _shown(self, reason: str, holders: list[Holder]) -> Need:
        holders.sort(key=lambda one: (-(one.amount or 0), one.key))
        named = [one for one in holders if self._may_be_named(one)][:_MOST_HOLDERS]
        amounts = [one.amount for one in holders if one.amount is not None]
        others = len(holders) - len(named)
        rest = sum(amounts) - sum(one.amount or 0 for one in named)
        return Need(reason, tuple(named), others, rest if amounts else None)

    def _may_be_named(self, holder: Holder) -> bool:
        return self._namespace is None or holder.key.partition("/")[0] == self._namespace


def queue_place(record: WorkloadRecord) -> QueuePlace:
    if record.place is WorkloadPlace.BACKOFF:
        return "inadmissible"
    if record.place is not WorkloadPlace.QUEUED or record.group is None:
        return "none"
    return "inadmissible" if record.group.is_inadmissible else "active"


def _pending(at: int, in_local: int, record: WorkloadRecord) -> PendingWorkload:
    reason, message = record.pending_reason
    return PendingWorkload(
        key=record.key,
        uid=record.uid,
        local_queue=record.queue_name,
        priority=record.priority,
        position_in_cluster_queue=at,
        position_in_local_queue=in_local,
        place=queue_place(record),
        reason=reason,
        message=message,
        requeue_count=record.requeue_count,
        requeue_at=record.requeue_at,
    )
