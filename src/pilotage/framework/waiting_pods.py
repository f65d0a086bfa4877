"""Pods that Permit plugins hold back.

A pod waits until every plugin that asked for it has allowed it, or until one rejects it, or until the shortest of the
time-outs is over. The first answer decides; later ones change nothing.

    wait(plugins) -- allow by all --> allowed
         |---------- reject, time-out --> rejected: the pod goes back with the plugin as its rejector
         +---------- preempt --> preempted: an error, the pod is retried
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from pilotage.api.results import Reason, Reject
from pilotage.clock import Clock
from pilotage.framework.diagnosis import Rejected
from pilotage.model import Pod
from pilotage.model.durations import go_duration


class PreemptedWhileWaiting(Exception):
    """A pod of higher priority needs the place that this pod was waiting to take."""


class WaitingPod:
    """One held pod, as plugins see it."""

    def __init__(self, pod: Pod, timeouts: Mapping[str, float], now: float) -> None:
        self.pod = pod
        self._timeouts = dict(timeouts)
        self._deadlines = {plugin: now + seconds for plugin, seconds in timeouts.items()}
        self._outcome: asyncio.Future[Rejected | None] = asyncio.get_running_loop().create_future()

    @property
    def pending_plugins(self) -> list[str]:
        """Plugins that have not allowed the pod yet."""
        return sorted(self._deadlines)

    def allow(self, plugin: str) -> None:
        """This plugin lets the pod go; it goes when no plugin holds it any more."""
        self._deadlines.pop(plugin, None)
        if not self._deadlines and not self._outcome.done():
            self._outcome.set_result(None)

    def reject(self, plugin: str, message: str) -> bool:
        """Send the pod back; True if this is what ended the wait."""
        if self._outcome.done():
            return False
        self._outcome.set_result(Rejected(plugin, Reject(Reason("PermitRejected", message))))
        return True

    def preempt(self, message: str) -> bool:
        """End the wait for the sake of a more important pod; True if this is what ended it."""
        if self._outcome.done():
            return False
        self._outcome.set_exception(PreemptedWhileWaiting(message))
        return True

    async def outcome(self, clock: Clock) -> Rejected | None:
        """None when the pod is allowed, the rejection when it is not; raises PreemptedWhileWaiting."""
        async with asyncio.TaskGroup() as tasks:
            timer = tasks.create_task(self._expire(clock), name=f"permit time-out of {self.pod.key}")
            await asyncio.wait([self._outcome])
            timer.cancel()
        return self._outcome.result()

    async def _expire(self, clock: Clock) -> None:
        while self._deadlines:
            plugin, deadline = min(self._deadlines.items(), key=lambda item: (item[1], item[0]))
            await clock.sleep(max(0.0, deadline - clock.monotonic()))
            if plugin in self._deadlines and clock.monotonic() >= deadline:
                waited = go_duration(self._timeouts[plugin])
                self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")
                return


class WaitingPods:
    """All held pods by UID."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def add(self, waiting: WaitingPod) -> None:
        self._pods[waiting.pod.uid] = waiting

    def remove(self, uid: str) -> None:
        self._pods.pop(uid, None)

    def get(self, uid: str) -> WaitingPod | None:
        return self._pods.get(uid)

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def reject(self, uid: str, message: str = "removed") -> bool:
        """Reject a pod because it is gone, in no plugin's name."""
        waiting = self._pods.get(uid)
        return waiting is not None and waiting.reject("", message)
