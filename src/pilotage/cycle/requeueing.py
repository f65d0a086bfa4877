"""Pods that are tried again although no watch event says so: by plugins, timers, and preemptors that had to wait.

A victim is chosen by what the watch of pods has shown. While that watch is interrupted, or its list is fetched anew,
pods may have left that we still see: a preemption would then evict pods in vain. A preemptor waits until the watch is
back, but never for longer than `LONGEST_HOLD_SECONDS` after the interruption began: then the view is used as it is.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from pilotage.api.events import ClusterEvent
from pilotage.clock import Clock
from pilotage.cluster.state import Nominations
from pilotage.cycle.cluster_writes import ClusterWrites
from pilotage.cycle.inbox import Inbox
from pilotage.model import Pod
from pilotage.queue.scheduling_queue import SchedulingQueue

log = logging.getLogger(__name__)

LONGEST_HOLD_SECONDS = 30.0


class Requeueing:
    """All of it may be called at any time from the same event loop."""

    def __init__(
        self, queue: SchedulingQueue, inbox: Inbox, nominations: Nominations, writes: ClusterWrites, clock: Clock
    ) -> None:
        self._queue = queue
        self._nominations = nominations
        self._writes = writes
        self._inbox = inbox
        self.view_of_pods = StaleView(clock, self.activate)

    def activate(self, uids: Iterable[str]) -> None:
        """Try these pods next, whatever they wait for."""
        self._queue.activate(uids)
        self._inbox.wake()

    def requeue_on(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Handle an event that no watch reports."""
        self._inbox.put(lambda: self._queue.on_event(event, old, new))

    def back_off(self, uids: Iterable[str]) -> None:
        """Try these pods again when their backoff is over: what was to follow from their last attempt failed."""
        self._queue.back_off(uids)
        self._inbox.wake()

    def recheck_gates(self, uids: Iterable[str]) -> None:
        """Ask PreEnqueue again about these pods, if they are gated."""
        self._queue.recheck_gates(uids)

    def release_backoff(self) -> None:
        """Try the pods whose backoff is over; call it every second."""
        if self._queue.release_backoff():
            self._inbox.wake()

    def flush_unschedulable(self) -> None:
        """Try the pods that nothing woke for too long; call it every half a minute."""
        if self._queue.flush_unschedulable():
            self._inbox.wake()

    def withdraw_nominations(self, pods: Iterable[Pod]) -> None:
        """A preemptor takes the places that are kept for these: others may want what is left of them."""
        for pod in pods:
            node_name = self._nominations.node_of(pod.uid)
            if node_name:
                self._nominations.remove(pod.uid)
                self._writes.patch_status(pod, nomination="")
                # Not during the cycle of the preemptor: to it, it is no news.
                self._inbox.put(partial(self._queue.on_nomination_removed, pod, node_name))

    def note_pods_watch(self, is_up: bool) -> None:
        """The watch of pods was interrupted, or is back; takes effect after everything that it has brought so far."""
        self._inbox.put(self.view_of_pods.resumed if is_up else self.view_of_pods.interrupted)


class StaleView:
    """Since when the watch of pods is interrupted, and who waits for it."""

    def __init__(self, clock: Clock, activate: Callable[[Iterable[str]], None]) -> None:
        self._clock = clock
        self._activate = activate
        self._since: float | None = None
        self._waiting: dict[str, None] = {}

    def interrupted(self) -> None:
        if self._since is None:
            self._since = self._clock.monotonic()

    def resumed(self) -> None:
        self._since = None
        self._release()

    def holds(self, uid: str) -> bool:
        """Whether the view is stale. Then this pod is activated when it is current again, or when the time is up."""
        if self._since is None or self._is_overdue(self._since):
            return False
        self._waiting[uid] = None
        return True

    def tick(self) -> None:
        """To be called every second or so."""
        if self._waiting and self._since is not None and self._is_overdue(self._since):
            log.warning(
                "the watch of pods is interrupted for more than %g s: %d preemptors go by what is known",
                LONGEST_HOLD_SECONDS,
                len(self._waiting),
            )
            self._release()

    def quiet_seconds(self) -> float:
        """How long `tick` will have nothing to do."""
        return 0.0 if self._waiting else math.inf

    def _is_overdue(self, since: float) -> bool:
        return self._clock.monotonic() - since >= LONGEST_HOLD_SECONDS

    def _release(self) -> None:
        waiting, self._waiting = self._waiting, {}
        if waiting:
            self._activate(waiting)
