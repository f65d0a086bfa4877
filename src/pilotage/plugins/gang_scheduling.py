"""GangScheduling: the pods of a gang start together.

A gang is gated until as many members are known as must start together. While it is placed the group's cycle asks
whether the minimum can still be reached; Permit asks once more, with what is really assumed by then.
"""

from __future__ import annotations

from typing import Final

from pilotage.api import (
    Action,
    Affected,
    CycleState,
    Handle,
    Hint,
    Permit,
    Plugin,
    PreEnqueue,
    Reason,
    Reject,
    Rejection,
    Resource,
    Wait,
    narrows,
    on_event,
)
from pilotage.api.group_members import PodGroups, group_key
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup

_PERMIT_SECONDS: Final = 300.0
_NO_PODS: Final = Affected.pods(())
_TOO_FEW: Final = Reject(
    Reason("GangIncomplete", "waiting for minCount pods from a gang to appear in scheduling queue", unresolvable=True)
)


class GangScheduling(Plugin, PreEnqueue, Permit):
    name = "GangScheduling"
    serves_fields = ("spec.schedulingGroup",)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._groups = handle.index(PodGroups)

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        if pod.spec.scheduling_group is None:
            return None
        key = group_key(pod)
        if not key:
            return None
        group = self._groups.objects.get(key)
        if group is None:
            name = key.partition("/")[2]
            text = f'waiting for pods\'s pod group "{name}" to appear in scheduling queue'
            return Reject(Reason("PodGroupMissing", text, unresolvable=True))
        if group.is_gang and self._groups.count(key, self._handle.scheduler_names) < group.min_count:
            return _TOO_FEW
        return None

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Wait | Rejection | None:
        if pod.spec.scheduling_group is None:
            return None
        key = group_key(pod)
        group = self._groups.objects.get(key) if key else None
        if group is None or not group.is_gang:
            return None
        scheduled = self._groups.scheduled(key)
        if len(scheduled) < group.min_count:
            waiting = self._groups.waiting(key)
            self._handle.activate(pod for uid, pod in waiting.items() if uid not in scheduled)
            return Wait(_PERMIT_SECONDS)
        for uid in scheduled:
            held = self._handle.waiting_pods.get(uid)
            if held is not None:
                held.allow(self.name)
        return None

    @narrows(Resource.UNSCHEDULED_POD, Action.ADD)
    def whom_a_newcomer_concerns(self, old: Pod | None, new: Pod) -> Affected:
        """No pod: the queue puts it into the entry of its group, and asks PreEnqueue."""
        return _NO_PODS

    @narrows(Resource.ASSIGNED_POD, Action.ADD)
    def whom_a_binding_concerns(self, old: Pod | None, new: Pod) -> Affected:
        return _NO_PODS if new.spec.scheduling_group is None else self._members(group_key(new))

    @narrows(Resource.POD_GROUP, Action.ADD | Action.UPDATE)
    def whom_a_group_concerns(self, old: PodGroup | None, new: PodGroup) -> Affected:
        return self._members(new.key)

    def _members(self, key: str) -> Affected:
        if not key:
            return _NO_PODS
        names = self._handle.scheduler_names
        return Affected.pods([pod.key for name in names for pod in self._groups.unscheduled(key, name).values()])

    @on_event(Resource.UNSCHEDULED_POD, Action.ADD)
    def after_another_member_came(self, pod: Pod, old: Pod | None, new: Pod) -> Hint:
        return Hint.QUEUE if group_key(new) == group_key(pod) else Hint.SKIP

    @on_event(Resource.ASSIGNED_POD, Action.ADD)
    def after_another_member_was_bound(self, pod: Pod, old: Pod | None, new: Pod) -> Hint:
        return Hint.QUEUE if group_key(new) == group_key(pod) else Hint.SKIP

    @on_event(Resource.POD_GROUP, Action.ADD)
    def after_the_group_came(self, pod: Pod, old: PodGroup | None, new: PodGroup) -> Hint:
        return Hint.QUEUE if new.key == group_key(pod) else Hint.SKIP

    @on_event(Resource.POD_GROUP, Action.UPDATE)
    def after_fewer_members_are_enough(self, pod: Pod, old: PodGroup, new: PodGroup) -> Hint:
        is_less = old.is_gang and new.is_gang and new.min_count < old.min_count
        return Hint.QUEUE if is_less and new.key == group_key(pod) else Hint.SKIP
