"""The binding cycle: everything between the decision and the bound pod, beside the scheduling of other pods."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

import msgspec

from pilotage.api.points import PreBind
from pilotage.api.state import CycleState
from pilotage.cycle.attempts import Attempts
from pilotage.cycle.cluster_writes import ClusterWrites
from pilotage.cycle.failure import SCHEDULER_ERROR, UNSCHEDULABLE, Failure, FailureHandler
from pilotage.cycle.inbox import Inbox
from pilotage.cycle.pods_being_bound import PodsBeingBound, PreemptedInPreBind
from pilotage.extenders.extender import ExtenderError
from pilotage.extenders.extenders import Extenders
from pilotage.framework.diagnosis import Rejected, rejection_text, single_node_diagnosis
from pilotage.framework.errors import PluginError
from pilotage.framework.plugin_meter import PluginMeter
from pilotage.framework.runner import Runner
from pilotage.framework.waiting_pods import PreemptedWhileWaiting, WaitingPod
from pilotage.model import Pod
from pilotage.queue.scheduling_queue import SchedulingQueue
from pilotage.queue.sub_queues import Ticket

log = logging.getLogger(__name__)

_TURNS_OF_A_QUICK_PRE_BIND = 8


class Decision(msgspec.Struct, eq=False):
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

    async def run(self, decision: Decision) -> None:
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

    async def _bind(self, decision: Decision) -> Failure | None:
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

    def _pre_bind_groups(self, decision: Decision) -> list[list[PreBind]]:
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

    async def _pre_bind(self, decision: Decision, groups: list[list[PreBind]]) -> Rejected | None:
        runner, state, pod = decision.runner, decision.state, decision.pod
        work = decision.meter.awaited("PreBind", runner.pre_bind(groups, state, pod, pod.node_name))
        if decision.waiting is None and self._announcer is not None:
            asyncio.get_running_loop().call_soon(self._announce_unless_over, decision, _TURNS_OF_A_QUICK_PRE_BIND)
        return await self._being_bound.in_pre_bind.run(pod.uid, work)

    def _announce_unless_over(self, decision: Decision, turns: int) -> None:
        """Give PreBind a few turns of the event loop: what it writes is often written by then."""
        if decision.pod.uid not in self._being_bound.in_pre_bind:
            return
        if turns:
            asyncio.get_running_loop().call_soon(self._announce_unless_over, decision, turns - 1)
        else:
            self._announce(decision)

    def _announce(self, decision: Decision) -> None:
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

    async def _succeed(self, decision: Decision) -> None:
        pod = decision.pod
        self._attempts.bound(decision.ticket, pod, self._queue.now())
        self._queue.done(decision.ticket, pod.node_name)
        if decision.runner.profile.post_bind:
            note = partial(self._attempts.plugin_failed, pod)
            work = decision.runner.post_bind(decision.state, pod, pod.node_name, note)
            await decision.meter.awaited("PostBind", work)

    def _fail(self, decision: Decision, failure: Failure) -> None:
        pod = decision.pod
        self._attempts.binding_failed(decision.ticket, pod.node_name, failure)
        for error in decision.runner.unreserve(decision.state, pod, pod.node_name):
            self._attempts.plugin_failed(pod, error)
        self._failures.give_up_place(pod)
        self._being_bound.given_up(pod.uid)
        self._failures.handle(decision.ticket, failure)


def _is_cancelled_by_us() -> bool:
    """Was the task that is running asked to end?"""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _rejected(rejected: Rejected) -> Failure:
    return Failure(UNSCHEDULABLE, rejection_text(rejected.rejection))
