"""Pods that PreEnqueue holds back: the plugins are asked, and the pod's status says which of them rejected it."""

from __future__ import annotations

from collections.abc import Mapping

from pilotage.cycle.cluster_writes import ClusterWrites
from pilotage.cycle.placement import ProfileEngine
from pilotage.framework.diagnosis import rejection_text
from pilotage.framework.errors import PluginError
from pilotage.framework.plugin_meter import PluginMeter
from pilotage.model import Pod
from pilotage.observe.plugin_errors import PluginErrors
from pilotage.queue.entry import Entry, SubQueue
from pilotage.queue.scheduling_queue import SchedulingQueue


class PreEnqueueGate:
    """Asks the PreEnqueue plugins of a pod's profile, for the queue."""

    def __init__(
        self, engines: Mapping[str, ProfileEngine], meters: Mapping[str, PluginMeter], errors: PluginErrors
    ) -> None:
        self._engines = engines
        self._meters = meters
        self._errors = errors

    def rejection(self, pod: Pod) -> tuple[str, str] | None:
        """The plugin that holds the pod back, and why; None if it may be tried."""
        name = pod.spec.scheduler_name
        try:
            rejected = self._meters[name].gate(self._engines[name].runner.pre_enqueue, pod)
        except PluginError as error:
            self._errors.note(error.plugin, error.point, error.__cause__ or error, pod.key)
            return error.plugin, str(error)
        return None if rejected is None else (rejected.plugin, rejection_text(rejected.rejection))


class DelayedGatedStatus:
    """Writes that a pod is gated, if it still is at the second tick.

    Most pods that wait for their claim to be created are gated for an instant only; to write that into their status
    would cost the API server as much as binding them.
    """

    def __init__(self, queue: SchedulingQueue, writes: ClusterWrites) -> None:
        self._queue = queue
        self._writes = writes
        self._new: dict[str, None] = {}
        self._due: dict[str, None] = {}

    def on_move(self, entry: Entry, _: str) -> None:
        """Listens to the queue."""
        uid = entry.pod.uid
        if entry.home is SubQueue.GATED and uid not in self._due:
            self._new[uid] = None

    def tick(self) -> None:
        due, self._due, self._new = self._due, self._new, {}
        for uid in due:
            entry = self._queue.entry(uid)
            if entry is not None and entry.home is SubQueue.GATED:
                self._writes.write_gated(entry.pod, entry.gate_message)
