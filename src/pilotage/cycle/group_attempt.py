"""A group in its cycle: what makes it one that can be scheduled, and what its cycle works with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from pilotage.api.pod_groups import GroupVictims
from pilotage.api.state import CycleState
from pilotage.cycle.group_placement import GroupPlacer, Member
from pilotage.cycle.group_preemption import GroupPreemption
from pilotage.cycle.placement import ProfileEngine
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup
from pilotage.queue.pod_groups import GroupTicket
from pilotage.queue.sub_queues import Ticket

_PREEMPTS = "PreemptLowerPriority"
_SAME = "all pods in a single pod group should have the same"


class AttemptOfGroup(Struct, eq=False):
    """A group in its cycle. Implements `pilotage.api.GroupAttempt`."""

    group: PodGroup
    ticket: GroupTicket
    tickets: dict[str, Ticket]
    """By UID, of the members that are to be placed."""
    engine: ProfileEngine
    placer: GroupPlacer
    preemption: GroupPreemption
    members: list[Member]

    @property
    def pods(self) -> Sequence[Pod]:
        return [member.pod for member in self.members]

    @property
    def profile(self) -> str:
        return self.engine.profile.scheduler_name

    @property
    def states(self) -> Sequence[CycleState]:
        return [member.state for member in self.members]

    def search_victims(self) -> GroupVictims:
        return self.preemption.search(self.group, self.members)

    def ticket_of(self, member: Member) -> Ticket:
        return self.tickets[member.pod.uid]


def problem_of(group: PodGroup, pods: Iterable[Pod], *, has_own_policy: bool) -> str:
    """What keeps these pods, queued and running ones, from being a group; "" if nothing does.

    With `has_own_policy` a group says by itself whether it preempts (PodGroupPreemptionPolicy). API servers that do not
    know that field leave it empty: then the pods say it.
    """
    own = group.spec.preemption_policy if has_own_policy else None
    first: Pod | None = None
    for pod in pods:
        first = first or pod
        if pod.spec.scheduler_name != first.spec.scheduler_name:
            names = f'"{first.spec.scheduler_name}" and "{pod.spec.scheduler_name}"'
            return f"{_SAME} .spec.schedulerName set, got: {names}"
        if pod.priority != group.priority:
            return f"{_SAME} priority as the pod group's priority, got {pod.priority} and {group.priority}"
        if _policy(pod) != _policy(first):
            return f"{_SAME} preemption policy, got {_policy(first)} and {_policy(pod)}"
        if own is not None and _policy(pod) != own:
            text = f"{_SAME} preemption policy as the pod group's preemption policy"
            return f"{text}, got {_policy(pod)} and {own}"
    return ""


def _policy(pod: Pod) -> str:
    return pod.spec.preemption_policy or _PREEMPTS
