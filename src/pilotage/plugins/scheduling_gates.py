"""SchedulingGates: a pod with scheduling gates does not enter the queue until the last gate is removed."""

from __future__ import annotations

from typing import Any

from pilotage.api import Action, Hint, Plugin, PreEnqueue, Reason, Reject, Rejection, Resource, on_event
from pilotage.model import Pod


class SchedulingGates(Plugin, PreEnqueue):
    name = "SchedulingGates"
    pure_hints = True

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        if not pod.spec.scheduling_gates:
            return None
        gates = " ".join(gate.name for gate in pod.spec.scheduling_gates)
        return Reject(Reason("SchedulingGated", f"waiting for scheduling gates: [{gates}]", unresolvable=True))

    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    def after_gates_are_gone(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.QUEUE
