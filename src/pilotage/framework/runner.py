"""The rules of each extension point that is run once per pod: who stops, what is returned, what an odd answer becomes.

Filter and Score, which are run per node, are in `evaluation`. Every exception of a plugin leaves here as a
`PluginError` that names plugin and point.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from pilotage.api import points
from pilotage.api.plugin import RAISED
from pilotage.api.pod_groups import GroupAttempt, NominateMembers, Placement, ProposedPlacement
from pilotage.api.results import NodeNames, Nominate, Pending, PreFlight, Reason, Reject, Rejection, Skip, Wait
from pilotage.api.state import CallTimer, CycleState
from pilotage.api.table import Mask, Scores
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.framework.diagnosis import ABSENT_PLUGIN, Diagnosis, Rejected, RejectedRows, rejection_text
from pilotage.framework.errors import PluginError, error_text, shown
from pilotage.framework.profile import PreFilterCall, Profile, name_of, plan_for
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup

_PRE_FLIGHT: Final = (PreFlight, Skip)

MAX_PERMIT_SECONDS = 15 * 60.0
_MAX_SCORE: Final = 100
_STEPS_PER_PLUGIN: Final = 64
"""What a call of a plugin counts in the budget of the cycle, in steps of a microsecond."""


class PreFilterOutcome(Struct, eq=False):
    """How PreFilter ended: the rows to look at (None: all), or who rejected the pod altogether."""

    allowed: Mask | None = None
    names: frozenset[str] | None = None
    """The node names behind `allowed`; some of them may not exist."""
    rejected: Rejected | None = None
    restricting: list[str] = []

    def keep_within(self, rows: Mask | None) -> None:
        """Look at none but these rows (None: all), whatever PreFilter left."""
        if rows is not None:
            self.allowed = rows if self.allowed is None else self.allowed & rows


class PostFiltered(Struct, frozen=True):
    """How PostFilter ended; what was said is in the diagnosis."""

    nomination: Nominate
    rejected_by: str = ""
    """The first plugin that could not help; "" if one of them found a way."""
    error: PluginError | None = None
    """What a plugin raised: the pod is unschedulable all the same."""


class Runner:
    """Runs the extension points of one profile."""

    def __init__(self, profile: Profile, nodes: ClusterNodeTable) -> None:
        self.profile = profile
        self._nodes = nodes
        # Asked for every pod: names and methods are looked up once.
        self._pre_enqueues = tuple((name_of(plugin), plugin.pre_enqueue) for plugin in profile.pre_enqueue)

    def pre_enqueue(self, pod: Pod) -> Rejected | None:
        """The first plugin that gates the pod; PluginError if one fails, which gates it too."""
        for name, pre_enqueue in self._pre_enqueues:
            try:
                answer: object = pre_enqueue(pod)
            except RAISED as error:
                raise _failed(name, "PreEnqueue", error) from error
            if answer is None:
                continue
            if isinstance(answer, Reject | Pending):
                return Rejected(name, answer)
            raise _unexpected(name, "PreEnqueue", answer)
        return None

    def pre_filter(self, state: CycleState, pod: Pod) -> PreFilterOutcome:
        """An unresolvable rejection stops at once; a resolvable one lets the others go on, and the last one counts."""
        outcome = PreFilterOutcome()
        names: frozenset[str] | None = None
        plan = plan_for(self.profile, pod)
        nodes, pre_filters = self._nodes, plan.pre_filters if state.timer is None else self._timed(state.timer)
        for name, pre_filter, skipped in pre_filters:
            try:
                answer = pre_filter(state, pod, nodes)
            except RAISED as error:
                raise _failed(name, "PreFilter", error) from error
            if answer is None:
                continue
            if isinstance(answer, Skip):
                state.skip_filter.add(name)
            elif isinstance(answer, NodeNames):
                names = answer.names if names is None else names & answer.names
                outcome.restricting.append(name)
                if not names:
                    state.skip_filter |= skipped
                    outcome.rejected = Rejected(ABSENT_PLUGIN, no_node_left(outcome.restricting))
                    return outcome
            elif isinstance(answer, Reject):
                outcome.rejected = Rejected(name, answer)
                if answer.unresolvable:
                    state.skip_filter |= skipped
                    return outcome
            else:
                raise _unexpected(name, "PreFilter", answer)
        state.skip_filter |= plan.skip_filter
        # Plugins that loop ask by themselves; this is for those that do not.
        state.budget.spend(_STEPS_PER_PLUGIN * len(pre_filters))
        if names is not None:
            outcome.names = names
            outcome.allowed = self._nodes.rows_of(names)
        return outcome

    def _timed(self, timer: CallTimer) -> tuple[PreFilterCall, ...]:
        """For a cycle that is measured: those too of whom it is known that they skip."""
        plugins = [(name_of(plugin), plugin.pre_filter) for plugin in self.profile.pre_filter]
        return tuple(PreFilterCall(name, timer.timed(name, "pre_filter", method)) for name, method in plugins)

    def note_restriction(self, diagnosis: Diagnosis, outcome: PreFilterOutcome, judged: Mapping[int, Rejected]) -> None:
        """Nodes that PreFilter left out have a status of their own, and their plugins count as rejectors.

        Rows that were judged before (the nominated node) keep their own; as in kube-scheduler, the text names those
        who rejected them as well.
        """
        diagnosis.rejectors.update(outcome.restricting)
        if outcome.allowed is None:
            return
        left_out = ~outcome.allowed
        left_out[list(judged)] = False
        if left_out.any():
            names = " ".join(sorted({*outcome.restricting, *(rejected.plugin for rejected in judged.values())}))
            reason = Reason("NotInNodeSet", f"node(s) didn't satisfy plugin(s) [{names}]", unresolvable=True)
            diagnosis.masks.append(RejectedRows(ABSENT_PLUGIN, reason, left_out))

    def rejected_everywhere(self, diagnosis: Diagnosis, rejected: Rejected, restricting: Sequence[str]) -> None:
        """PreFilter rejected the pod: every node carries that."""
        everywhere = np.ones(len(diagnosis.node_names), dtype=np.bool_)
        diagnosis.pre_filter = (rejected.plugin, rejected.rejection)
        diagnosis.rejectors.update([rejected.plugin] if rejected.plugin else restricting)
        for reason in rejected.rejection.reasons:
            diagnosis.masks.append(RejectedRows(rejected.plugin, reason, everywhere))

    def post_filter(self, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> PostFiltered:
        """The first that finds a way, that knows that nothing can help, or that fails has the only word.

        Otherwise all messages are kept and the last nomination that was made.
        """
        messages: list[str] = []
        nomination = Nominate()
        rejectors: frozenset[str] = frozenset()
        rejected_by = ""
        for plugin in self.profile.post_filter:
            state.budget.check()
            name = name_of(plugin)
            try:
                answer = _call(plugin, "PostFilter", _timed(state, plugin, "post_filter"), state, pod, diagnosis)
                if not isinstance(answer, Nominate):
                    answer = _rejection(plugin, "PostFilter", answer)
            except PluginError as error:
                diagnosis.post_filter_message = str(error.__cause__ or error)
                return PostFiltered(Nominate(), name, error)
            if isinstance(answer, Nominate) and answer.node_name:
                diagnosis.post_filter_message = answer.message
                return PostFiltered(answer)
            rejected_by = rejected_by or name
            if isinstance(answer, Nominate):
                messages.append(answer.message)
                rejectors |= answer.rejectors
                nomination = answer if answer.node_name is not None else nomination
            elif answer.unresolvable:
                diagnosis.post_filter_message = rejection_text(answer)
                return PostFiltered(Nominate(), name)
            else:
                messages.append(rejection_text(answer))
        diagnosis.post_filter_message = ", ".join(filter(None, messages))
        if rejectors != nomination.rejectors:
            nomination = replace(nomination, rejectors=rejectors)
        return PostFiltered(nomination, rejected_by)

    def placements(self, state: CycleState, group: PodGroup) -> Sequence[Placement]:
        """What the profile's generator offers a group."""
        (plugin,) = self.profile.placement_generate
        try:
            found = list(plugin.generate_placements(state, group, self._nodes))
        except RAISED as error:
            raise _failed(name_of(plugin), "PlacementGenerate", error) from error
        for one in found:
            if not isinstance(one, Placement) or len(one.rows) != len(self._nodes):
                raise _unexpected(name_of(plugin), "PlacementGenerate", one)
        return found

    def score_placements(self, state: CycleState, group: PodGroup, proposed: Sequence[ProposedPlacement]) -> Scores:
        """The weighted sum of what the plugins say of each placement."""
        totals: Scores = np.zeros(len(proposed), dtype=np.int64)
        for plugin in self.profile.placement_score:
            name = name_of(plugin)
            try:
                if isinstance(plugin, points.VectorPlacementScore):
                    scores = np.asarray(plugin.score_placements(state, group, proposed, self._nodes))
                elif isinstance(plugin, points.PlacementScore):
                    each = [plugin.score_placement(state, group, one, self._nodes) for one in proposed]
                    scores = np.array(each, dtype=np.int64)
            except RAISED as error:
                raise _failed(name, "PlacementScore", error) from error
            if scores.shape != totals.shape or scores.min(initial=0) < 0 or scores.max(initial=0) > _MAX_SCORE:
                raise _unexpected(name, "PlacementScore", scores.tolist())
            totals += scores.astype(np.int64) * self.profile.weights.get(name, 1)
        return totals

    def pod_group_post_filter(self, attempt: GroupAttempt) -> NominateMembers | list[str]:
        """The first that finds a way, or that knows that nothing can help, has the last word; else what all said."""
        messages: list[str] = []
        for plugin in self.profile.pod_group_post_filter:
            name, point = name_of(plugin), "PodGroupPostFilter"
            try:
                answer: object = plugin.pod_group_post_filter(attempt)
            except RAISED as error:
                raise PluginError(name, point, f'error in "{name}" {point} plugins: {error_text(error)}') from error
            if isinstance(answer, NominateMembers):
                return NominateMembers(answer.nodes, ", ".join(filter(None, [*messages, answer.message])))
            if text := rejection_text(_rejection(plugin, point, answer)):
                messages.append(text)
            if isinstance(answer, Reject) and answer.unresolvable:
                break
        return messages

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Rejected | None:
        for plugin in self.profile.reserve:
            try:
                reserve = plugin.reserve if state.timer is None else _timed(state, plugin, "reserve")
                rejection = reserve(state, pod, node_name)
            except RAISED as error:
                raise _failed(name_of(plugin), "Reserve", error) from error
            if rejection is not None:
                return Rejected(name_of(plugin), _rejection(plugin, "Reserve", rejection))
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> list[PluginError]:
        """All reserve plugins in reverse order, whatever happened before; what they raise must not stop the rest."""
        errors = []
        for plugin in reversed(self.profile.reserve):
            try:
                _call(plugin, "Unreserve", _timed(state, plugin, "unreserve"), state, pod, node_name)
            except PluginError as error:
                errors.append(error)
        return errors

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Rejected | dict[str, float]:
        """A rejection, or the plugins that want the pod to wait with their time-outs (none: approved)."""
        waits: dict[str, float] = {}
        for plugin in self.profile.permit:
            answer = _call(plugin, "Permit", _timed(state, plugin, "permit"), state, pod, node_name)
            if isinstance(answer, Wait):
                waits[name_of(plugin)] = min(answer.timeout_seconds, MAX_PERMIT_SECONDS)
            elif answer is not None:
                return Rejected(name_of(plugin), _rejection(plugin, "Permit", answer))
        return waits

    def pre_bind_groups(self, state: CycleState, pod: Pod, node_name: str) -> list[list[points.PreBind]]:
        """PreBind plugins that have work to do, in groups that may run side by side.

        A plugin that does not run beside others parts those before it from those after it, even if it has no work.
        """
        groups: list[list[points.PreBind]] = [[]]
        for plugin in self.profile.pre_bind:
            answer = _pre_flight(plugin, state, pod, node_name)
            if isinstance(answer, Skip):
                state.skip_prebind.add(name_of(plugin))
                if not answer.allow_parallel:
                    groups.append([])
            elif answer.allow_parallel:
                groups[-1].append(plugin)
            else:
                groups += [[plugin], []]
        return [group for group in groups if group]

    async def pre_bind(
        self, groups: Sequence[Sequence[points.PreBind]], state: CycleState, pod: Pod, node_name: str
    ) -> Rejected | None:
        """Groups one after another; inside a group side by side, and the first failure ends the others."""
        for group in groups:
            if len(group) == 1:
                rejected = await _pre_bind_one(group[0], state, pod, node_name)
            else:
                rejected = await self._pre_bind_group(group, state, pod, node_name)
            if rejected is not None:
                return rejected
        return None

    async def _pre_bind_group(
        self, group: Sequence[points.PreBind], state: CycleState, pod: Pod, node_name: str
    ) -> Rejected | None:
        try:
            async with asyncio.TaskGroup() as tasks:
                for plugin in group:
                    tasks.create_task(_pre_bind_beside(plugin, state, pod, node_name), name=f"PreBind of {pod.key}")
        except ExceptionGroup as failures:
            first = failures.exceptions[0]
            if isinstance(first, _RejectedBeside):
                return first.rejected
            raise first from first.__cause__
        return None

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Rejected | None:
        """The first plugin that does not skip is final."""
        for plugin in self.profile.bind:
            try:
                answer = await plugin.bind(state, pod, node_name)
            except Exception as error:
                raise _failed(name_of(plugin), "Bind", error) from error
            if answer is None:
                return None
            if not isinstance(answer, Skip):
                return Rejected(name_of(plugin), _rejection(plugin, "Bind", answer))
        raise PluginError("", "Bind", "all bind plugins skipped the pod")

    async def post_bind(
        self, state: CycleState, pod: Pod, node_name: str, on_error: Callable[[PluginError], None]
    ) -> None:
        """All of them: the pod is bound, and what one of them raises must not keep the rest from cleaning up."""
        for plugin in self.profile.post_bind:
            try:
                await plugin.post_bind(state, pod, node_name)
            except Exception as error:
                failed = _failed(name_of(plugin), "PostBind", error)
                failed.__cause__ = error
                on_error(failed)


def _pre_flight(plugin: points.PreBind, state: CycleState, pod: Pod, node_name: str) -> PreFlight | Skip:
    point = "PreBindPreFlight"
    try:
        answer: object = plugin.pre_bind_pre_flight(state, pod, node_name)
    except RAISED as error:
        name = name_of(plugin)
        raise PluginError(name, point, f'running {point} "{name}": {error_text(error)}') from error
    if isinstance(answer, _PRE_FLIGHT):
        return answer
    name = name_of(plugin)
    text = (
        f'{point} {name} returned "{shown(answer)}", which is unsupported. It is supposed to return PreFlight or Skip'
    )
    raise PluginError(name, point, text)


async def _pre_bind_one(plugin: points.PreBind, state: CycleState, pod: Pod, node_name: str) -> Rejected | None:
    try:
        rejection = await plugin.pre_bind(state, pod, node_name)
    except Exception as error:
        raise _failed(name_of(plugin), "PreBind", error) from error
    return None if rejection is None else Rejected(name_of(plugin), _rejection(plugin, "PreBind", rejection))


class _RejectedBeside(Exception):
    """A rejection among plugins that run side by side: raised, because that is what ends the others."""

    def __init__(self, rejected: Rejected) -> None:
        super().__init__(rejected.plugin)
        self.rejected = rejected


async def _pre_bind_beside(plugin: points.PreBind, state: CycleState, pod: Pod, node_name: str) -> None:
    rejected = await _pre_bind_one(plugin, state, pod, node_name)
    if rejected is not None:
        raise _RejectedBeside(rejected)


def _timed(state: CycleState, plugin: object, method: str) -> Callable[..., Any]:
    """The plugin's method; in a cycle that is measured, one that notes how long it takes."""
    call: Callable[..., Any] = getattr(plugin, method)
    return call if state.timer is None else state.timer.timed(name_of(plugin), method, call)


def _call(plugin: object, point: str, method: Any, *arguments: object) -> Any:
    try:
        return method(*arguments)
    except RAISED as error:
        raise _failed(name_of(plugin), point, error) from error


def _failed(name: str, point: str, error: BaseException) -> PluginError:
    return PluginError(name, point, f'running {point} plugin "{name}": {error_text(error)}')


def _rejection(plugin: object, point: str, answer: object) -> Rejection:
    if isinstance(answer, Reject | Pending):
        return answer
    raise _unexpected(name_of(plugin), point, answer)


def _unexpected(name: str, point: str, answer: object) -> PluginError:
    return PluginError(name, point, f'running {point} plugin "{name}": unexpected answer {shown(answer)}')


def no_node_left(restricting: Sequence[str]) -> Reject:
    """PreFilter plugins have left no node, or not the one that was asked about."""
    if len(restricting) == 1:
        return Reject(Reason("NotInNodeSet", f"node(s) didn't satisfy plugin {restricting[0]}", unresolvable=True))
    names = " ".join(sorted(restricting))
    return Reject(
        Reason("NotInNodeSet", f"node(s) didn't satisfy plugin(s) [{names}] simultaneously", unresolvable=True)
    )
