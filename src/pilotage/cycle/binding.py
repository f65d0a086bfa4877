"""The binding cycle: everything between the decision and the bound pod, beside the scheduling of other pods."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import msgspec
from msgspec.structs import replace

from pilotage.api.points import PreBind
from pilotage.api.state import CycleState
from pilotage.cycle.attempts import Attempts
from pilotage.cycle.cluster_writes import ClusterWrites
from pilotage.cycle.failure import SCHEDULER_ERROR, UNSCHEDULABLE, Failure, FailureHandler
from pilotage.cycle.inbox import Inbox
from pilotage.cycle.observer import SchedulerObserver
from pilotage.cycle.pods_being_bound import PodsBeingBound, PreemptedInPreBind
from pilotage.extenders.extender import ExtenderError
from pilotage.extenders.extenders import Extenders
from pilotage.framework.diagnosis import Rejected, rejection_text, single_node_diagnosis
from pilotage.framework.errors import PluginError
from pilotage.framework.plugin_meter import PluginMeter
from pilotage.framework.runner import Runner
from pilotage.framework.waiting_pods import PreemptedWhileWaiting, WaitingPod
from pilotage.model import Pod
from pilotage.queue.pod_groups import GroupResult, GroupTicket
from pilotage.queue.scheduling_queue import SchedulingQueue
from pilotage.queue.sub_queues import Ticket

log = logging.getLogger(__name__)

_TURNS_OF_A_QUICK_PRE_BIND = 8


class BindingDecision(msgspec.Struct, eq=False):
    """A pod that has its node and now must be bound."""

    ticket: Ticket
    pod: Pod
    """The pod with its node name set, as it was assumed."""
    state: CycleState
    runner: Runner
    meter: PluginMeter
    waiting: WaitingPod | None = None
    """Set if a Permit plugin holds the pod back."""


class BindingCycle:
    """Binds decided pods; results go through the inbox, so that they take effect between two scheduling cycles."""

    def __init__(
        self,
        queue: SchedulingQueue,
        inbox: Inbox,
        failures: FailureHandler,
        attempts: Attempts,
        being_bound: PodsBeingBound,
        announcer: ClusterWrites | None,
        extenders: Extenders,
    ) -> None:
        """With an announcer, others see where a pod will be whose binding takes a while."""
        self._queue = queue
        self._inbox = inbox
        self._failures = failures
        self._attempts = attempts
        self._being_bound = being_bound
        self._announcer = announcer
        self._extenders = extenders

    def hold(self, waiting: WaitingPod) -> None:
        """A Permit plugin holds this pod back: its binding will wait."""
        self._being_bound.waiting.add(waiting)

    def release(self, waiting: WaitingPod) -> None:
        """It is not held any more: its place was given back before its binding began."""
        self._being_bound.waiting.remove(waiting.pod.uid)

    async def run(self, decision: BindingDecision) -> None:
        try:
            failure = await self._bind(decision)
        except PluginError as error:
            self._attempts.plugin_failed(decision.pod, error)
            failure = Failure(SCHEDULER_ERROR, str(error))
        except ExtenderError as error:
            failure = Failure(SCHEDULER_ERROR, str(error))
        except asyncio.CancelledError:
            if _is_cancelled_by_us():
                raise
            # Something that the plugin awaited was cancelled; the pod must not be lost with it.
            failure = Failure(SCHEDULER_ERROR, "binding was cancelled by a plugin: asyncio.CancelledError")
        except PreemptedWhileWaiting as error:
            failure = Failure(SCHEDULER_ERROR, f"waiting on permit for pod: {error}")
        except PreemptedInPreBind as error:
            failure = Failure(SCHEDULER_ERROR, str(error))
        except Exception as error:
            skipped = self._attempts.skipped.skip("Pod", decision.pod.key, "binding", error)
            failure = Failure(SCHEDULER_ERROR, skipped.error)
        if failure is None:
            await self._succeed(decision)
        else:
            self._inbox.put(lambda: self._fail(decision, failure))

    async def _bind(self, decision: BindingDecision) -> Failure | None:
        runner, state, pod = decision.runner, decision.state, decision.pod
        groups = self._pre_bind_groups(decision)
        if decision.waiting is not None:
            self._announce(decision)
            rejected = await self._permission(decision.waiting)
            if rejected is not None:
                diagnosis = single_node_diagnosis(rejected.plugin, rejected.rejection, pod.node_name)
                return Failure(UNSCHEDULABLE, diagnosis.message(), diagnosis)
        self._queue.needs_no_events(decision.ticket)
        if groups:
            rejected = await self._pre_bind(decision, groups)
            if rejected is not None:
                return _rejected(rejected)
        if await self._is_bound_by_extender(pod):
            return None
        rejected = await decision.meter.awaited("Bind", runner.bind(state, pod, pod.node_name))
        return None if rejected is None else _rejected(rejected)

    async def _is_bound_by_extender(self, pod: Pod) -> bool:
        """An extender that binds makes the binding itself; Bind plugins are for all other pods."""
        binder = self._extenders.binder_of(pod)
        if binder is None:
            return False
        try:
            await binder.bind(pod, pod.node_name)
        except ExtenderError:
            if not binder.configuration.ignorable:
                raise
            return False
        return True

    def _pre_bind_groups(self, decision: BindingDecision) -> list[list[PreBind]]:
        if not decision.runner.profile.pre_bind:
            return []
        if self._announcer is None:
            # Plugins are asked beforehand so that it is known whether there is anything to announce: not without it.
            return [[plugin] for plugin in decision.runner.profile.pre_bind]
        try:
            return decision.runner.pre_bind_groups(decision.state, decision.pod, decision.pod.node_name)
        except PluginError:
            self._being_bound.waiting.remove(decision.pod.uid)
            raise

    async def _pre_bind(self, decision: BindingDecision, groups: list[list[PreBind]]) -> Rejected | None:
        runner, state, pod = decision.runner, decision.state, decision.pod
        work = decision.meter.awaited("PreBind", runner.pre_bind(groups, state, pod, pod.node_name))
        if decision.waiting is None and self._announcer is not None:
            asyncio.get_running_loop().call_soon(self._announce_unless_over, decision, _TURNS_OF_A_QUICK_PRE_BIND)
        return await self._being_bound.in_pre_bind.run(pod.uid, work)

    def _announce_unless_over(self, decision: BindingDecision, turns: int) -> None:
        """Give PreBind a few turns of the event loop: what it writes is often written by then."""
        if decision.pod.uid not in self._being_bound.in_pre_bind:
            return
        if turns:
            asyncio.get_running_loop().call_soon(self._announce_unless_over, decision, turns - 1)
        else:
            self._announce(decision)

    def _announce(self, decision: BindingDecision) -> None:
        """The binding may take a while: let others see where the pod will be."""
        if self._announcer is not None:
            self._announcer.patch_status(decision.ticket.pod, nomination=decision.pod.node_name)

    async def _permission(self, waiting: WaitingPod) -> Rejected | None:
        attempts, started = self._attempts, self._attempts.now()
        try:
            rejected = await waiting.outcome(attempts.clock)
        except BaseException:
            attempts.permit_failed(attempts.now() - started)
            raise
        finally:
            self._being_bound.waiting.remove(waiting.pod.uid)
        attempts.permitted(attempts.now() - started, rejected)
        return rejected

    async def _succeed(self, decision: BindingDecision) -> None:
        pod = decision.pod
        self._attempts.bound(decision.ticket, pod, self._queue.now())
        self._queue.done(decision.ticket, pod.node_name)
        if decision.runner.profile.post_bind:
            note = partial(self._attempts.plugin_failed, pod)
            work = decision.runner.post_bind(decision.state, pod, pod.node_name, note)
            await decision.meter.awaited("PostBind", work)

    def _fail(self, decision: BindingDecision, failure: Failure) -> None:
        pod = decision.pod
        self._attempts.binding_failed(decision.ticket, pod.node_name, failure)
        for error in decision.runner.unreserve(decision.state, pod, pod.node_name):
            self._attempts.plugin_failed(pod, error)
        self._failures.give_up_place(pod)
        self._being_bound.given_up(pod.uid)
        self._failures.handle(decision.ticket, failure)


def _is_cancelled_by_us() -> bool:
    """Whether the task that is running was asked to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _rejected(rejected: Rejected) -> Failure:
    return Failure(UNSCHEDULABLE, rejection_text(rejected.rejection))


class CycleResults:
    """What follows from a cycle: bindings that begin at once, and tickets that go back when it is over.

    A cycle decides about one pod or about the members of a group; what becomes of a pod is the same in both.
    """

    def __init__(
        self,
        queue: SchedulingQueue,
        failures: FailureHandler,
        attempts: Attempts,
        binding: BindingCycle,
        observer: SchedulerObserver,
    ) -> None:
        self.attempts = attempts
        self.observer = observer
        self._queue = queue
        self._failures = failures
        self._binding = binding
        self._failed: dict[str, tuple[Ticket, Failure]] = {}
        """By UID of the pod: tickets of this cycle that are still to be given back."""
        self._group: tuple[GroupTicket, GroupResult, bool] | None = None
        """The same of a group, when its members' have been."""

    def searched(self, ticket: Ticket, state: CycleState, meter: PluginMeter, *, is_placed: bool) -> None:
        """A node was found, or none."""
        meter.note_evaluated(state, is_placed)
        self.attempts.searched(ticket)
        self.observer.searched(ticket.pod)

    # --- pods that have a node ---------------------------------------------------------------------------------

    def hold(self, pod: Pod, timeouts: dict[str, float]) -> WaitingPod:
        """Permit plugins hold this pod back: its binding will wait."""
        waiting = WaitingPod(pod, timeouts, self.attempts.now())
        self._binding.hold(waiting)
        return waiting

    def release(self, waiting: WaitingPod) -> None:
        """It is not held any more, although its binding has not begun."""
        self._binding.release(waiting)

    def took_place(self, pod: Pod, node_name: str, nominated: str) -> None:
        """The pod counts on its node; what was kept for it (`nominated`, if anything was) is free for others."""
        if nominated:
            self._failures.clear_nomination(pod, node_name, nominated)

    def bind(self, decisions: Sequence[BindingDecision], tasks: asyncio.TaskGroup) -> None:
        for decision in decisions:
            tasks.create_task(self._binding.run(decision), name="binding")

    # --- pods that have none -----------------------------------------------------------------------------------

    def fail(self, ticket: Ticket, failure: Failure) -> None:
        """The ticket goes back to the queue when the cycle is over."""
        self.attempts.failed(ticket, failure)
        self.observer.attempt_failed(ticket.pod, failure.message)
        self._failed[ticket.uid] = ticket, failure

    def has_failed(self, ticket: Ticket) -> bool:
        return ticket.uid in self._failed

    def dismiss(self, ticket: Ticket) -> None:
        """There is nothing to be done for the pod."""
        self._failures.dismiss(ticket)

    def dismiss_terminating(self, ticket: Ticket) -> None:
        note = f"skip schedule deleting pod: {ticket.pod.key}"
        self.attempts.recorder.record(ticket.pod, "Warning", "FailedScheduling", "Scheduling", note)
        self.dismiss(ticket)

    def return_group(self, ticket: GroupTicket, result: GroupResult, *, is_whole: bool = False) -> None:
        """Those of its members that failed go back together."""
        self._group = ticket, result, is_whole

    def settle(self, *, clears_nominations: bool) -> None:
        """The cycle is over: give the tickets back. Victims may stay, and then no node is nominated."""
        failed, self._failed = self._failed, {}
        for ticket, failure in failed.values():
            try:
                self._failures.handle(ticket, replace(failure, nomination="") if clears_nominations else failure)
            except Exception as error:
                self._drop(ticket, error)
        if self._group is not None:
            group, result, is_whole = self._group
            self._group = None
            self._queue.return_group(group, result, is_whole=is_whole)

    def _drop(self, ticket: Ticket, error: Exception) -> None:
        """Not even its failure can be handled: it is out of the queue until its pod changes."""
        self.attempts.skipped.skip("Pod", ticket.pod.key, "intake", error)
        with suppress(Exception):
            self._failures.dismiss(ticket)
