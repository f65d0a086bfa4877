"""Pods whose PreBind is running: a more important pod may still take their place.

Until PreBind is over the API server has not been asked to bind the pod, so that a victim is simply called back: its
work is cancelled, and it returns to the queue. Whoever comes later must delete the pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import msgspec

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
            # Whoever cancels the binding as a whole, at the same time even, means something else than a preemption.
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
