"""DefaultPreemption: it decides whether to preempt and where; how victims go is in `PreemptionsUnderWay`.

A preemptor gets no node from this, only a nomination: its victims are evicted without
anything waiting for that, and when they are gone the pod is tried again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pilotage.api import (
    Action,
    Affected,
    Candidate,
    CycleState,
    GroupAttempt,
    Handle,
    Hint,
    Nominate,
    NominateMembers,
    Plugin,
    PodGroupPostFilter,
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
from pilotage.model.pod_group import PodGroup
from pilotage.plugins.args import DefaultPreemptionArgs

_IN_PROGRESS = Reason(
    "PreemptionInProgress", "waiting for the preemption for this pod to be finished", unresolvable=True
)
_GROUP_IN_PROGRESS = Reason(
    "PreemptionInProgress", "waiting for the preemption for this pod group to be finished", unresolvable=True
)
_GROUP_NEVER = Reason("PreemptionPolicyNever", "pod group preemption: not eligible due to preemptionPolicy=Never.")
_NEVER = Reason("PreemptionPolicyNever", "preemption: not eligible due to preemptionPolicy=Never.")
_STALE_VIEW = Reason("StaleView", "preemption: waiting for the watch of pods, which is interrupted.")
_TERMINATING = Reason("VictimTerminating", "preemption: not eligible due to a terminating pod on the nominated node.")


class DefaultPreemption(Plugin, PreEnqueue, PostFilter, PodGroupPostFilter):
    name = "DefaultPreemption"
    pure_hints = True
    args_type = DefaultPreemptionArgs

    def __init__(self, handle: Handle, args: DefaultPreemptionArgs) -> None:
        self._handle = handle
        self._args = args
        self._under_way = PreemptionsUnderWay(handle, self.name)
        self._schedules_groups = handle.watches("PodGroup")

    # --- the gate ----------------------------------------------------------------------------------------------

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        if self._under_way.holds_back(pod):
            return Reject(_IN_PROGRESS)
        if pod.spec.scheduling_group is None:
            return None
        group = self._group_of(pod)
        is_waiting = group is not None and self._under_way.holds_back_group(group.uid)
        return Reject(_GROUP_IN_PROGRESS) if is_waiting else None

    def _group_of(self, pod: Pod) -> PodGroup | None:
        named = pod.spec.scheduling_group
        if named is None or not self._schedules_groups:
            return None
        found: PodGroup | None = self._handle.objects("PodGroup").get(f"{pod.namespace}/{named.pod_group_name}")
        return found

    @on_event(Resource.ASSIGNED_POD, Action.DELETE)
    def after_pod_left(self, pod: Pod, old: Pod, new: Any) -> Hint:
        """Never by itself a reason to retry: the event only makes the queue ask `pre_enqueue` again."""
        return Hint.SKIP

    @narrows(Resource.ASSIGNED_POD, Action.DELETE)
    def whom_it_lets_in(self, old: Pod, new: Any) -> Affected:
        return Affected.pods(self._under_way.waking(old))

    # --- groups ------------------------------------------------------------------------------------------------

    def pod_group_post_filter(self, attempt: GroupAttempt) -> NominateMembers | Rejection:
        """Victims for the whole group; members wait on the nodes where they will be, also those that need no victim."""
        group, pods = attempt.group, attempt.pods
        if any(pod.spec.preemption_policy == "Never" for pod in pods):
            return Reject(_GROUP_NEVER)
        if any(self._is_making_room(group, pod) for pod in pods):
            return NominateMembers({}, "pod group preemption: ongoing preemption on nominated nodes")
        started = self._handle.clock.monotonic()
        found = attempt.search_victims()
        self._measure("podgroup", "Unschedulable" if found.message else "Success", started)
        if found.message:
            return Reject(Reason("NoVictims", f"pod group preemption: {found.message}"))
        if any(not victim.is_terminating for victim in found.victims) and self._handle.awaits_view(pods[0]):
            return Reject(_STALE_VIEW)
        self._under_way.start_for_group(group, pods, found)
        self._handle.observe("scheduler_workload_preemption_victims", len(found.victims))
        self._count("podgroup", found.victims, found.violations)
        text = f"pod group preemption: found a placement for podgroup, preempting {len(found.victims)} victims"
        return NominateMembers({pod.uid: node for pod, node in found.places}, text)

    def _measure(self, preemptor: str, result: str, started: float) -> None:
        seconds = self._handle.clock.monotonic() - started
        self._handle.observe("scheduler_preemption_evaluation_duration_seconds", seconds, preemptor, result)

    def _count(self, preemptor: str, victims: Sequence[Pod], violations: int) -> None:
        """The budgets that are overruled, and the groups that are disrupted: as a whole, or one of their pods."""
        if violations:
            self._handle.count("scheduler_preemption_pdb_violations_total", preemptor, amount=violations)
        groups = ((pod, group) for pod in victims if (group := self._group_of(pod)) is not None)
        units = {group.uid if group.is_disrupted_as_one else pod.uid for pod, group in groups}
        if units:
            self._handle.observe("scheduler_preemption_workload_disruptions", len(units), preemptor)

    def _is_making_room(self, group: PodGroup, pod: Pod) -> bool:
        """Whether a victim is still leaving the node that the member waits for."""
        node = self._handle.node(self._handle.nominated_node(pod))
        if node is None:
            return False
        return any(_is_being_preempted(other) and self._priority(other) < group.priority for other in node.pods)

    def _priority(self, pod: Pod) -> int:
        group = self._group_of(pod)
        return pod.priority if group is None else group.priority

    # --- the decision ------------------------------------------------------------------------------------------

    def post_filter(self, state: CycleState, pod: Pod, rejected: RejectedNodes) -> Nominate | Rejection:
        known: Pod | None = self._handle.objects("Pod").get(pod.key)
        if known is None or known.uid != pod.uid:
            raise LookupError(f'preemption: pod "{pod.name}" not found')
        objection = self._objection(known, rejected)
        if objection is not None:
            self._handle.count("scheduler_preemption_attempts_total")
            return Reject(objection)
        started = self._handle.clock.monotonic()
        search = self._search(state, known, rejected.resolvable_rows())
        self._measure("pod", "Unschedulable" if search.best is None else "Success", started)
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
        self._count("pod", candidate.victims, candidate.violations)
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
