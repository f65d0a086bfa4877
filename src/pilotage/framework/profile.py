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
from pilotage.api.plugin import RAISED, Plugin
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
_SIGNED_BY_VALUE = frozenset(["name", "uid", "annotations", "owner_references"])
"""Fields that can be compared quickly."""


class PlanMemory:
    """The plans of a profile (see `plan_for`); it dies with the plugins that the plans hold.

    They are not kept with the specs: a plan holds plugins, which hold the cluster, whose pods hold the specs, and pods
    are invisible to the garbage collector. A spec that referred to a plan would keep all of it alive for ever.
    """

    __slots__ = ("by_spec", "evaluating", "splits")

    def __init__(self) -> None:
        self.by_spec: WeakKeyDictionary[PodSpec, dict[Hashable, Plan | Further]] = WeakKeyDictionary()
        """By what else of a pod is signed."""
        self.splits: dict[frozenset[str], Plan] = {}
        """By the names of the plugins that do not sign; still without a signature."""
        self.evaluating: Named | None = None
        """All that filter or score."""


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
    shared_filters: Named
    fresh_filters: Named
    fresh_filter_names: frozenset[str]
    shared_pre_scores: Named
    fresh_pre_scores: Named
    shared_scores: Named
    fresh_scores: Named
    versioned: tuple[Plugin, ...]
    """Shared plugins whose answers also depend on facts that have a version."""
    node_filters: tuple[NodeFilter, ...]
    """Shared filters that may be asked about single nodes, which is cheaper than columns of a few rows."""
    column_filters: Named
    """Shared filters that can be asked in columns only."""
    node_scores: tuple[NodeScore, ...]
    column_scores: tuple[ColumnScore, ...]
    """The same of shared scores."""

    @property
    def asks_fresh_scores(self) -> bool:
        """Whether a plugin must be asked about the feasible nodes for every pod."""
        return bool(self.fresh_scores or self.fresh_pre_scores)


def timed_plan(plan: Plan, timer: CallTimer) -> Plan:
    """The same plan for a cycle that is measured: what is asked about single nodes notes how long it takes."""
    return replace(
        plan,
        node_filters=tuple(one._replace(ask=timer.timed(one.name, "filter", one.ask)) for one in plan.node_filters),
        node_scores=tuple(one._replace(ask=timer.timed(one.name, "score", one.ask)) for one in plan.node_scores),
        column_scores=tuple(
            one._replace(ask=timer.timed(one.name, "score_all", one.ask)) for one in plan.column_scores
        ),
    )


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
    by_spec = profile.plans.by_spec
    plans = by_spec.get(pod.spec)
    if plans is None:
        plans = by_spec[pod.spec] = {}
    # The spec is shared by pods on different nodes, and by pods that wait for one: the node is not in it.
    key = (pod.namespace, pod.labels, pod.node_name)
    plan = plans.get(key)
    if isinstance(plan, Plan):
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
    return made


class Further(NamedTuple):
    """Plugins sign more of a pod than its namespace, spec, labels and node: these fields."""

    fields: tuple[str, ...]

    def of(self, pod: Pod) -> Hashable:
        """What they hold, or which version of which pod it is."""
        if not _SIGNED_BY_VALUE.issuperset(self.fields):
            return pod.uid, pod.resource_version
        return tuple([getattr(pod, name) for name in self.fields])


def _fragment(plugin: Plugin, pod: Pod) -> Hashable | None:
    name = name_of(plugin)
    try:
        fragment = plugin.sign(pod)
        hash(fragment)
    except RAISED as error:
        raise PluginError(name, "Sign", f'running Sign plugin "{name}": {error_text(error)}') from error
    return fragment


def _make_plan(profile: Profile, pod: Pod) -> tuple[Plan, Further]:
    """The plan of a pod, and what plugins looked at beyond what `plan_for` goes by."""
    seen = stand_in(pod)
    fragments = {name: _fragment(plugin, seen) for name, plugin in _evaluating(profile)}
    further = Further(tuple(sorted(seen.noted - {"node_name"})))
    signature = tuple((name, part) for name, part in fragments.items() if part is not None)
    unsigned = frozenset(name for name, part in fragments.items() if part is None)
    splits = profile.plans.splits
    if unsigned not in splits:
        splits[unsigned] = _split(profile, unsigned)
    return replace(splits[unsigned], signature=signature), further


def _evaluating(profile: Profile) -> Named:
    plans = profile.plans
    if plans.evaluating is None:
        plugins: tuple[Any, ...] = tuple(dict.fromkeys((*profile.filters, *profile.pre_score, *profile.scores)))
        plans.evaluating = tuple((name_of(plugin), plugin) for plugin in plugins)
    return plans.evaluating


def _split(profile: Profile, unsigned: frozenset[str]) -> Plan:
    """The plan, still without a signature, of pods that these plugins do not sign."""

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
    return Plan(
        None,
        shared_filters,
        fresh_filters,
        frozenset(name for name, _ in fresh_filters),
        shared_pre_scores,
        fresh_pre_scores,
        shared_scores,
        fresh_scores,
        versioned,
        node_filters=tuple(NodeFilter(name, p.filter) for name, p in shared_filters if isinstance(p, points.Filter)),
        column_filters=tuple(pair for pair in shared_filters if not isinstance(pair[1], points.Filter)),
        node_scores=tuple(_node_scores(profile, shared_scores)),
        column_scores=tuple(_column_scores(profile, shared_scores)),
    )


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
