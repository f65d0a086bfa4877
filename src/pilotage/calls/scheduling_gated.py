"""Tell in a pod's status that it is held back before it was ever tried: a PreEnqueue plugin refused it.

It is a status patch like others and is merged with them. About pods with scheduling gates the API server says so
itself; a pod that was tried before keeps the reason of its last attempt, which tells more.
"""

from __future__ import annotations

from typing import Final

from pilotage.api.conditions import POD_SCHEDULED, PodCondition
from pilotage.calls.pod_status import PodStatusPatch
from pilotage.model import Pod

SCHEDULING_GATED: Final = "SchedulingGated"


def is_news(pod: Pod) -> bool:
    """Does nobody say yet why the pod is not scheduled?"""
    return not pod.spec.scheduling_gates and pod.status.condition(POD_SCHEDULED) is None


def gated_condition(pod: Pod, message: str, now: str) -> PodCondition:
    return PodCondition(POD_SCHEDULED, "False", SCHEDULING_GATED, message, pod.generation, now)


def scheduling_gated(pod: Pod, message: str, now: str) -> PodStatusPatch:
    """`pod` as everybody sees it; `message` says who holds it back and why."""
    return PodStatusPatch(pod, gated_condition(pod, message, now))
