"""A profile: the plugins that serve one scheduler name, instantiated once each and sorted into extension points."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pilotage.api import points
from pilotage.api.plugin import Plugin
from pilotage.api.views import Handle
from pilotage.framework.errors import ProfileError
from pilotage.framework.registry import Registry

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class PluginChoice:
    """A plugin wanted in a profile."""

    name: str
    weight: int = 1
    args: Any = field(default_factory=dict)
    """What the configuration says: an instance of the plugin's `args_type`, or a mapping if it has none."""


class Profile:
    """Plugin instances in order, and which of them serve which point."""

    def __init__(self, scheduler_name: str, plugins: Sequence[Plugin], weights: Mapping[str, int]) -> None:
        self.scheduler_name = scheduler_name
        self.plugins = tuple(plugins)
        self.weights = dict(weights)
        self.pre_enqueue = self._serving(points.PreEnqueue)
        self.queue_sort = self._serving(points.QueueSort)
        self.pre_filter = self._serving(points.PreFilter)
        self.filters = tuple(p for p in self.plugins if isinstance(p, points.Filter | points.VectorFilter))
        self.post_filter = self._serving(points.PostFilter)
        self.pre_score = self._serving(points.PreScore)
        self.scores = tuple(p for p in self.plugins if isinstance(p, points.Score | points.VectorScore))
        self.reserve = self._serving(points.Reserve)
        self.permit = self._serving(points.Permit)
        self.pre_bind = self._serving(points.PreBind)
        self.bind = self._serving(points.Bind)
        self.post_bind = self._serving(points.PostBind)
        self._check()

    def _serving(self, point: type[P]) -> tuple[P, ...]:
        return tuple(plugin for plugin in self.plugins if isinstance(plugin, point))

    def _check(self) -> None:
        if len(self.queue_sort) != 1:
            raise ProfileError(
                f'only one queue sort plugin required for profile with scheduler name "{self.scheduler_name}", '
                f"but got {len(self.queue_sort)}"
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


def build_profile(scheduler_name: str, chosen: Sequence[PluginChoice], registry: Registry, handle: Handle) -> Profile:
    """Instantiate every chosen plugin once."""
    plugins = [_instantiate(scheduler_name, choice, registry[choice.name], handle) for choice in chosen]
    return Profile(scheduler_name, plugins, {choice.name: choice.weight for choice in chosen})


def _instantiate(profile: str, choice: PluginChoice, cls: type[Plugin], handle: Handle) -> Plugin:
    """Plugins take what they need: nothing, the handle, or the handle and their arguments."""
    if inspect.isabstract(cls):
        missing = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
        raise ProfileError(f'profile "{profile}": plugin "{choice.name}" does not implement {missing}')
    wanted = inspect.signature(cls).parameters
    offered: dict[str, Any] = {"handle": handle, "args": _arguments(choice, cls)}
    unknown = [name for name, p in wanted.items() if name not in offered and p.default is inspect.Parameter.empty]
    if unknown:
        raise ProfileError(
            f'profile "{profile}": plugin "{choice.name}" asks for {", ".join(unknown)}; '
            f"a plugin's __init__ may take handle and args"
        )
    return cls(**{name: value for name, value in offered.items() if name in wanted})


def _arguments(choice: PluginChoice, cls: type[Plugin]) -> Any:
    if cls.args_type is None or isinstance(choice.args, cls.args_type):
        return choice.args
    return cls.args_type(**choice.args)
