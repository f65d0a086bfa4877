"""Pods that have a node and are not bound yet: a more important pod may still take their place.

Until PreBind is over the API server has not been asked to bind the pod, so that a victim is simply called back: its
waiting or its work is cancelled, and it returns to the queue. A later preemption must delete the pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from pilotage.framework.waiting_pods import WaitingPods

T = TypeVar("T")


class PreemptedInPreBind(Exception):
    """A pod of higher priority needs the place that this pod was about to take."""


class _Running(msgspec.Struct, eq=False):
    task: asyncio.Task[Any]
    reason: str = ""


class PodsInPreBind:
    """Running PreBinds by pod UID."""

    def __init__(self) -> None:
        self._running: dict[str, _Running] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._running

    async def run(self, uid: str, work: Coroutine[Any, Any, T]) -> T:
        """What `work` returns or raises; PreemptedInPreBind if it was cancelled meanwhile."""
        task = asyncio.current_task()
        assert task is not None, "PreBind runs in the task of its binding"
        running = self._running[uid] = _Running(task)
        try:
            result = await work
        except (asyncio.CancelledError, Exception) as error:
            # A cancellation of the binding as a whole, even at the same time, is no preemption.
            is_for_all = bool(running.reason and task.uncancel()) and isinstance(error, asyncio.CancelledError)
            if not running.reason or is_for_all:
                raise
            raise PreemptedInPreBind(running.reason) from error
        finally:
            del self._running[uid]
        if running.reason:
            task.uncancel()
            raise PreemptedInPreBind(running.reason)
        return result

    def cancel(self, uid: str, reason: str) -> bool:
        """Call the pod back; False if there is nothing to cancel, or not any more."""
        running = self._running.get(uid)
        if running is None or not running.task.cancel():
            return False
        running.reason = reason
        return True


class PodsBeingBound:
    """Who waits for permission, who is in PreBind, and who of them was called back."""

    def __init__(self) -> None:
        self.waiting = WaitingPods()
        self.in_pre_bind = PodsInPreBind()
        self._called_back: dict[str, list[Callable[[], None]]] = {}

    def is_called_back(self, uid: str) -> bool:
        return uid in self._called_back

    def call_back(self, uid: str, plugin: str) -> bool:
        """Let the pod give up its node to a preemptor; False if it is too late for that, or too early."""
        waiting = self.waiting.get(uid)
        if (waiting is None or not waiting.preempt("preempted")) and not self.in_pre_bind.cancel(
            uid, f"preempted by {plugin}"
        ):
            return False
        self._called_back[uid] = []
        return True

    def when_given_up(self, uid: str, then: Callable[[], None]) -> None:
        """Of a pod that was called back."""
        self._called_back[uid].append(then)

    def given_up(self, uid: str) -> None:
        """A pod that was being bound is not on its node any more: if it was called back, that is done now."""
        for then in self._called_back.pop(uid, ()):
            then()
