"""A condition that is to be written into a pod's status."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pilotage.escaping import visible
from pilotage.model import Pod
from pilotage.model.meta import Condition

POD_SCHEDULED: Final = "PodScheduled"
BUDGET_EXCEEDED: Final = "SchedulingBudgetExceeded"
"""Why a pod is not scheduled (the reason of its condition): its last cycle cost too much, so others come first."""


def exceeded_budget(pod: Pod) -> bool:
    """Whether the last cycle of the pod cost too much, by its condition, which later leaders see, too."""
    condition = pod.status.condition(POD_SCHEDULED)
    return condition is not None and condition.reason == BUDGET_EXCEEDED


class PodCondition(msgspec.Struct, frozen=True):
    """What shall be so. The server keeps one condition of each type."""

    type: str
    status: str
    reason: str
    message: str
    observed_generation: int
    now: str
    """The time of transition, if the status is another one than before; as `pilotage.clock.rfc3339` writes it."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "message", visible(self.message))

    def is_in(self, pod: Pod) -> bool:
        """Whether the pod has it already, times aside."""
        known = pod.status.condition(self.type)
        return known is not None and (
            known.status,
            known.reason,
            known.message,
            known.observed_generation,
        ) == (self.status, self.reason, self.message, self.observed_generation)

    def as_known(self) -> Condition:
        """As it will come back from the API server."""
        return Condition(self.type, self.status, self.reason, self.message, self.observed_generation)

    def rendered(self, pod: Pod) -> dict[str, Any]:
        """As it is written over the pod's own condition of this type."""
        known = pod.status.condition(self.type)
        rendered: dict[str, Any] = {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "lastProbeTime": None,
        }
        if self.observed_generation:
            rendered["observedGeneration"] = self.observed_generation
        if known is None or known.status != self.status:
            rendered["lastTransitionTime"] = self.now
        return rendered
