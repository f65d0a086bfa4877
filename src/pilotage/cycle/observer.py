"""What others may see of a scheduler at work."""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup
from pilotage.queue.sub_queues import QueuedPodInfo


class SchedulerObserver:
    """Sees what a scheduler does, as it happens; for those who supervise or simulate one. This one does nothing."""

    def cycle_began(self, pod: Pod) -> None:
        """A cycle begins."""

    def group_cycle_began(self, group: PodGroup, pods: Sequence[Pod]) -> None:
        """A cycle of a group begins, with these members."""

    def searched(self, pod: Pod) -> None:
        """A node was found or not, and nothing has followed from it yet."""

    def attempt_failed(self, pod: Pod, why: str) -> None:
        """An attempt was in vain: the pod goes back to the queue when its cycle is over."""

    def idle(self) -> None:
        """There is nothing more to do for now."""

    def pod_moved(self, entry: QueuedPodInfo, why: str) -> None:
        """A pod has come to another part of the queue, by the event of this label or whatever else made it move."""
