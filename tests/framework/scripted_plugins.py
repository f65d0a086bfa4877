"""Plugins that answer as a test tells them, and profiles made of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pilotage.api import Bind, Plugin, QueueSort, points
from pilotage.cluster.state import Cluster
from pilotage.framework.profile import Profile
from pilotage.plugins import NodeResourcesFit, PrioritySort
from pilotage.testing import NodeBuilder
from tests.default_plugins import default

_POINT_OF = {
    "pre_enqueue": points.PreEnqueue,
    "sort_key": points.QueueSort,
    "pre_filter": points.PreFilter,
    "filter": points.Filter,
    "filter_all": points.VectorFilter,
    "post_filter": points.PostFilter,
    "pre_score": points.PreScore,
    "score": points.Score,
    "score_all": points.VectorScore,
    "normalize": points.NormalizeScore,
    "reserve": points.Reserve,
    "unreserve": points.Reserve,
    "permit": points.Permit,
    "pre_bind": points.PreBind,
    "pre_bind_pre_flight": points.PreBind,
    "bind": points.Bind,
    "post_bind": points.PostBind,
}
_COROUTINES = {"pre_bind", "bind", "post_bind"}

calls: list[str] = []
"""`Plugin.method` of every call to a scripted plugin; the fixture `calls` empties it first."""


def scripted(plugin_name: str, **answers: Any) -> Plugin:
    """A plugin with one method per keyword: a function of the method's arguments, a value, or an exception to raise."""
    if "reserve" in answers or "unreserve" in answers:
        answers = {"reserve": None, "unreserve": None, **answers}
    if "pre_bind_pre_flight" in answers:
        answers = {"pre_bind": None, **answers}
    bases = tuple(dict.fromkeys(_POINT_OF[method] for method in answers if method in _POINT_OF))
    methods = {method: _method(plugin_name, method, answer) for method, answer in answers.items()}
    cls = type(plugin_name, (Plugin, *bases), {"name": plugin_name, **methods})
    plugin: Plugin = cls()
    return plugin


def _method(plugin_name: str, method: str, answer: Any) -> Callable[..., Any]:
    def sync(self: Plugin, *arguments: Any) -> Any:
        calls.append(f"{plugin_name}.{method}")
        if isinstance(answer, Exception):
            raise answer
        return answer(*arguments) if callable(answer) else answer

    async def coroutine(self: Plugin, *arguments: Any) -> Any:
        result = sync(self, *arguments)
        return await result if inspect.isawaitable(result) else result

    return coroutine if method in _COROUTINES else sync


FIT = default(NodeResourcesFit)
"""A real plugin that signs, filters and scores."""


class NullBinder(Plugin, Bind):
    """Binds nothing; a profile needs a binder."""

    async def bind(self, state: Any, pod: Any, node_name: str) -> None:
        return None


def profile_of(*plugins: Plugin, **weights: int) -> Profile:
    """A complete profile around the plugins under test."""
    chosen = list(plugins)
    if not any(isinstance(plugin, QueueSort) for plugin in chosen):
        chosen.append(PrioritySort())
    if not any(isinstance(plugin, Bind) for plugin in chosen):
        chosen.append(NullBinder())
    return Profile("default-scheduler", chosen, {p.plugin_name(): weights.get(p.plugin_name(), 1) for p in chosen})


def cluster_of(*nodes: NodeBuilder) -> Cluster:
    cluster = Cluster()
    for builder in nodes:
        cluster.put_node(builder.build())
    return cluster
