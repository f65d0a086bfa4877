"""A profile: the plugins that serve one scheduler name, instantiated once each and sorted into extension points.

It plans whose answers equal pods share. A plugin that signs a pod asserts that its Filter and Score look at nothing
but the signed part of the pod and one node. The answers of such plugins are kept as columns per signature and only the
rows of changed nodes are asked for again. The other plugins are asked anew for every pod. The split is made once per
pod class.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from pilotage.api import points
from pilotage.api.plugin import RAISED, Plugin, Sees
from pilotage.api.results import Rejection
from pilotage.api.state import CallTimer, CycleState
from pilotage.api.table import NodeTable, Scores
from pilotage.api.views import Handle, NodeView
from pilotage.framework.errors import PluginError, ProfileError, error_text
from pilotage.framework.extension_points import SERVED_BY
from pilotage.framework.plugin_args import arguments_of
from pilotage.framework.profile_spec import PluginChoice, ProfileRecipe
from pilotage.framework.registry import Registry
from pilotage.model import Pod, PodSpec
from pilotage.model.pod_stand_in import stand_in

P = TypeVar("P")

Named = tuple[tuple[str, Plugin], ...]
"""Plugins with their names."""

_KEPT_PLANS = 64
_KEPT_RECENT = 1024
_SIGNED_BY_VALUE = frozenset(["name", "uid", "annotations", "owner_references"])
"""Fields that can be compared quickly."""


class PlanMemory:
    """The plans of a profile (see `plan_for`); it dies with the plugins that the plans hold.

    They are not kept with the specs: a plan holds plugins, which hold the cluster, whose pods hold the specs, and pods
    are invisible to the garbage collector. A spec that referred to a plan would keep all of it alive for ever.
    """

    __slots__ = ("by_spec", "questions", "recent", "splits")

    def __init__(self) -> None:
        self.by_spec: WeakKeyDictionary[PodSpec, dict[Hashable, Plan | Further]] = WeakKeyDictionary()
        """By what else of a pod is signed."""
        self.splits: dict[tuple[frozenset[str], frozenset[str], frozenset[str]], Plan] = {}
        """By the names of the plugins that do not sign, or skip in PreFilter or PreScore; without a signature."""
        self.questions: _ClassQuestions | None = None
        """What plugins are asked about each class."""
        self.recent: dict[tuple[int, int, str, str], tuple[Pod, Plan]] = {}
        """By the identity of spec and labels, which equal pods share, namespace and node: found without comparing."""


class Profile:
    """Plugin instances in order, and which of them serve which point.

    Without `order` every plugin serves all points that it can, in the order of `plugins`; with it, the names in it
    decide for each point (by the point's name in configuration files), and a point that it lacks is not served.
    """

    def __init__(
        self,
        scheduler_name: str,
        plugins: Sequence[Plugin],
        weights: Mapping[str, int],
        order: Mapping[str, Sequence[str]] | None = None,
        percentage_of_nodes_to_score: int = 0,
    ) -> None:
        self.scheduler_name = scheduler_name
        self.plugins = tuple(plugins)
        self.weights = dict(weights)
        self.percentage_of_nodes_to_score = percentage_of_nodes_to_score
        self.plans = PlanMemory()
        self._order = order
        self.pre_enqueue = self._serving("preEnqueue", points.PreEnqueue)
        self.queue_sort = self._serving("queueSort", points.QueueSort)
        self.pre_filter = self._serving("preFilter", points.PreFilter)
        self.filters = self._serving("filter", Plugin)
        self.post_filter = self._serving("postFilter", points.PostFilter)
        self.pre_score = self._serving("preScore", points.PreScore)
        self.scores = self._serving("score", Plugin)
        self.reserve = self._serving("reserve", points.Reserve)
        self.permit = self._serving("permit", points.Permit)
        self.pre_bind = self._serving("preBind", points.PreBind)
        self.bind = self._serving("bind", points.Bind)
        self.post_bind = self._serving("postBind", points.PostBind)
        self.placement_generate = self._serving("placementGenerate", points.PlacementGenerate)
        self.placement_score = self._serving("placementScore", Plugin)
        self.pod_group_post_filter = self._serving("podGroupPostFilter", points.PodGroupPostFilter)
        self._check()

    def _serving(self, point: str, cls: type[P]) -> tuple[P, ...]:
        able = {name_of(plugin): plugin for plugin in self.plugins if isinstance(plugin, SERVED_BY[point])}
        names = able if self._order is None else self._order.get(point, ())
        return tuple(plugin for name in names if isinstance(plugin := able[name], cls))

    def _check(self) -> None:
        if len(self.queue_sort) != 1:
            raise ProfileError(
                f'only one queue sort plugin required for profile with scheduler name "{self.scheduler_name}", '
                f"but got {len(self.queue_sort)}"
            )
        if len(self.placement_generate) > 1:
            raise ProfileError(
                "at most one placement generate plugin is allowed for profile with scheduler name "
                f'"{self.scheduler_name}"'
            )
        if not self.bind:
            raise ProfileError(
                f'at least one bind plugin is needed for profile with scheduler name "{self.scheduler_name}"'
            )

    def __repr__(self) -> str:
        return f"Profile({self.scheduler_name!r}, {[name_of(plugin) for plugin in self.plugins]})"


def name_of(plugin: object) -> str:
    """The name under which a plugin is configured."""
    assert isinstance(plugin, Plugin)
    return plugin.plugin_name()


def build_profile(
    scheduler_name: str, recipe: ProfileRecipe, registry: Registry, handle_for: Callable[[str], Handle]
) -> Profile:
    """Instantiate every chosen plugin once, whatever number of points it serves; each gets a handle by its name."""
    plugins = [
        make_plugin(scheduler_name, choice, registry[choice.name], handle_for(choice.name)) for choice in recipe.plugins
    ]
    weights = {choice.name: choice.weight for choice in recipe.plugins}
    return Profile(scheduler_name, plugins, weights, recipe.points, recipe.percentage_of_nodes_to_score)


def make_plugin(profile: str, choice: PluginChoice, cls: type[Plugin], handle: Handle) -> Plugin:
    """Plugins take what they need: nothing, the handle, or the handle and their arguments."""
    if inspect.isabstract(cls):
        missing = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
        raise ProfileError(f'profile "{profile}": plugin "{choice.name}" does not implement {missing}')
    wanted = inspect.signature(cls).parameters
    offered: dict[str, Any] = {"handle": handle, "args": _arguments(choice, cls)}
    unknown = [name for name, p in wanted.items() if name not in offered and _is_required(p)]
    if unknown:
        raise ProfileError(
            f'profile "{profile}": plugin "{choice.name}" asks for {", ".join(unknown)}; '
            f"a plugin's __init__ may take handle and args"
        )
    try:
        return cls(**{name: value for name, value in offered.items() if name in wanted})
    except Exception as error:  # an author's constructor may raise anything
        raise ProfileError(
            f'profile "{profile}": plugin "{choice.name}" cannot be made: {type(error).__name__}: {error}'
        ) from error


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind not in (
        parameter.VAR_POSITIONAL,
        parameter.VAR_KEYWORD,
    )


def _arguments(choice: PluginChoice, cls: type[Plugin]) -> Any:
    if cls.args_type is None or isinstance(choice.args, cls.args_type):
        return choice.args
    return arguments_of(choice.name, cls.args_type, choice.args)


class PreFilterCall(NamedTuple):
    """A plugin's PreFilter, ready to be asked."""

    name: str
    ask: Callable[[CycleState, Pod, NodeTable], object]
    skipped: frozenset[str] = frozenset()
    """Those before it that are not asked, because they would skip."""


class NodeFilter(NamedTuple):
    """A shared filter, ready to be asked about a single node."""

    name: str
    ask: Callable[[CycleState, Pod, NodeView], Rejection | None]


class NodeScore(NamedTuple):
    """A shared score, ready to be asked about a single node."""

    name: str
    ask: Callable[[CycleState, Pod, NodeView], int]
    weight: int
    is_final: bool
    """False if the score is normalised over the feasible nodes."""


class ColumnScore(NamedTuple):
    """A shared score that knows columns only."""

    name: str
    ask: Callable[[CycleState, Pod, NodeTable], Scores]
    weight: int
    is_final: bool


class Plan(Struct, frozen=True, eq=False):
    """How to evaluate the nodes for a class of pods."""

    signature: Hashable
    pre_filters: tuple[PreFilterCall, ...]
    """Those that have something to prepare."""
    skip_filter: frozenset[str]
    """Plugins that skip all pods of the class in PreFilter."""
    shared_filters: Named
    fresh_filters: Named
    fresh_filter_names: frozenset[str]
    shared_pre_scores: Named
    asked_pre_scores: Named
    """Those of them that have something to prepare."""
    skip_score: frozenset[str]
    """Those of them that skip all pods of the class."""
    fresh_pre_scores: Named
    shared_scores: Named
    fresh_scores: Named
    versioned: tuple[Plugin, ...]
    """Shared plugins whose answers also depend on facts that have a version."""
    node_filters: tuple[NodeFilter, ...]
    """Shared filters that may be asked about single nodes, which is cheaper than columns of a few rows."""
    moving_filters: tuple[NodeFilter, ...]
    """Those of them that see more than the Node object: what they say changes with the pods there."""
    column_filters: Named
    """Shared filters that can be asked in columns only."""
    moving_scores: tuple[NodeScore, ...]
    """The same of shared scores that may be asked about single nodes."""
    steady_scores: tuple[NodeScore, ...]
    """The other ones of these."""
    column_scores: tuple[ColumnScore, ...]

    @property
    def asks_fresh_scores(self) -> bool:
        """Whether a plugin must be asked about the feasible nodes for every pod."""
        return bool(self.fresh_scores or self.fresh_pre_scores)


def timed_plan(plan: Plan, timer: CallTimer) -> Plan:
    """The same plan for a cycle that is measured: what is asked about single nodes notes how long it takes."""
    return replace(
        plan,
        node_filters=_timed_filters(plan.node_filters, timer),
        moving_filters=_timed_filters(plan.moving_filters, timer),
        moving_scores=_timed_scores(plan.moving_scores, timer),
        steady_scores=_timed_scores(plan.steady_scores, timer),
        column_scores=tuple(
            one._replace(ask=timer.timed(one.name, "score_all", one.ask)) for one in plan.column_scores
        ),
    )


def _timed_filters(filters: tuple[NodeFilter, ...], timer: CallTimer) -> tuple[NodeFilter, ...]:
    return tuple(one._replace(ask=timer.timed(one.name, "filter", one.ask)) for one in filters)


def _timed_scores(scores: tuple[NodeScore, ...], timer: CallTimer) -> tuple[NodeScore, ...]:
    return tuple(one._replace(ask=timer.timed(one.name, "score", one.ask)) for one in scores)


class SharedClass(NamedTuple):
    """Pods about which all filters say the same of any one node."""

    signature: Hashable
    versions: Hashable
    """Of the facts besides pod and node; verdicts of other versions are void."""


def class_of(profile: Profile, state: CycleState, pod: Pod) -> SharedClass | None:
    """The class of a pod after its PreFilter; None if a filter looks at more than the pod and one node."""
    plan = plan_for(profile, pod)
    if not plan.fresh_filter_names <= state.skip_filter:
        return None
    return SharedClass(plan.signature, tuple([plugin.facts_version() for plugin in plan.versioned]))


def plan_for(profile: Profile, pod: Pod) -> Plan:
    """The plan of the pod's class; remembered for the pod's (shared) spec."""
    recent, alike = profile.plans.recent, (id(pod.spec), id(pod.labels), pod.namespace, pod.node_name)
    found = recent.get(alike)
    if found is not None:
        return found[1]
    by_spec = profile.plans.by_spec
    plans = by_spec.get(pod.spec)
    if plans is None:
        plans = by_spec[pod.spec] = {}
    # The spec is shared by pods on different nodes, and by pods that wait for one: the node is not in it.
    key = (pod.namespace, pod.labels, pod.node_name)
    plan = plans.get(key)
    if isinstance(plan, Plan):
        _keep(recent, alike, pod, plan)
        return plan
    if plan is not None:
        known = plans.get((key, plan.of(pod)))
        if isinstance(known, Plan):
            return known
    if len(plans) >= _KEPT_PLANS:
        # Pods of an Indexed Job or a StatefulSet have labels of their own each.
        plans.clear()
    made, further = _make_plan(profile, pod)
    if further.fields:
        plans[key] = further
        plans[key, further.of(pod)] = made
    else:
        plans[key] = made
        _keep(recent, alike, pod, made)
    return made


def _keep(
    recent: dict[tuple[int, int, str, str], tuple[Pod, Plan]], alike: tuple[int, int, str, str], pod: Pod, plan: Plan
) -> None:
    """With the pod: as long as it is there, nothing else has the identity of its spec and labels."""
    if len(recent) >= _KEPT_RECENT:
        recent.clear()
    recent[alike] = pod, plan


class Further(NamedTuple):
    """Plugins sign more of a pod than its namespace, spec, labels and node: these fields."""

    fields: tuple[str, ...]

    def of(self, pod: Pod) -> Hashable:
        """What they hold, or which version of which pod it is."""
        if not _SIGNED_BY_VALUE.issuperset(self.fields):
            return pod.uid, pod.resource_version
        return tuple([getattr(pod, name) for name in self.fields])


def _make_plan(profile: Profile, pod: Pod) -> tuple[Plan, Further]:
    """The plan of a pod, and what plugins looked at beyond what `plan_for` goes by."""
    memory, seen = profile.plans, stand_in(pod)
    if memory.questions is None:
        memory.questions = _class_questions(profile)
    asked = memory.questions
    fragments = [(name, _fragment(name, sign, seen)) for name, sign in asked.signs]
    parts = (
        frozenset([*asked.never_signs, *(name for name, part in fragments if part is None)]),
        frozenset([name for name, may_filter in asked.may_filter if not _says(name, "PreFilter", may_filter, seen)]),
        frozenset([name for name, may_score in asked.may_score if not _says(name, "PreScore", may_score, seen)]),
    )
    further = Further(tuple(sorted(seen.noted - {"node_name"})))
    split = memory.splits.get(parts)
    if split is None:
        split = memory.splits[parts] = _split(profile, *parts)
    return replace(split, signature=tuple([pair for pair in fragments if pair[1] is not None])), further


class _ClassQuestions(NamedTuple):
    """What plugins are asked about a class of pods; left out is who has nothing of its own to say."""

    signs: tuple[tuple[str, Callable[[Pod], Hashable | None]], ...]
    """Of those that filter or score."""
    never_signs: tuple[str, ...]
    may_filter: tuple[tuple[str, Callable[[Pod], bool]], ...]
    may_score: tuple[tuple[str, Callable[[Pod], bool]], ...]


def _class_questions(profile: Profile) -> _ClassQuestions:
    every: tuple[Any, ...] = tuple(dict.fromkeys((*profile.filters, *profile.pre_score, *profile.scores)))
    pre_filters: tuple[Any, ...] = profile.pre_filter
    pre_scores: tuple[Any, ...] = profile.pre_score
    return _ClassQuestions(
        tuple((name_of(one), one.sign) for one in every if type(one).sign is not Plugin.sign),
        tuple(name_of(one) for one in every if type(one).sign is Plugin.sign),
        tuple((name_of(one), one.may_filter) for one in pre_filters if type(one).may_filter is not Plugin.may_filter),
        tuple((name_of(one), one.may_score) for one in pre_scores if type(one).may_score is not Plugin.may_score),
    )


def _fragment(name: str, sign: Callable[[Pod], Hashable | None], pod: Pod) -> Hashable | None:
    try:
        fragment = sign(pod)
        hash(fragment)
    except RAISED as error:
        raise PluginError(name, "Sign", f'running Sign plugin "{name}": {error_text(error)}') from error
    return fragment


def _says(name: str, point: str, ask: Callable[[Pod], bool], pod: Pod) -> bool:
    try:
        return ask(pod)
    except RAISED as error:
        raise PluginError(name, point, f'running {point} plugin "{name}": {error_text(error)}') from error


def _pre_filters(profile: Profile, skipped: frozenset[str]) -> Iterator[PreFilterCall]:
    before: frozenset[str] = frozenset()
    plugins: tuple[Any, ...] = profile.pre_filter
    for plugin in plugins:
        name = name_of(plugin)
        if name in skipped:
            before |= {name}
        elif type(plugin).pre_filter is not points.NothingBeforeFilter.pre_filter:
            yield PreFilterCall(name, plugin.pre_filter, before)


def _split(profile: Profile, unsigned: frozenset[str], skipped: frozenset[str], silent: frozenset[str]) -> Plan:
    """The plan, still without a signature, of pods that plugins do not sign, or that they skip in PreFilter or PreScore
    whatever the cluster is like."""

    def split(plugins: tuple[Any, ...]) -> tuple[Named, Named]:
        named = [(name_of(plugin), plugin) for plugin in plugins]
        shared = tuple(pair for pair in named if pair[0] not in unsigned)
        fresh = tuple(pair for pair in named if pair[0] in unsigned)
        return shared, fresh

    shared_filters, fresh_filters = split(profile.filters)
    shared_pre_scores, fresh_pre_scores = split(profile.pre_score)
    shared_scores, fresh_scores = split(profile.scores)
    shared = dict.fromkeys(plugin for _, plugin in (*shared_filters, *shared_pre_scores, *shared_scores))
    versioned = tuple(plugin for plugin in shared if type(plugin).facts_version is not Plugin.facts_version)
    node_filters = [
        NodeFilter(name, plugin.filter)
        for name, plugin in shared_filters
        if isinstance(plugin, points.Filter) and name not in skipped
    ]
    node_scores = [one for one in _node_scores(profile, shared_scores) if one.name not in silent]
    steady_filters = {name for name, plugin in shared_filters if plugin.filter_sees is Sees.NODE}
    steady_scores = {name for name, plugin in shared_scores if plugin.score_sees is Sees.NODE}
    return Plan(
        signature=None,
        pre_filters=tuple(_pre_filters(profile, skipped)),
        skip_filter=skipped,
        shared_filters=shared_filters,
        fresh_filters=fresh_filters,
        fresh_filter_names=frozenset(name for name, _ in fresh_filters),
        shared_pre_scores=shared_pre_scores,
        asked_pre_scores=tuple(
            pair for pair in shared_pre_scores if pair[0] not in silent and _prepares_scores(pair[1])
        ),
        skip_score=frozenset(name for name, _ in shared_pre_scores if name in silent),
        fresh_pre_scores=fresh_pre_scores,
        shared_scores=shared_scores,
        fresh_scores=fresh_scores,
        versioned=versioned,
        node_filters=tuple(node_filters),
        moving_filters=tuple(one for one in node_filters if one.name not in steady_filters),
        column_filters=tuple(pair for pair in shared_filters if not isinstance(pair[1], points.Filter)),
        moving_scores=tuple(one for one in node_scores if one.name not in steady_scores),
        steady_scores=tuple(one for one in node_scores if one.name in steady_scores),
        column_scores=tuple(_column_scores(profile, shared_scores)),
    )


def _prepares_scores(plugin: Plugin) -> bool:
    return getattr(type(plugin), "pre_score", None) is not points.NothingBeforeScore.pre_score


def _node_scores(profile: Profile, scores: Named) -> Iterator[NodeScore]:
    for name, plugin in scores:
        if isinstance(plugin, points.Score):
            is_final = not isinstance(plugin, points.NormalizeScore)
            yield NodeScore(name, plugin.score, profile.weights[name], is_final)


def _column_scores(profile: Profile, scores: Named) -> Iterator[ColumnScore]:
    for name, plugin in scores:
        if isinstance(plugin, points.VectorScore) and not isinstance(plugin, points.Score):
            is_final = not isinstance(plugin, points.NormalizeScore)
            yield ColumnScore(name, plugin.score_all, profile.weights[name], is_final)
