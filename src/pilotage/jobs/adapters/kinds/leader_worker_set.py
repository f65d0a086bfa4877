"""LeaderWorkerSet (leaderworkerset.x-k8s.io): each leader with its workers is a group of pods that serves.

Admission hands the queue of the set to its pods. Which of them belong together their own labels say, so that nothing
has to be written for that.
"""

from __future__ import annotations

from typing import Final

from pilotage.model.pod import Pod

_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
_INDEX: Final = "leaderworkerset.sigs.k8s.io/group-index"
_SIZE: Final = "leaderworkerset.sigs.k8s.io/size"


def group_of(pod: Pod) -> str:
    """The name of its group; "" if it belongs to no LeaderWorkerSet."""
    name, index = pod.labels.get(_NAME, ""), pod.labels.get(_INDEX, "")
    return f"leaderworkerset-{name}-{index}" if name and index else ""


def total_count(pod: Pod) -> str:
    """Of how many pods its group consists, as it is written; "" if nothing says so."""
    return pod.annotations.get(_SIZE, "")
