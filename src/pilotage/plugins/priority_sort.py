"""PrioritySort: higher priority first, then who has waited longer."""

from __future__ import annotations

from pilotage.api import Plugin, QueuedPod, QueueSort


class PrioritySort(Plugin, QueueSort):
    name = "PrioritySort"

    def sort_key(self, queued: QueuedPod) -> tuple[float, ...]:
        return (-queued.pod.priority, queued.timestamp)
