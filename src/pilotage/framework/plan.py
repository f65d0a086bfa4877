"""Which plugins' answers can be shared between equal pods.

A plugin that signs a pod promises that its Filter and Score look at nothing but the signed part of the pod and one
node. The answers of such plugins are kept as columns per signature and only the rows of changed nodes are asked for
again. The other plugins are asked anew for every pod. The split is made once per pod class.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pilotage.api import points
from pilotage.api.plugin import RAISED, Plugin
from pilotage.api.results import Rejection
from pilotage.api.state import CallTimer, CycleState
from pilotage.api.table import NodeTable, Scores
from pilotage.api.views import NodeView
from pilotage.framework.errors import PluginError, error_text
from pilotage.framework.profile import Profile, name_of
from pilotage.model import Pod

Named = tuple[tuple[str, Plugin], ...]
"""Plugins with their names."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
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
        """Is there anybody who must be asked about the feasible nodes for every pod?"""
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


_KEPT_PLANS = 64


def plan_for(profile: Profile, pod: Pod) -> Plan:
    """The plan of the pod's class; remembered for the pod's (shared) spec."""
    by_spec = profile.plans.by_spec
    plans = by_spec.get(pod.spec)
    if plans is None:
        plans = by_spec[pod.spec] = {}
    # The spec is shared by pods on different nodes, and by pods that wait for one: the node is not in it.
    key = (pod.namespace, pod.labels, pod.node_name)
    plan = plans.get(key)
    if plan is None:
        if len(plans) >= _KEPT_PLANS:
            # Pods of an Indexed Job or a StatefulSet have labels of their own each.
            plans.clear()
        plan = plans[key] = _make_plan(profile, pod)
    return plan


def _fragment(plugin: Plugin, pod: Pod) -> Hashable | None:
    name = name_of(plugin)
    try:
        fragment = plugin.sign(pod)
        hash(fragment)
    except RAISED as error:
        raise PluginError(name, "Sign", f'running Sign plugin "{name}": {error_text(error)}') from error
    return fragment


def _make_plan(profile: Profile, pod: Pod) -> Plan:
    fragments = {name: _fragment(plugin, pod) for name, plugin in _evaluating(profile)}
    signature = tuple((name, part) for name, part in fragments.items() if part is not None)
    unsigned = frozenset(name for name, part in fragments.items() if part is None)
    splits = profile.plans.splits
    if unsigned not in splits:
        splits[unsigned] = _split(profile, unsigned)
    return replace(splits[unsigned], signature=signature)


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
