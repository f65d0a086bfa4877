"""Write, or take back, which node a pending pod is promised: status patches that say nothing else."""

from __future__ import annotations

from pilotage.calls.pod_status import PodStatusPatch
from pilotage.model import Pod


def nominate(pod: Pod, node_name: str) -> PodStatusPatch:
    """`pod` as everybody sees it."""
    return PodStatusPatch(pod, nomination=node_name)


def clear_nomination(pod: Pod) -> PodStatusPatch:
    return PodStatusPatch(pod, nomination="")
