"""A profile: the plugins that serve one scheduler name, instantiated once each and sorted into extension points."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from pilotage.api import points
from pilotage.api.plugin import Plugin
from pilotage.api.views import Handle
from pilotage.framework.errors import ProfileError
from pilotage.framework.extension_points import SERVED_BY
from pilotage.framework.plugin_args import arguments_of
from pilotage.framework.profile_spec import PluginChoice, ProfileRecipe
from pilotage.framework.registry import Registry
from pilotage.model import PodSpec

if TYPE_CHECKING:
    from pilotage.framework.plan import Named, Plan

P = TypeVar("P")


class PlanMemory:
    """The plans of a profile (see `plan_for`); it dies with the plugins that the plans hold.

    They are not kept with the specs: a plan holds plugins, which hold the cluster, whose pods hold the specs, and pods
    are invisible to the garbage collector. A spec that referred to a plan would keep all of it alive for ever.
    """

    __slots__ = ("by_spec", "evaluating", "splits")

    def __init__(self) -> None:
        self.by_spec: WeakKeyDictionary[PodSpec, dict[Hashable, Plan]] = WeakKeyDictionary()
        """By what else of a pod is signed."""
        self.splits: dict[frozenset[str], Plan] = {}
        """By the names of the plugins that do not sign; still without a signature."""
        self.evaluating: Named | None = None
        """All that filter or score."""


class Profile:
    """Plugin instances in order, and which of them serve which point.

    Without `order` every plugin serves all points that it can, in the order of `plugins`; with it, the names in it
    decide for each point (by the point's name in configuration files), and a point that it lacks is served by nobody.
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
