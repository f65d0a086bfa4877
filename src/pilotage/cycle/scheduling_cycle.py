"""One scheduling cycle: a pod is popped, placed, assumed, reserved and permitted, or it fails.

    place -> assume -> Reserve -> Permit -> binding task
      |
      +-> failure: reason to the pod, ticket back to the queue
      +-> question to extenders: when it is answered, the cycle runs again

A cycle is synchronous: nothing can change under it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from pilotage.api.budget import UNLIMITED, BudgetExceeded
from pilotage.api.conditions import BUDGET_EXCEEDED
from pilotage.api.state import CycleState
from pilotage.cluster.state import AssumeError
from pilotage.cycle.advised_placement import place_advised, rejected_nodes_in
from pilotage.cycle.binding import BindingDecision, CycleResults
from pilotage.cycle.consultation import Answered, Consultation, GroupAnswered
from pilotage.cycle.cycle_budget import CycleGuard
from pilotage.cycle.failure import SCHEDULER_ERROR, UNSCHEDULABLE, Failure
from pilotage.cycle.group_cycle import GroupCycle
from pilotage.cycle.placement import NoNodes, Placed, ProfileEngine, ProfileEngines, Unplaced, place
from pilotage.cycle.unserved_pods import used_fields
from pilotage.extenders.extender import ExtenderError
from pilotage.extenders.extenders import ExtenderAdvice, Question
from pilotage.framework.diagnosis import Rejected, single_node_diagnosis
from pilotage.framework.errors import PluginError
from pilotage.framework.waiting_pods import WaitingPod
from pilotage.model import Pod
from pilotage.queue.pod_groups import GroupTicket
from pilotage.queue.sub_queues import Ticket

log = logging.getLogger(__name__)

_NO_ADVICE: Final = ExtenderAdvice()


class SchedulingCycle:
    """Decides about pods, one at a time."""

    def __init__(
        self,
        engines: ProfileEngines,
        results: CycleResults,
        guard: CycleGuard,
        consultation: Consultation,
        groups: GroupCycle | None = None,
    ) -> None:
        """Without `groups`, no pod groups are scheduled."""
        self.engines = engines
        self._cluster = engines.cluster
        self._results = results
        self._attempts = results.attempts
        self.guard = guard
        self.consultation = consultation
        self.observer = results.observer
        self._groups = groups

    def begin(self, ticket: Ticket, tasks: asyncio.TaskGroup) -> None:
        """Decide about the pod, or the pods of a group, and let their bindings begin."""
        if isinstance(ticket, GroupTicket):
            assert self._groups is not None
            self._groups.begin(ticket, tasks)
            return
        ticket.started = self.guard.slow_plugins.begin()
        self.observer.cycle_began(ticket.pod)
        self._run(ticket, _NO_ADVICE, tasks)

    def go_on(self, answered: Answered | GroupAnswered, tasks: asyncio.TaskGroup) -> None:
        """Decide about a pod of which extenders were asked, by what they have said and by what is known now."""
        if isinstance(answered, GroupAnswered):
            assert self._groups is not None
            self._groups.go_on(answered, tasks)
            return
        self.guard.slow_plugins.begin()
        ticket = answered.ticket
        known: Pod | None = self._cluster.objects("Pod").get(ticket.pod.key)
        if known is None or known.uid != ticket.uid or known.node_name:
            self._results.dismiss(ticket)
            return
        ticket.entry.pod = known
        self._run(ticket, answered.advice, tasks)

    def _run(self, ticket: Ticket, advice: ExtenderAdvice, tasks: asyncio.TaskGroup) -> None:
        decision = self.decide(ticket, advice)
        if isinstance(decision, BindingDecision):
            self._results.bind([decision], tasks)
        elif decision is not None:
            self.consultation.ask(ticket, decision, advice, tasks)

    def end(self, *, clears_nominations: bool = False) -> None:
        """Give back the tickets of pods that failed; victims may stay, and then no node is nominated."""
        self._results.settle(clears_nominations=clears_nominations)

    def stop_asking(self) -> None:
        """No question is answered any more: the pods wait for the next scheduler."""
        for ticket in self.consultation.abandon():
            self._results.dismiss(ticket)

    def decide(self, ticket: Ticket, advice: ExtenderAdvice = _NO_ADVICE) -> BindingDecision | Question | None:
        """One scheduling cycle: a decision to be bound, or None if the ticket is done or goes back after the cycle.

        A question if extenders have to be asked first.
        """
        pod = ticket.pod
        if pod.is_terminating:
            self._results.dismiss_terminating(ticket)
            return None
        if self._cluster.is_assumed(pod.uid):
            self._results.dismiss(ticket)
            return None
        budgets, slow_plugins = self.guard.budgets, self.guard.slow_plugins
        known = budgets.known_overrun(pod)
        if known is not None:
            self._results.fail(ticket, Failure(BUDGET_EXCEEDED, known.message()))
            return None
        engine = self.engines[pod.spec.scheduler_name]
        if ticket.entry.attempts == 1 and used_fields(pod.spec):
            self._attempts.unserved.note(pod, engine.profile)
        state = CycleState(budgets.begin(pod))
        slow_plugins.may_interrupt = True
        try:
            decision = self.engines.meters[pod.spec.scheduler_name].run(self._placed, state, ticket, engine, advice)
        except BudgetExceeded as error:
            slow_plugins.may_interrupt = False
            overrun = budgets.exceeded(pod, error)
            log.warning("pod backs off, its cycle took too long: pod=%s reason=%s", pod.key, overrun.message())
            self._results.fail(ticket, Failure(BUDGET_EXCEEDED, overrun.message()))
        except PluginError as error:
            self._attempts.plugin_failed(pod, error)
            self._results.fail(ticket, Failure(SCHEDULER_ERROR, str(error)))
        except ExtenderError as error:
            self._results.fail(ticket, Failure(SCHEDULER_ERROR, str(error)))
        except NoNodes as error:
            self._results.fail(ticket, Failure(UNSCHEDULABLE, str(error)))
        except AssumeError as error:
            self._results.fail(ticket, Failure(SCHEDULER_ERROR, str(error)))
        except Exception as error:
            found = self._attempts.skipped.skip("Pod", pod.key, "cycle", error)
            self._results.fail(ticket, Failure(SCHEDULER_ERROR, found.error))
        else:
            # Errors of one attempt need not be those of the next.
            self._attempts.skipped.understood("Pod", pod.key)
            return decision
        finally:
            slow_plugins.may_interrupt = False
        return None

    def _placed(
        self, state: CycleState, ticket: Ticket, engine: ProfileEngine, advice: ExtenderAdvice
    ) -> BindingDecision | Question | None:
        pod = ticket.pod
        council = self.consultation.council(pod, advice)
        placement = place(engine, state, pod) if council is None else place_advised(engine, state, pod, council)
        if not isinstance(placement, (Placed, Unplaced)):
            return placement
        if council is not None:
            ticket.entry.rejected_nodes = rejected_nodes_in(advice)
        meter = self.engines.meters[pod.spec.scheduler_name]
        self._results.searched(ticket, state, meter, is_placed=isinstance(placement, Placed))
        if isinstance(placement, Unplaced):
            if placement.error is not None:
                self._attempts.plugin_failed(pod, placement.error)
            if not placement.nomination.node_name:
                state.budget.check()  # a plugin that never looks at the clock has cost as much as one that does
            # What forbids a preemption may change although the nodes stay as full as they are.
            placement.diagnosis.rejectors |= placement.nomination.rejectors
            diagnosis, nomination = placement.diagnosis, placement.nomination.node_name
            self._results.fail(ticket, Failure(UNSCHEDULABLE, diagnosis.message(), diagnosis, nomination))
            return None
        assumed = pod.with_node(placement.node_name)
        self._cluster.assume(assumed)
        self._results.took_place(pod, placement.node_name, self._cluster.nominations.node_of(pod.uid))
        try:
            answer = self._reserve_and_permit(engine, state, assumed)
        except (Exception, BudgetExceeded):
            self._give_up_place(engine, state, assumed)
            raise
        finally:
            state.budget = UNLIMITED  # what is awaited from here on is no part of the cycle
        if isinstance(answer, Rejected):
            self._give_up_place(engine, state, assumed)
            diagnosis = single_node_diagnosis(answer.plugin, answer.rejection, assumed.node_name)
            self._results.fail(ticket, Failure(UNSCHEDULABLE, diagnosis.message(), diagnosis))
            return None
        self._attempts.placed(ticket, placement, answer)
        return BindingDecision(ticket, assumed, state, engine.runner, meter, answer)

    def _reserve_and_permit(self, engine: ProfileEngine, state: CycleState, pod: Pod) -> Rejected | WaitingPod | None:
        rejected = engine.runner.reserve(state, pod, pod.node_name)
        if rejected is not None:
            return rejected
        permitted = engine.runner.permit(state, pod, pod.node_name)
        if isinstance(permitted, Rejected):
            return permitted
        return self._results.hold(pod, permitted) if permitted else None

    def _give_up_place(self, engine: ProfileEngine, state: CycleState, pod: Pod) -> None:
        for error in engine.runner.unreserve(state, pod, pod.node_name):
            self._attempts.plugin_failed(pod, error)
        self._cluster.forget(pod.uid)
