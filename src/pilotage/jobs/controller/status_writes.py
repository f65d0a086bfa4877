"""Statuses on their way to the API server: at most one write per object, always the newest content.

A workload's status is written for the version of the object that the engine has taken in, so that what others write
(admission checks, users) is never overwritten unseen. A conflict with a newer version is settled when that version has
arrived and the engine has taken it in; then the status is written as it is by then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from pilotage.api.calls import CallDropped, Ending, Outcome, is_conflict, is_not_found
from pilotage.calls.queueing_status import QueueingStatus
from pilotage.calls.synchronous_calls import Calls
from pilotage.clock import Clock
from pilotage.jobs.controller.release_order import ReleaseOrder
from pilotage.jobs.controller.retries import Retries
from pilotage.jobs.controller.status_bodies import queue_status, without_reservation, workload_status
from pilotage.jobs.engine import JobQueueing
from pilotage.model import KINDS
from pilotage.model.kueue import ReclaimablePod, Workload, WorkloadStatus
from pilotage.model.meta import TimedCondition

log = logging.getLogger(__name__)

_FORBIDDEN = 403
_REJECTED_FOR_GOOD = frozenset({400, _FORBIDDEN, 422})


@dataclass(slots=True)
class _Overlay:
    """What the reconciler of the job says in the status, besides the engine."""

    condition: TimedCondition | None = None
    reclaimable: tuple[ReclaimablePod, ...] | None = None


@dataclass(slots=True)
class _Pending:
    is_in_flight: bool = False
    is_outdated: bool = False
    """Something changed since the write was sent."""
    waits_for_newer: bool = False
    sent_version: str = ""
    sent: Workload | None = None
    """As it was sent; None if that had to wait for others after all."""


@dataclass(slots=True)
class StatusWrites:
    engine: JobQueueing
    calls: Calls
    clock: Clock
    on_written: Callable[[str], None]
    """Called with the key of a workload whose status the API server has now, or will never have."""
    on_failed: Callable[[str, Exception], None] = lambda key, error: None
    """Called with the key of a workload (or queue) whose status could not be dealt with, for reasons of our own."""
    wake: Callable[[], None] = lambda: None
    """Called when something is to be tried again later than now."""
    retries: Retries[str] = field(init=False)
    _order: ReleaseOrder = field(init=False)
    _pending: dict[str, _Pending] = field(default_factory=dict)
    _versions: dict[str, str] = field(default_factory=dict)
    _overlays: dict[str, _Overlay] = field(default_factory=dict)
    _queue_bodies: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """What was last written."""
    _tasks: asyncio.TaskGroup | None = None

    def __post_init__(self) -> None:
        self.retries = Retries(self.clock, self.wake)
        self._order = ReleaseOrder(self._quota_tree)

    def _quota_tree(self, cluster_queue: str) -> str:
        # The engine is another one when the first list has come, and after errors.
        return self.engine.quota_tree(cluster_queue)

    def start(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks

    # --- workloads ---------------------------------------------------------------------------------------------

    def pending_keys(self) -> list[str]:
        """Workloads whose status the API server does not have yet."""
        return list(self._pending)

    def is_pending(self, key: str) -> bool:
        """Whether the API server does not have the status yet."""
        return key in self._pending

    def seen(self, workload: Workload) -> None:
        """The engine has taken in this version."""
        key, version = workload.key, workload.resource_version
        if _is_newer(version, self._versions.get(key, "")):
            self._versions[key] = version
            self._let_go(self._order.stored(workload))
        pending = self._pending.get(key)
        if pending is not None and pending.waits_for_newer and version != pending.sent_version:
            pending.waits_for_newer = False
            self._send(key, pending)

    def gone(self, key: str) -> None:
        self._versions.pop(key, None)
        self._overlays.pop(key, None)
        self.retries.succeeded(key)
        pending = self._pending.get(key)
        if pending is not None and not pending.is_in_flight:
            del self._pending[key]
        self._let_go(self._order.gone(key))

    def decided(self, workloads: Iterable[Workload]) -> None:
        """The engine has other statuses than the API server: all of one turn, so that each finds what it waits for."""
        keys = []
        for workload in workloads:
            self._let_go(self._order.decided(workload))
            keys.append(workload.key)
        for key in keys:
            self.changed(key)

    def changed(self, key: str) -> None:
        """The engine has another status than the API server."""
        pending = self._pending.setdefault(key, _Pending())
        if pending.is_in_flight:
            pending.is_outdated = True
        elif not pending.waits_for_newer:
            self._send(key, pending)

    def try_again(self) -> None:
        for key in self.retries.take_due():
            if key in self._pending:
                self._send(key, self._pending[key])
            else:
                # It was rejected: whoever finds something missing may try to have it written again.
                self.on_written(key)

    def set_condition(self, key: str, condition: TimedCondition) -> None:
        overlay = self._overlays.setdefault(key, _Overlay())
        if overlay.condition is not None and _says_the_same(overlay.condition, condition) and self._is_unseen(key):
            return
        overlay.condition = condition
        self.changed(key)

    def set_reclaimable(self, key: str, pods: tuple[ReclaimablePod, ...]) -> None:
        overlay = self._overlays.setdefault(key, _Overlay())
        if overlay.reclaimable == pods and self._is_unseen(key):
            return
        overlay.reclaimable = pods
        self.changed(key)

    def _is_unseen(self, key: str) -> bool:
        """Whether we have written a version that the watch has yet to bring.

        Until then the engine's workload lacks what was written: whoever compares it with what is to be written would
        write it again, and again as soon as that is done.
        """
        workload = self.engine.workload(key)
        return workload is not None and _is_newer(self._versions.get(key, ""), workload.resource_version)

    def _send(self, key: str, pending: _Pending) -> None:
        workload = self.engine.workload(key)
        if self._tasks is None or (workload is not None and not self._order.may_go(workload)):
            return
        pending.is_in_flight, pending.is_outdated = True, False
        self._tasks.create_task(self._contained(key, pending), name="workload status")

    async def _contained(self, key: str, pending: _Pending) -> None:
        try:
            await self._write(key, pending)
        except Exception as error:
            pending.is_in_flight = False
            self.retries.failed(key)
            self.on_failed(key, error)

    async def _write(self, key: str, pending: _Pending) -> None:
        namespace, _, name = key.rpartition("/")

        def body() -> dict[str, Any] | None:
            workload = self.engine.workload(key)
            pending.sent = None
            if workload is None or not self._order.may_go(workload):
                return None
            pending.is_outdated = self._order.exchanges(workload)
            if pending.is_outdated:
                workload = replace(workload, status=without_reservation(workload.status))
            pending.sent = workload
            pending.sent_version = self._versions.get(key, workload.resource_version)
            metadata = {"uid": workload.uid, "resourceVersion": pending.sent_version}
            return {"metadata": metadata, "status": workload_status(self._with_overlay(workload))}

        call = QueueingStatus(KINDS["workloads"], namespace, name, body)
        try:
            await self.calls.perform(call)
        except Exception as error:
            pending.is_in_flight = False
            self._failed(key, pending, error)
            return
        pending.is_in_flight = False
        if _is_newer(call.written_version, self._versions.get(key, "")):
            self._versions[key] = call.written_version
        self.retries.succeeded(key)
        if pending.sent is not None:
            self._let_go(self._order.stored(pending.sent))
        is_unsent = pending.sent is None and self.engine.workload(key) is not None
        if pending.is_outdated or is_unsent:
            self._send(key, pending)
        else:
            self._pending.pop(key, None)
            self.on_written(key)

    def _let_go(self, keys: Iterable[str]) -> None:
        """What these waited for is stored."""
        for key in keys:
            pending = self._pending.get(key)
            if pending is not None and not pending.is_in_flight and not pending.waits_for_newer:
                self._send(key, pending)

    def _failed(self, key: str, pending: _Pending, error: Exception) -> None:
        code = getattr(error, "code", None)
        if is_not_found(error) or self.engine.workload(key) is None:
            self._pending.pop(key, None)
            self.on_written(key)
            self._let_go(self._order.gone(key))
        elif is_conflict(error):
            if self._versions.get(key, "") != pending.sent_version:
                self._send(key, pending)
            else:
                pending.waits_for_newer = True
        elif code == _FORBIDDEN and self._order.is_release(key):
            # Whoever may not write yet may do so later. Until then the quota is not free for others.
            log.warning("status refused, quota is not given back yet: workload=%s error=%s", key, error)
            self.retries.failed(key)
        elif code in _REJECTED_FOR_GOOD:
            log.warning("status refused: workload=%s error=%s", key, error)
            self._pending.pop(key, None)
            # Nothing is looked at again at once: that would write, and be rejected, without end.
            self.engine.write_rejected(key, str(error), self.retries.failed(key))
            self._let_go(self._order.rejected(key))
        else:
            log.info("status could not be written yet: workload=%s error=%s", key, error)
            self.retries.failed(key)

    def _with_overlay(self, workload: Workload) -> WorkloadStatus:
        overlay, status = self._overlays.get(workload.key), workload.status
        if overlay is None:
            return status
        if overlay.condition is not None:
            others = tuple(one for one in status.conditions if one.type != overlay.condition.type)
            status = replace(status, conditions=(*others, overlay.condition))
        if overlay.reclaimable is not None:
            status = replace(status, reclaimable_pods=overlay.reclaimable)
        return status

    # --- queues ------------------------------------------------------------------------------------------------

    def queue_changed(self, plural: str, key: str) -> None:
        """No other process writes these. The call queue keeps one pending call for each, whose body is made when it is
        sent: changes that come before that are one write."""
        namespace, _, name = key.rpartition("/")
        is_local, queue, sent = plural == "localqueues", (plural, key), dict[str, Any]()

        def body() -> dict[str, Any] | None:
            try:
                status = self.engine.local_queue_status(key) if is_local else self.engine.cluster_queue_status(name)
            except KeyError:
                return None  # deleted meanwhile
            wanted = queue_status(status, tells_borrowed=not is_local)
            # Counts often come back to what they were before anybody has read them.
            if self._queue_bodies.get(queue) == wanted:
                return None
            sent["status"] = wanted
            return sent

        def over(outcome: Outcome) -> None:
            error = outcome.error
            if outcome.ending is Ending.DONE and sent:
                self._queue_bodies[queue] = sent["status"]
            elif error is not None:
                self._queue_bodies.pop(queue, None)
                if not is_not_found(error) and not isinstance(error, CallDropped):
                    log.info("status of a queue was not written: queue=%s error=%s", key, error)

        self.calls.submit(QueueingStatus(KINDS[plural], namespace, name, body), over)


def _says_the_same(one: TimedCondition, other: TimedCondition) -> bool:
    """Whatever their times are."""
    return replace(one, last_transition_time=other.last_transition_time) == other


def _is_newer(version: str, than: str) -> bool:
    """Versions of one object are numbers that grow; of a server for which they are not, the last one counts."""
    if version.isdigit() and than.isdigit():
        return int(version) > int(than)
    return bool(version)
