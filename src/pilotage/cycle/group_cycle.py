"""One scheduling cycle of a pod group: all members are placed together, or none is.

    validate -> ask extenders -> GroupPlacer -> Permit of all -> binding tasks
                                     |
                                     +-> PodGroupPostFilter (preemption for the group) -> failure of every member

Only when every member that has a place is permitted does the first binding begin. From then on the group has started: a
member whose binding fails gives its place back and is tried again by itself, at once, while the others run.

A cycle is synchronous. If extenders have to be asked about members, it ends with the questions; no member holds a place
meanwhile, and with the answers it is run from the start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from msgspec import Struct

from pilotage.api.budget import UNLIMITED, BudgetExceeded
from pilotage.api.conditions import BUDGET_EXCEEDED
from pilotage.api.group_members import PodGroups
from pilotage.api.pod_groups import NominateMembers
from pilotage.api.state import CycleState
from pilotage.cycle.advised_placement import question_about_member, rejected_nodes_in
from pilotage.cycle.binding import BindingDecision, CycleResults
from pilotage.cycle.consultation import Consultation, GroupAnswered
from pilotage.cycle.cycle_budget import CycleGuard
from pilotage.cycle.failure import SCHEDULER_ERROR, UNSCHEDULABLE, Failure
from pilotage.cycle.group_attempt import AttemptOfGroup, problem_of
from pilotage.cycle.group_conditions import GroupConditions
from pilotage.cycle.group_placement import IS_UNSCHEDULABLE, GroupOutcome, GroupPlacer, Member, Quorum
from pilotage.cycle.group_preemption import GroupPreemption
from pilotage.cycle.group_reservation import GroupReservations, ReservationSettings, nodes_to_keep
from pilotage.cycle.placement import ProfileEngine, ProfileEngines
from pilotage.extenders.extenders import ExtenderAdvice
from pilotage.framework.diagnosis import Rejected, single_node_diagnosis
from pilotage.framework.errors import PluginError
from pilotage.framework.waiting_pods import WaitingPod
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup
from pilotage.queue.pod_groups import GroupResult, GroupTicket
from pilotage.queue.sub_queues import Ticket


class GroupSettings(Struct, frozen=True):
    """What can be chosen about groups."""

    has_own_policy: bool = True
    """A group says by itself whether it preempts (PodGroupPreemptionPolicy)."""
    reservation: ReservationSettings = ReservationSettings()


class GroupCycle:
    """Decides about the members of a group."""

    def __init__(
        self,
        engines: ProfileEngines,
        results: CycleResults,
        guard: CycleGuard,
        consultation: Consultation,
        conditions: GroupConditions,
        settings: GroupSettings | None = None,
    ) -> None:
        self._engines = engines
        self._cluster = engines.cluster
        self._groups = engines.cluster.index(PodGroups)
        self._results = results
        self._guard = guard
        self._consultation = consultation
        self._conditions = conditions
        self._settings = settings or GroupSettings()
        self._reservations = GroupReservations(self._settings.reservation)

    def begin(self, ticket: GroupTicket, tasks: asyncio.TaskGroup) -> None:
        """Decide about the members, and let their bindings begin; or ask extenders about them first."""
        started = self._guard.slow_plugins.begin()
        ticket.started = started
        for member in ticket.members:
            member.started = started
        self._results.observer.group_cycle_began(ticket.entry.group, [member.pod for member in ticket.members])
        self._run(ticket, None, tasks)

    def go_on(self, answered: GroupAnswered, tasks: asyncio.TaskGroup) -> None:
        """Decide by what extenders have said, and by what is known now."""
        self._guard.slow_plugins.begin()
        ticket, pods = answered.ticket, self._cluster.objects("Pod")
        staying = []
        for member in ticket.members:
            known: Pod | None = pods.get(member.pod.key)
            if known is None or known.uid != member.uid or known.node_name:
                self._results.dismiss(member)
            else:
                member.entry.pod = known
                staying.append(member)
        ticket.members = staying
        self._run(ticket, answered.advice, tasks)

    def _run(self, ticket: GroupTicket, advice: Mapping[str, ExtenderAdvice] | None, tasks: asyncio.TaskGroup) -> None:
        self._guard.slow_plugins.may_interrupt = True
        try:
            is_asking = self._decide(ticket, advice, tasks)
        except BudgetExceeded as error:
            self._fail_rest(ticket, str(error))
        except Exception as error:  # a bug: the members must not be lost with it
            found = self._results.attempts.skipped.skip("PodGroup", ticket.entry.key, "cycle", error)
            self._fail_rest(ticket, found.error)
        else:
            if not is_asking:
                self._results.attempts.skipped.understood("PodGroup", ticket.entry.key)
        finally:
            self._guard.slow_plugins.may_interrupt = False

    def _fail_rest(self, ticket: GroupTicket, message: str) -> None:
        """The cycle was cut short; only members whose bindings have begun hold a place."""
        undecided = [member for member in ticket.members if not self._cluster.is_assumed(member.uid)]
        self._fail_all([member for member in undecided if not self._results.has_failed(member)], message)
        self._results.return_group(ticket, GroupResult.FAILED)

    # --- the cycle ---------------------------------------------------------------------------------------------

    def _decide(
        self, ticket: GroupTicket, advice: Mapping[str, ExtenderAdvice] | None, tasks: asyncio.TaskGroup
    ) -> bool:
        """Whether it is to be run again, with the answers of extenders."""
        key = ticket.entry.key
        group = self._groups.objects.get(key)
        if group is None:
            self._fail_all(ticket.members, f"pod group object not found for pod group podgroup/{key}")
            self._results.return_group(ticket, GroupResult.FAILED)
            return False
        self._conditions.note_unserved(group)
        pods = [*(member.pod for member in ticket.members), *self._groups.scheduled(key).values()]
        problem = problem_of(group, pods, has_own_policy=self._settings.has_own_policy)
        if problem:
            self._fail_all(ticket.members, problem)
            self._conditions.failed(group, problem)
            self._results.attempts.group_ended(ticket, "error", pods[0].spec.scheduler_name)
            self._results.return_group(ticket, GroupResult.FAILED)
            return False
        tickets = {member.uid: member for member in ticket.members if not self._is_dropped(member)}
        if not tickets:
            self._results.return_group(ticket, GroupResult.PLACED, is_whole=True)
            return False
        attempt = self._attempt(group, ticket, tickets, advice or {})
        if advice is None and self._asks_extenders(attempt, tasks):
            return True
        self._place(attempt, tasks)
        return False

    def _attempt(
        self,
        group: PodGroup,
        ticket: GroupTicket,
        tickets: dict[str, Ticket],
        advice: Mapping[str, ExtenderAdvice],
    ) -> AttemptOfGroup:
        pods = [member.pod for member in tickets.values()]
        engine = self._engines[pods[0].spec.scheduler_name]
        placer = GroupPlacer(engine, self._cluster, self._guard, self._results.attempts)
        budget, council = self._guard.budgets.budget, self._consultation.council
        members = [Member(pod, CycleState(budget), council(pod, advice.get(pod.uid, ExtenderAdvice()))) for pod in pods]
        preemption = GroupPreemption(engine, self._cluster, placer)
        return AttemptOfGroup(group, ticket, tickets, engine, placer, preemption, members)

    def _asks_extenders(self, attempt: AttemptOfGroup, tasks: asyncio.TaskGroup) -> bool:
        questions = []
        has_failed = attempt.ticket.entry.unschedulable_count > 0 and attempt.engine.profile.pod_group_post_filter
        preempts = attempt.group.priority if has_failed else None
        for member in attempt.members:
            if member.council is not None:
                self._guard.begin_member(member.pod)
                question = question_about_member(attempt.engine, member.pod, member.council, preempts)
                questions += [question] if question is not None else []
        if questions:
            self._consultation.ask_about_members(attempt.ticket, questions, tasks)
        return bool(questions)

    def _place(self, attempt: AttemptOfGroup, tasks: asyncio.TaskGroup) -> None:
        group, members = attempt.group, attempt.members
        known = next((overrun for pod in attempt.pods if (overrun := self._guard.budgets.known_overrun(pod))), None)
        if known is not None:
            outcome = GroupOutcome(members, error=known.message())
        else:
            outcome = attempt.placer.place(group, members, lambda member: self._searched(attempt, member))
            self._results.attempts.group_searched(attempt.ticket)
        if outcome.fits and not outcome.placed:
            outcome.reasons = [IS_UNSCHEDULABLE]
        decisions: list[BindingDecision] = []
        try:
            if outcome.fits:
                decisions = self._permitted(attempt, outcome)
            if not decisions:
                self._reject(attempt, outcome)
                return
        except BaseException:
            attempt.placer.give_back(outcome.placed)
            raise
        self._start(attempt, decisions, tasks)

    def _start(self, attempt: AttemptOfGroup, decisions: list[BindingDecision], tasks: asyncio.TaskGroup) -> None:
        """There is no way back from here: the group starts with these members."""
        self._results.bind(decisions, tasks)
        self._conditions.scheduled(attempt.group)
        self._results.attempts.group_ended(attempt.ticket, "scheduled", attempt.profile)
        self._reservations.give_up(attempt.group)
        for member in attempt.members:
            ticket = attempt.ticket_of(member)
            if member.assumed is None and not self._results.has_failed(ticket):
                self._results.fail(ticket, _unschedulable(member, None))
        self._results.return_group(attempt.ticket, GroupResult.PLACED, is_whole=len(decisions) == len(attempt.members))

    def _searched(self, attempt: AttemptOfGroup, member: Member) -> None:
        ticket = attempt.ticket_of(member)
        if member.council is not None:
            ticket.entry.rejected_nodes = rejected_nodes_in(member.council.advice)
        meter = self._engines.meters[member.pod.spec.scheduler_name]
        self._results.searched(ticket, member.state, meter, is_placed=member.placed is not None)

    # --- Permit ------------------------------------------------------------------------------------------------

    def _permitted(self, attempt: AttemptOfGroup, outcome: GroupOutcome) -> list[BindingDecision]:
        """Those that Permit lets go on. If too few are left, no member holds a place and the outcome says why."""
        decisions, rejected = [], set()
        meter = self._engines.meters[attempt.engine.profile.scheduler_name]
        try:
            for member in outcome.placed:
                assumed, ticket = member.assumed, attempt.ticket_of(member)
                assert assumed is not None
                answer = self._permit(attempt.engine, member, assumed)
                if isinstance(answer, Failure):
                    attempt.placer.give_back([member])
                    rejected.add(member.pod.uid)
                    self._results.fail(ticket, answer)
                else:
                    runner = attempt.engine.runner
                    decisions.append(BindingDecision(ticket, assumed, member.state, runner, meter, answer))
        except BaseException:
            self._release(decisions)
            raise
        scheduled = len(self._groups.scheduled(attempt.group.key))
        if rejected and scheduled < attempt.group.min_count:
            self._release(decisions)
            attempt.placer.give_back(outcome.placed)
            quorum = Quorum(attempt.group.min_count, len(self._groups.scheduled(attempt.group.key)), 0)
            outcome.reasons = [quorum.message]
            outcome.members = [member for member in outcome.members if member.pod.uid not in rejected]
            return []
        for member in outcome.placed:
            assert member.assumed is not None
            self._results.took_place(member.pod, member.assumed.node_name, member.nominated)
        for decision in decisions:
            if decision.waiting is not None and not decision.waiting.pending_plugins:
                # The gang was waiting for itself: that is over before anyone could see it.
                self._results.release(decision.waiting)
                decision.waiting = None
        return decisions

    def _release(self, decisions: Sequence[BindingDecision]) -> None:
        for decision in decisions:
            if decision.waiting is not None:
                self._results.release(decision.waiting)

    def _permit(self, engine: ProfileEngine, member: Member, assumed: Pod) -> Failure | WaitingPod | None:
        self._guard.begin_member(member.pod)
        try:
            answer = engine.runner.permit(member.state, assumed, assumed.node_name)
        except PluginError as error:
            self._results.attempts.plugin_failed(member.pod, error)
            return Failure(SCHEDULER_ERROR, str(error))
        except BudgetExceeded as error:
            return Failure(BUDGET_EXCEEDED, self._guard.budgets.exceeded(member.pod, error).message())
        finally:
            member.state.budget = UNLIMITED
        if isinstance(answer, Rejected):
            diagnosis = single_node_diagnosis(answer.plugin, answer.rejection, assumed.node_name)
            return Failure(UNSCHEDULABLE, diagnosis.message(), diagnosis)
        return self._results.hold(assumed, answer) if answer else None

    # --- no place ----------------------------------------------------------------------------------------------

    def _reject(self, attempt: AttemptOfGroup, outcome: GroupOutcome) -> None:
        """No member has a place. Ask PodGroupPostFilter, and give all members the reason."""
        before = outcome.message
        nominated: NominateMembers | None = None
        if not outcome.error and attempt.engine.profile.pod_group_post_filter:
            nominated = self._post_filter(attempt, outcome)
        result = "error" if outcome.error else "unschedulable" if nominated is None else "waiting_on_preemption"
        self._results.attempts.group_ended(attempt.ticket, result, attempt.profile)
        if not outcome.error and nominated is None:
            nominated = self._reserved(attempt, outcome)
        if outcome.error:
            self._conditions.failed(attempt.group, outcome.error)
        else:
            self._conditions.rejected(attempt.group, outcome.message)
        for member in outcome.members:
            self._results.fail(attempt.ticket_of(member), self._failure(outcome, member, before, nominated))
        self._results.return_group(attempt.ticket, GroupResult.FAILED if outcome.error else GroupResult.REJECTED)

    def _post_filter(self, attempt: AttemptOfGroup, outcome: GroupOutcome) -> NominateMembers | None:
        rejected = [member.pod.uid for member in outcome.members]
        attempt.members = [member for member in attempt.members if member.pod.uid in rejected]
        try:
            with self._results.attempts.asking_about_group("PodGroupPostFilter", attempt.profile) as status:
                answer = attempt.engine.runner.pod_group_post_filter(attempt)
                status += [] if isinstance(answer, NominateMembers) else ["Unschedulable"]
        except PluginError as error:
            self._results.attempts.plugin_failed(attempt.pods[0], error)
            outcome.error = str(error)
            return None
        if isinstance(answer, NominateMembers):
            outcome.reasons.append(answer.message)
            return answer
        outcome.reasons += answer
        return None

    def _reserved(self, attempt: AttemptOfGroup, outcome: GroupOutcome) -> NominateMembers | None:
        """The nodes that are kept for a gang that has waited for too long; none for most."""
        group, entry, now = attempt.group, attempt.ticket.entry, attempt.ticket.popped_at
        wanted = group.min_count - len(self._groups.scheduled(group.key))
        if not group.is_gang or wanted <= 0:
            return None
        held = self._reservations.held_by(group, now)
        if held is not None and any(self._cluster.nodes.row(name) is None for name in held.nodes.values()):
            self._reservations.give_up(group)
            held = None
        if held is None:
            over = self._reservations.end(group)
            if over is not None:
                return NominateMembers(dict.fromkeys(over.nodes, ""), "its reservation is over")
            first = now if entry.first_attempt_at is None else entry.first_attempt_at
            if not self._reservations.is_due(now - first, now):
                return None
            nodes = nodes_to_keep(self._cluster, attempt.placer, group, attempt.members, wanted)
            if not nodes:
                return None
            held = self._reservations.hold(group, nodes, now)
        count = len(set(held.nodes.values()))
        text = f"room on {count} node{'s' * (count > 1)} is kept for it from pods that are not more important"
        outcome.reasons.append(text)
        return NominateMembers(held.nodes, text)

    def _failure(
        self, outcome: GroupOutcome, member: Member, before: str, nominated: NominateMembers | None
    ) -> Failure:
        if outcome.error:
            return self._error(outcome, member)
        # Unless room is being made for the group, nothing is kept for it: nodes for some members would not help.
        nomination = "" if nominated is None else nominated.nodes.get(member.pod.uid)
        if member.placed is not None and nominated is not None:
            return Failure(UNSCHEDULABLE, outcome.message, nomination=nomination)
        if member.placed is not None:
            prefix = "" if outcome.reasons[0] == IS_UNSCHEDULABLE else f"{IS_UNSCHEDULABLE}, "
            return Failure(UNSCHEDULABLE, f"{prefix}{outcome.message}")
        return _unschedulable(member, nomination, before)

    def _error(self, outcome: GroupOutcome, member: Member) -> Failure:
        error = member.error
        if isinstance(error, BudgetExceeded):
            return Failure(BUDGET_EXCEEDED, self._guard.budgets.exceeded(member.pod, error).message())
        if isinstance(error, PluginError):
            self._results.attempts.plugin_failed(member.pod, error)
        return Failure(SCHEDULER_ERROR, outcome.error if error is None else str(error))

    # --- before the search -------------------------------------------------------------------------------------

    def _is_dropped(self, ticket: Ticket) -> bool:
        """Whether the member is being deleted, or assumed already. Then there is nothing to do for it."""
        if ticket.pod.is_terminating:
            self._results.dismiss_terminating(ticket)
            return True
        if self._cluster.is_assumed(ticket.uid):
            self._results.dismiss(ticket)
            return True
        return False

    def _fail_all(self, tickets: Sequence[Ticket], message: str) -> None:
        for ticket in tickets:
            self._results.fail(ticket, Failure(SCHEDULER_ERROR, message))


def _unschedulable(member: Member, nomination: str | None, message: str = "") -> Failure:
    return Failure(UNSCHEDULABLE, member.message or message, member.diagnosis, nomination)
