"""Statuses of workloads on their way to the API server.

The call queue sees to it that an object has at most one write pending and one in flight, and tries again what failed;
what is written is made when its turn comes, so that it is always the newest. What is left to do here: a workload's
status is written for the version of the object that the engine has taken in, so that what others write (admission
checks, users) is never overwritten unseen. A conflict with a newer version is settled when that version has arrived and
the engine has taken it in; if the watch does not bring it, it is read. And quota is given back before it is given away
(`release_order`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from msgspec.structs import replace

from pilotage.api.calls import Ending, Outcome, is_conflict, is_not_found
from pilotage.calls.queueing_status import QueueingStatus, WorkloadReading
from pilotage.calls.synchronous_calls import Calls
from pilotage.clock import Clock
from pilotage.jobs.controller.release_order import ReleaseOrder
from pilotage.jobs.controller.retries import Retries
from pilotage.jobs.controller.status_bodies import without_reservation, workload_status
from pilotage.jobs.engine import JobQueueing
from pilotage.model import KINDS
from pilotage.model.kueue import ReclaimablePod, Workload, WorkloadStatus
from pilotage.model.meta import TimedCondition

log = logging.getLogger(__name__)

_FORBIDDEN = 403
_REJECTED_FOR_GOOD = frozenset({400, _FORBIDDEN, 422})


class StatusListener(Protocol):
    """Who wants to know what becomes of statuses."""

    def on_written(self, key: str) -> None:
        """The API server has the status of this workload now, or will never have it."""

    def on_failed(self, key: str, error: Exception) -> None:
        """The status of a workload could not be dealt with, for reasons of our own."""

    def on_read(self, workload: Workload) -> None:
        """The API server has this version, which the watch has not brought."""

    def wake(self) -> None:
        """Something is to be tried again later than now."""


@dataclass(slots=True)
class _Overlay:
    """What the reconciler of the job says in the status, besides the engine."""

    condition: TimedCondition | None = None
    reclaimable: tuple[ReclaimablePod, ...] | None = None


@dataclass(slots=True, eq=False)
class _Attempt:
    """One call, and what it has sent last."""

    key: str
    sent: Workload | None = None
    """None if that had to wait for others after all."""
    sent_version: str = ""
    is_partial: bool = False
    """It only takes back an admission; another one is to be written after it."""


@dataclass(slots=True)
class _Pending:
    newest: _Attempt | None = None
    """Its outcome decides; None if the newest status has not been handed to the call queue yet."""
    waits_for_newer: bool = False

    @property
    def sent_version(self) -> str:
        """That the newest was sent for."""
        return "" if self.newest is None else self.newest.sent_version


@dataclass(slots=True)
class StatusWrites:
    engine: JobQueueing
    calls: Calls
    clock: Clock
    listener: StatusListener
    retries: Retries[str] = field(init=False)
    _order: ReleaseOrder = field(init=False)
    _pending: dict[str, _Pending] = field(default_factory=dict)
    _versions: dict[str, str] = field(default_factory=dict)
    _overlays: dict[str, _Overlay] = field(default_factory=dict)
    _is_over: bool = False

    def __post_init__(self) -> None:
        self.retries = Retries(self.clock, self.listener.wake)
        self._order = ReleaseOrder(self._quota_tree)

    def _quota_tree(self, cluster_queue: str) -> str:
        # The engine is another one when the first list has come, and after errors.
        return self.engine.quota_tree(cluster_queue)

    def end(self) -> None:
        """We lead no more: what is still in the call queue is not written."""
        self._is_over = True

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
            self.retries.succeeded(key)
            self._send(key, pending)

    def gone(self, key: str) -> None:
        self._versions.pop(key, None)
        self._overlays.pop(key, None)
        self._pending.pop(key, None)
        self.retries.succeeded(key)
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
        if not pending.waits_for_newer:
            self._send(key, pending)

    def try_again(self) -> None:
        for key in self.retries.take_due():
            pending = self._pending.get(key)
            if pending is None:
                # It was rejected: what is still missing may be written again.
                self.listener.on_written(key)
            elif pending.waits_for_newer:
                self._read(key, pending)
            else:
                self._send(key, pending)

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

        Until then the engine's workload lacks what was written: a comparison with what is to be written would
        write it again, and again as soon as that is done.
        """
        workload = self.engine.workload(key)
        return workload is not None and _is_newer(self._versions.get(key, ""), workload.resource_version)

    def _send(self, key: str, pending: _Pending) -> None:
        """Hand a call to the call queue: it takes the place of one that waits, and waits for one in flight."""
        pending.waits_for_newer, pending.newest = False, None
        workload = self.engine.workload(key)
        if self._is_over or (workload is not None and not self._order.may_go(workload)):
            return
        pending.newest = attempt = _Attempt(key)
        namespace, _, name = key.rpartition("/")
        call = QueueingStatus(KINDS["workloads"], namespace, name, partial(self._body, attempt))
        self.calls.submit(call, partial(self._contained, attempt, call))

    def _body(self, attempt: _Attempt) -> dict[str, Any] | None:
        """What to write, as it is when the turn of a call has come."""
        attempt.sent, workload = None, self.engine.workload(attempt.key)
        if self._is_over or workload is None or not self._order.may_go(workload):
            return None
        attempt.is_partial = self._order.exchanges(workload)
        if attempt.is_partial:
            workload = replace(workload, status=without_reservation(workload.status))
        attempt.sent = workload
        attempt.sent_version = self._versions.get(attempt.key, workload.resource_version)
        metadata = {"uid": workload.uid, "resourceVersion": attempt.sent_version}
        return {"metadata": metadata, "status": workload_status(self._with_overlay(workload))}

    def _contained(self, attempt: _Attempt, call: QueueingStatus, outcome: Outcome) -> None:
        if outcome.ending is Ending.OVERWRITTEN or self._is_over:
            return
        try:
            self._over(attempt, call, outcome)
        except Exception as error:
            self.retries.failed(attempt.key)
            self.listener.on_failed(attempt.key, error)

    def _over(self, attempt: _Attempt, call: QueueingStatus, outcome: Outcome) -> None:
        key, pending = attempt.key, self._pending.get(attempt.key)
        is_newest = pending is not None and pending.newest is attempt
        if outcome.error is None:
            workload = self.engine.workload(key)
            if attempt.sent is not None and workload is not None and workload.uid == attempt.sent.uid:
                if _is_newer(call.written_version, self._versions.get(key, "")):
                    self._versions[key] = call.written_version
                self._let_go(self._order.stored(attempt.sent))
            if pending is None or not is_newest:
                return
            self.retries.succeeded(key)
            if attempt.is_partial or (attempt.sent is None and workload is not None):
                self._send(key, pending)
            else:
                del self._pending[key]
                self.listener.on_written(key)
        elif pending is not None and is_newest:
            self._failed(key, pending, attempt, outcome.error)

    def _let_go(self, keys: Iterable[str]) -> None:
        """What these waited for is stored."""
        for key in keys:
            pending = self._pending.get(key)
            if pending is not None and pending.newest is None:
                self._send(key, pending)

    def _failed(self, key: str, pending: _Pending, attempt: _Attempt, error: Exception) -> None:
        code = getattr(error, "code", None)
        if is_not_found(error) or self.engine.workload(key) is None:
            del self._pending[key]
            self.listener.on_written(key)
            self._let_go(self._order.gone(key))
        elif is_conflict(error):
            if self._versions.get(key, "") != attempt.sent_version:
                self._send(key, pending)
            else:
                pending.waits_for_newer = True
                self.retries.failed(key)
        elif code == _FORBIDDEN and self._order.is_release(key):
            # What may not be written yet may be later. Until then the quota is not free for others.
            log.warning("status rejected, quota is not given back yet: workload=%s error=%s", key, error)
            self.retries.failed(key)
        elif code in _REJECTED_FOR_GOOD:
            log.warning("status rejected: workload=%s error=%s", key, error)
            del self._pending[key]
            # Nothing is looked at again at once: that would write, and be rejected, without end.
            self.engine.write_rejected(key, str(error), self.retries.failed(key))
            self._let_go(self._order.rejected(key))
        else:
            log.info("status could not be written yet: workload=%s error=%s", key, error)
            self.retries.failed(key)

    def _read(self, key: str, pending: _Pending) -> None:
        """There was a conflict, and the watch has brought no newer version: find out what the API server has."""
        namespace, _, name = key.rpartition("/")
        call, attempt = WorkloadReading(namespace, name), pending.newest

        def over(outcome: Outcome) -> None:
            still_waits = self._pending.get(key) is pending and pending.waits_for_newer and pending.newest is attempt
            if not still_waits or self._is_over:
                return
            self.retries.failed(key)
            if call.found is not None and call.found.resource_version == pending.sent_version:
                self._send(key, pending)
            elif call.found is not None:
                self.listener.on_read(call.found)

        self.calls.submit(call, over)

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


def _says_the_same(one: TimedCondition, other: TimedCondition) -> bool:
    """Whatever their times are."""
    return replace(one, last_transition_time=other.last_transition_time) == other


def _is_newer(version: str, than: str) -> bool:
    """Versions of one object are numbers that grow; of a server for which they are not, the last one counts."""
    if version.isdigit() and than.isdigit():
        return int(version) > int(than)
    return bool(version)
