"""Statuses of ClusterQueues and LocalQueues on their way to the API server.

The counts of a busy queue change with every workload; people and dashboards need them once a second, and of many busy
queues each is written less often: their counts must not cost more than their workloads. No other process writes them,
so that the call queue can do the rest: it keeps one pending call for each, whose body is made when it is sent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from pilotage.api.calls import CallDropped, Ending, Outcome, is_not_found
from pilotage.calls.queueing_status import QueueingStatus
from pilotage.calls.synchronous_calls import Calls
from pilotage.clock import Clock
from pilotage.jobs.controller.status_bodies import conditions
from pilotage.jobs.engine import JobQueueing
from pilotage.model import KINDS
from pilotage.model.kueue import FairSharingStatus, FlavorUsage, QueueStatus

log = logging.getLogger(__name__)

_PAUSE_SECONDS: Final = 1.0
_PER_SECOND: Final = 5.0


class QueueStatuses:
    """`engine` gives the present one: it is another one after errors."""

    def __init__(self, engine: Callable[[], JobQueueing], calls: Calls, clock: Clock) -> None:
        self._engine = engine
        self._calls = calls
        self._clock = clock
        self._changed: dict[tuple[str, str], None] = {}
        """Plural and key."""
        self._due = float("-inf")
        self._written: dict[tuple[str, str], dict[str, Any]] = {}
        """What was last written."""

    def next_due(self) -> float | None:
        """When there is something to write, in seconds of the monotonic clock."""
        return self._due if self._changed else None

    def write_changed(self) -> None:
        """Write the statuses that have changed since the last time, if that is long enough ago."""
        cluster_queues, local_queues = self._engine().take_changed_queues()
        self._changed.update(dict.fromkeys(("clusterqueues", name) for name in cluster_queues))
        self._changed.update(dict.fromkeys(("localqueues", key) for key in local_queues))
        now = self._clock.monotonic()
        if not self._changed or now < self._due:
            return
        for plural, key in self._changed:
            self.write(plural, key)
        self._due = now + max(_PAUSE_SECONDS, len(self._changed) / _PER_SECOND)
        self._changed.clear()

    def write(self, plural: str, key: str) -> None:
        namespace, _, name = key.rpartition("/")
        is_local, queue, sent = plural == "localqueues", (plural, key), dict[str, Any]()

        def body() -> dict[str, Any] | None:
            engine = self._engine()
            try:
                status = engine.local_queue_status(key) if is_local else engine.cluster_queue_status(name)
            except KeyError:
                return None  # deleted meanwhile
            wanted = queue_status(status, tells_borrowed=not is_local)
            # Counts often come back to what they were before anyone has read them.
            if self._written.get(queue) == wanted:
                return None
            sent["status"] = wanted
            return sent

        def over(outcome: Outcome) -> None:
            error = outcome.error
            if outcome.ending is Ending.DONE and sent:
                self._written[queue] = sent["status"]
            elif error is not None:
                self._written.pop(queue, None)
                if not is_not_found(error) and not isinstance(error, CallDropped):
                    log.info("status of a queue was not written: queue=%s error=%s", key, error)

        self._calls.submit(QueueingStatus(KINDS[plural], namespace, name, body), over)


def queue_status(status: QueueStatus, *, tells_borrowed: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        "conditions": conditions(status.conditions),
        "pendingWorkloads": status.pending_workloads,
        "reservingWorkloads": status.reserving_workloads,
        "admittedWorkloads": status.admitted_workloads,
        "flavorsReservation": _usage(status.flavors_reservation, tells_borrowed),
        "flavorsUsage": _usage(status.flavors_usage, tells_borrowed),
    }
    share = status.fair_sharing
    if tells_borrowed or share is not None:
        body["fairSharing"] = None if share is None else _fair_sharing(share)
    return body


def _fair_sharing(share: FairSharingStatus) -> dict[str, Any]:
    body: dict[str, Any] = {"weightedShare": share.weighted_share}
    if (used := share.admission_fair_sharing_status) is not None:
        consumed = dict(used.consumed_resources)
        body["admissionFairSharingStatus"] = {"consumedResources": consumed, "lastUpdate": used.last_update}
    return body


def _usage(flavors: tuple[FlavorUsage, ...], tells_borrowed: bool) -> list[dict[str, Any]]:
    return [
        {
            "name": flavor.name,
            "resources": [
                {"name": one.name, "total": one.total, **({"borrowed": one.borrowed} if tells_borrowed else {})}
                for one in flavor.resources
            ],
        }
        for flavor in flavors
    ]
