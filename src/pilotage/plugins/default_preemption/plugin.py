"""DefaultPreemption: it decides whether to preempt and where; how victims go is in `PreemptionsUnderWay`.

A preemptor gets no node from this, only a nomination: its victims are evicted without
anybody waiting for that, and when they are gone the pod is tried again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pilotage.api import (
    Action,
    Affected,
    Candidate,
    CycleState,
    Handle,
    Hint,
    Nominate,
    Plugin,
    PostFilter,
    PreemptionsUnderWay,
    PreEnqueue,
    Reason,
    Reject,
    RejectedNodes,
    Rejection,
    Resource,
    Rows,
    VictimSearch,
    narrows,
    on_event,
)
from pilotage.model import Pod
from pilotage.plugins.args import DefaultPreemptionArgs

_IN_PROGRESS = Reason(
    "PreemptionInProgress", "waiting for the preemption for this pod to be finished", unresolvable=True
)
_NEVER = Reason("PreemptionPolicyNever", "preemption: not eligible due to preemptionPolicy=Never.")
_STALE_VIEW = Reason("StaleView", "preemption: waiting for the watch of pods, which is interrupted.")
_TERMINATING = Reason("VictimTerminating", "preemption: not eligible due to a terminating pod on the nominated node.")


class DefaultPreemption(Plugin, PreEnqueue, PostFilter):
    name = "DefaultPreemption"
    pure_hints = True
    args_type = DefaultPreemptionArgs

    def __init__(self, handle: Handle, args: DefaultPreemptionArgs) -> None:
        self._handle = handle
        self._args = args
        self._under_way = PreemptionsUnderWay(handle, self.name)

    # --- the gate ----------------------------------------------------------------------------------------------

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        return Reject(_IN_PROGRESS) if self._under_way.holds_back(pod) else None

    @on_event(Resource.ASSIGNED_POD, Action.DELETE)
    def after_pod_left(self, pod: Pod, old: Pod, new: Any) -> Hint:
        """Never by itself a reason to retry: the event only makes the queue ask `pre_enqueue` again."""
        return Hint.SKIP

    @narrows(Resource.ASSIGNED_POD, Action.DELETE)
    def whom_it_lets_in(self, old: Pod, new: Any) -> Affected:
        return Affected.pods(self._under_way.waking(old))

    # --- the decision ------------------------------------------------------------------------------------------

    def post_filter(self, state: CycleState, pod: Pod, rejected: RejectedNodes) -> Nominate | Rejection:
        known: Pod | None = self._handle.objects("Pod").get(pod.key)
        if known is None or known.uid != pod.uid:
            raise LookupError(f'preemption: pod "{pod.name}" not found')
        objection = self._objection(known, rejected)
        if objection is not None:
            self._handle.count("scheduler_preemption_attempts_total")
            return Reject(objection)
        search = self._search(state, known, rejected.resolvable_rows())
        # Not before: if extenders have to be asked about what was found, this is run again with their answer.
        self._handle.count("scheduler_preemption_attempts_total")
        candidate = search.best
        if candidate is None and search.errors:
            raise RuntimeError(f"preemption: {_joined(search.errors)}")
        if candidate is None:
            cleared = None if search.is_reviewed else ""
            return Nominate(cleared, f"preemption: {search.message()}", search.rejectors())
        if self._would_evict(candidate) and self._handle.awaits_view(known):
            return Reject(_STALE_VIEW)
        self._handle.observe("scheduler_preemption_victims", len(candidate.victims))
        self._under_way.start(known, candidate)
        return Nominate(
            candidate.node_name,
            f"preemption: found a potential placement for pod on node {candidate.node_name}, "
            f"preempting {len(candidate.victims)} victims",
        )

    def _objection(self, pod: Pod, rejected: RejectedNodes) -> Reason | None:
        """Why this pod must not preempt at all."""
        if pod.spec.preemption_policy == "Never":
            return _NEVER
        node = self._handle.node(self._handle.nominated_node(pod))
        if node is None or rejected.rejection(node.name).unresolvable:
            return None
        is_leaving = any(other.priority < pod.priority and _is_being_preempted(other) for other in node.pods)
        return _TERMINATING if is_leaving else None

    @staticmethod
    def _would_evict(candidate: Candidate) -> bool:
        return not all(victim.is_terminating for victim in candidate.victims)

    def _search(self, state: CycleState, pod: Pod, rows: Rows) -> VictimSearch:
        """Where to preempt, or why nothing helps."""
        if len(rows):
            # Not always the same nodes are to be disturbed.
            start = self._handle.rng.randrange(len(rows))
            rows = np.concatenate((rows[start:], rows[:start]))
        return self._handle.search_victims(state, pod, rows, self._wanted(len(rows)))

    def _wanted(self, potential: int) -> int:
        """How many candidates are enough."""
        part = potential * self._args.min_candidate_nodes_percentage // 100
        return min(max(part, self._args.min_candidate_nodes_absolute), potential)


def _is_being_preempted(pod: Pod) -> bool:
    if not pod.is_terminating:
        return False
    target = pod.status.condition("DisruptionTarget")
    return target is not None and target.status == "True" and target.reason == "PreemptionByScheduler"


def _joined(errors: Any) -> str:
    texts = list(dict.fromkeys(str(error) for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
