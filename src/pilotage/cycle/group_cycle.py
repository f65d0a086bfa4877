"""One scheduling cycle of a pod group: all members are placed together, or none is.

    validate -> place_group -> Permit of all -> binding tasks
                    |
                    +-> PodGroupPostFilter (preemption for the group) -> failure of every member

Only when every member that has a place is permitted does the first binding begin. From then on the group has started: a
member whose binding fails gives its place back and is tried again by itself, at once, while the others run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from pilotage.api.budget import UNLIMITED, BudgetExceeded
from pilotage.api.group_members import PodGroups
from pilotage.api.pod_groups import GroupVictims, NominateMembers
from pilotage.api.state import CycleState
from pilotage.cluster.state import Cluster
from pilotage.cycle.attempts import Attempts
from pilotage.cycle.binding import BindingCycle, Decision
from pilotage.cycle.cycle_budget import CycleGuard
from pilotage.cycle.failure import SCHEDULER_ERROR, UNSCHEDULABLE, Failure, FailureHandler
from pilotage.cycle.group_conditions import GroupConditions
from pilotage.cycle.group_placement import IS_UNSCHEDULABLE, GroupOutcome, GroupPlacer, Member
from pilotage.cycle.group_preemption import GroupPreemption
from pilotage.cycle.observer import SchedulerObserver
from pilotage.cycle.placement import ProfileEngine, ProfileEngines
from pilotage.framework.diagnosis import Rejected, single_node_diagnosis
from pilotage.framework.errors import PluginError
from pilotage.framework.plugin_meter import PluginMeter
from pilotage.framework.waiting_pods import WaitingPod
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup
from pilotage.queue.pod_groups import GroupResult, GroupTicket
from pilotage.queue.scheduling_queue import SchedulingQueue
from pilotage.queue.sub_queues import Ticket

_PREEMPTS = "PreemptLowerPriority"

log = logging.getLogger(__name__)


class GroupCycle:
    """Decides about the members of a group."""

    def __init__(
        self,
        engines: ProfileEngines,
        queue: SchedulingQueue,
        failures: FailureHandler,
        attempts: Attempts,
        guard: CycleGuard,
        binding: BindingCycle,
        observer: SchedulerObserver,
        conditions: GroupConditions,
        has_own_policy: bool,
    ) -> None:
        """`has_own_policy` if a group says by itself whether it preempts (PodGroupPreemptionPolicy)."""
        self._engines = engines
        self._cluster: Cluster = engines.cluster
        self._groups = engines.cluster.index(PodGroups)
        self._queue = queue
        self._failures = failures
        self._attempts = attempts
        self._guard = guard
        self._binding = binding
        self._observer = observer
        self._conditions = conditions
        self._has_own_policy = has_own_policy
        self._failed: list[tuple[Ticket, Failure]] = []
        self._over: tuple[GroupTicket, GroupResult, bool] | None = None

    def begin(self, ticket: GroupTicket, tasks: asyncio.TaskGroup) -> None:
        """Decide about the members, and let their bindings begin."""
        started = self._guard.slow_plugins.begin()
        for member in ticket.members:
            member.started = started
        self._observer.group_cycle_began(ticket.entry.group, [member.pod for member in ticket.members])
        result, is_whole = self._run(ticket, tasks)
        self._over = (ticket, result, is_whole)

    def end(self, *, clears_nominations: bool = False) -> None:
        """Give back the tickets of members that failed, and then the group's."""
        if self._over is None:
            return
        failed, self._failed = self._failed, []
        for ticket, failure in failed:
            self._failures.handle(ticket, replace(failure, nomination="") if clears_nominations else failure)
        ticket, result, is_whole = self._over
        self._over = None
        self._queue.return_group(ticket, result, is_whole=is_whole)

    # --- the cycle ---------------------------------------------------------------------------------------------

    def _run(self, ticket: GroupTicket, tasks: asyncio.TaskGroup) -> tuple[GroupResult, bool]:
        key = ticket.entry.key
        group = self._groups.objects.get(key)
        if group is None:
            self._fail_all(ticket.members, f"pod group object not found for pod group podgroup/{key}")
            return GroupResult.FAILED, False
        problem = self._problem(group, [member.pod for member in ticket.members])
        if problem:
            self._fail_all(ticket.members, problem)
            self._conditions.failed(group, problem)
            return GroupResult.FAILED, False
        tickets = [member for member in ticket.members if not self._is_dropped(member)]
        if not tickets:
            return GroupResult.PLACED, True
        engine = self._engines[tickets[0].pod.spec.scheduler_name]
        return self._decide(group, tickets, engine, tasks)

    def _decide(
        self, group: PodGroup, tickets: Sequence[Ticket], engine: ProfileEngine, tasks: asyncio.TaskGroup
    ) -> tuple[GroupResult, bool]:
        placer = GroupPlacer(engine, self._cluster, self._groups)
        members = [Member(t.pod, CycleState(self._guard.budgets.begin(t.pod))) for t in tickets]
        by_uid = {t.uid: t for t in tickets}
        outcome = placer.place(
            group, members, searched=lambda member: self._searched(engine, by_uid[member.pod.uid], member)
        )
        if outcome.fits and not outcome.placed:
            outcome.reasons = [IS_UNSCHEDULABLE]
        if outcome.fits:
            decisions = self._permitted(group, outcome, by_uid, engine, placer)
            if outcome.fits:
                for decision in decisions:
                    tasks.create_task(self._binding.run(decision), name="binding")
                self._conditions.scheduled(group)
                placed = {decision.pod.uid for decision in decisions}
                rest = [member for member in members if member.pod.uid not in placed and member.assumed is None]
                for member in rest:
                    if member.message:
                        self._fail(by_uid[member.pod.uid], _unschedulable(member, None))
                return GroupResult.PLACED, len(decisions) == len(members)
        self._reject(group, outcome, by_uid, engine, placer)
        return GroupResult.FAILED if outcome.error else GroupResult.REJECTED, False

    def _searched(self, engine: ProfileEngine, ticket: Ticket, member: Member) -> None:
        meter = self._engines.meters[member.pod.spec.scheduler_name]
        meter.note_evaluated(member.state, member.placed is not None)
        self._attempts.searched(ticket)
        self._observer.searched(member.pod)

    def _permitted(
        self,
        group: PodGroup,
        outcome: GroupOutcome,
        tickets: dict[str, Ticket],
        engine: ProfileEngine,
        placer: GroupPlacer,
    ) -> list[Decision]:
        """Those that Permit lets go on. If too few are left, all places are given back and the outcome says why."""
        decisions = []
        refused: list[Member] = []
        for member in outcome.placed:
            assumed = member.assumed
            assert assumed is not None
            ticket = tickets[member.pod.uid]
            answer = self._permit(engine, member, assumed)
            if isinstance(answer, Failure):
                placer.give_back([member])
                refused.append(member)
                self._fail(ticket, answer)
                continue
            decisions.append(Decision(ticket, assumed, member.state, engine.runner, self._meter(member), answer))
        if refused and len(self._groups.scheduled(group.key)) < group.min_count:
            for decision in decisions:
                if decision.waiting is not None:
                    self._binding.release(decision.waiting)
            placer.give_back(outcome.placed)
            count = len(self._groups.scheduled(group.key))
            outcome.reasons = [f"minCount ({group.min_count}) cannot be satisfied: {count} scheduled, 0 remaining"]
            outcome.members = [member for member in outcome.members if member not in refused]
            return []
        for decision in decisions:
            member_pod = decision.ticket.pod
            if self._cluster.nominations.node_of(member_pod.uid):
                self._failures.clear_nomination(member_pod, decision.pod.node_name)
        return decisions

    def _meter(self, member: Member) -> PluginMeter:
        return self._engines.meters[member.pod.spec.scheduler_name]

    def _permit(self, engine: ProfileEngine, member: Member, assumed: Pod) -> Failure | WaitingPod | None:
        try:
            answer = engine.runner.permit(member.state, assumed, assumed.node_name)
        except PluginError as error:
            self._attempts.plugin_failed(member.pod, error)
            return Failure(SCHEDULER_ERROR, str(error))
        except BudgetExceeded as error:
            return Failure(SCHEDULER_ERROR, str(error))
        finally:
            member.state.budget = UNLIMITED
        if isinstance(answer, Rejected):
            diagnosis = single_node_diagnosis(answer.plugin, answer.rejection, assumed.node_name)
            return Failure(UNSCHEDULABLE, diagnosis.message(), diagnosis)
        if not answer:
            return None
        waiting = WaitingPod(assumed, answer, self._attempts.now())
        self._binding.hold(waiting)
        return waiting

    def _reject(
        self,
        group: PodGroup,
        outcome: GroupOutcome,
        tickets: dict[str, Ticket],
        engine: ProfileEngine,
        placer: GroupPlacer,
    ) -> None:
        """Nobody has a place. Ask PodGroupPostFilter, and tell everybody why."""
        before = outcome.message
        nominated: NominateMembers | None = None
        if not outcome.error and engine.profile.pod_group_post_filter:
            nominated = self._post_filter(group, outcome, engine, placer)
        if outcome.error:
            self._conditions.failed(group, outcome.error)
        else:
            self._conditions.rejected(group, outcome.message)
        for member in outcome.members:
            self._fail(tickets[member.pod.uid], self._failure(outcome, member, before, nominated))

    def _post_filter(
        self, group: PodGroup, outcome: GroupOutcome, engine: ProfileEngine, placer: GroupPlacer
    ) -> NominateMembers | None:
        attempt = _Attempt(
            group, [member.pod for member in outcome.members], engine, self._cluster, self._groups, placer
        )
        try:
            answer = engine.runner.pod_group_post_filter(attempt)
        except PluginError as error:
            self._attempts.plugin_failed(attempt.pods[0], error)
            outcome.error = str(error)
            return None
        if isinstance(answer, NominateMembers):
            outcome.reasons.append(answer.message)
            return answer
        outcome.reasons += answer
        return None

    def _failure(
        self, outcome: GroupOutcome, member: Member, before: str, nominated: NominateMembers | None
    ) -> Failure:
        if outcome.error:
            if member.error is not None and isinstance(member.error, PluginError):
                self._attempts.plugin_failed(member.pod, member.error)
            return Failure(SCHEDULER_ERROR, str(member.error) if member.error is not None else outcome.error)
        nomination = None if nominated is None else nominated.nodes.get(member.pod.uid)
        if member.placed is not None and nominated is not None:
            return Failure(UNSCHEDULABLE, outcome.message, nomination=nomination)
        if member.placed is not None:
            prefix = "" if outcome.reasons[0] == IS_UNSCHEDULABLE else f"{IS_UNSCHEDULABLE}, "
            return Failure(UNSCHEDULABLE, f"{prefix}{outcome.message}")
        return _unschedulable(member, nomination, before)

    # --- before the search -------------------------------------------------------------------------------------

    def _problem(self, group: PodGroup, queued: Sequence[Pod]) -> str:
        """What makes these pods no group; "" if nothing does."""
        pods = [*queued, *self._groups.scheduled(group.key).values()]
        first = pods[0]
        for pod in pods:
            if pod.spec.scheduler_name != first.spec.scheduler_name:
                names = f'"{first.spec.scheduler_name}" and "{pod.spec.scheduler_name}"'
                return f"all pods in a single pod group should have the same .spec.schedulerName set, got: {names}"
            if pod.priority != group.priority:
                text = "all pods in a single pod group should have the same priority as the pod group's priority"
                return f"{text}, got {pod.priority} and {group.priority}"
            if _policy(pod) != _policy(first):
                text = "all pods in a single pod group should have the same preemption policy"
                return f"{text}, got {_policy(first)} and {_policy(pod)}"
            if self._has_own_policy and _policy(pod) != (own := group.spec.preemption_policy or _PREEMPTS):
                text = "all pods in a single pod group should have the same preemption policy as the pod group's"
                return f"{text} preemption policy, got {_policy(pod)} and {own}"
        return ""

    def _is_dropped(self, ticket: Ticket) -> bool:
        """Is the member being deleted, or assumed already? Then there is nothing to do for it."""
        pod = ticket.pod
        if pod.is_terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            self._attempts.recorder.record(pod, "Warning", "FailedScheduling", "Scheduling", note)
        elif not self._cluster.is_assumed(pod.uid):
            return False
        self._failures.dismiss(ticket)
        return True

    def _fail_all(self, tickets: Sequence[Ticket], message: str) -> None:
        for ticket in tickets:
            self._fail(ticket, Failure(SCHEDULER_ERROR, message))

    def _fail(self, ticket: Ticket, failure: Failure) -> None:
        self._attempts.failed(ticket, failure)
        self._failed.append((ticket, failure))


class _Attempt:
    """Implements `pilotage.api.GroupAttempt`."""

    def __init__(
        self,
        group: PodGroup,
        pods: Sequence[Pod],
        engine: ProfileEngine,
        cluster: Cluster,
        groups: PodGroups,
        placer: GroupPlacer,
    ) -> None:
        self.group = group
        self.pods = pods
        self._search = GroupPreemption(engine, cluster, groups)
        self._placer = placer

    def search_victims(self) -> GroupVictims:
        return self._search.search(self.group, self.pods, lambda members: self._placer.place(self.group, members))


def _policy(pod: Pod) -> str:
    return pod.spec.preemption_policy or _PREEMPTS


def _unschedulable(member: Member, nomination: str | None, message: str = "") -> Failure:
    return Failure(UNSCHEDULABLE, member.message or message, member.diagnosis, nomination)
