"""The configuration with everything filled in that applies: what `/configz` shows and `--write-config-to` writes.

Plugins and their arguments are spelled out per profile, so that the file means the same whatever later defaults are. In
`multiPoint` stands every plugin of the profile; a point where others run, or in another order, has a list of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

from pilotage.assembly import SchedulerOptions
from pilotage.config.kinds import (
    EVERYTHING,
    ClientConnection,
    PluginArguments,
    PluginRef,
    PluginSet,
    Point,
    ProfileConfiguration,
    SchedulerConfiguration,
)
from pilotage.config.located import located
from pilotage.config.obsolete import API_VERSION
from pilotage.config.render import plain
from pilotage.framework.extension_points import SERVED_BY, serves
from pilotage.framework.profile_spec import PluginChoice, ProfileRecipe
from pilotage.framework.registry import Registry
from pilotage.plugins import DEFAULT_PLUGINS

_NOTHING_ELSE = (PluginRef(EVERYTHING),)
_NO_LIMIT = -1.0


def complete_configuration(
    configuration: SchedulerConfiguration, options: SchedulerOptions, plugin_files: Iterable[Path], kubeconfig: str = ""
) -> SchedulerConfiguration:
    """What `options` were made from, with all defaults, feature gates and plugin files; it can be read back."""
    connection = configuration.scheduler.client_connection
    scheduler = dataclasses.replace(
        with_profiles(configuration, options).scheduler,
        client_connection=_complete_connection(connection, kubeconfig),
    )
    additions = dataclasses.replace(
        configuration.additions,
        plugin_files=tuple(str(path.absolute()) for path in plugin_files),
        feature_gates={name: is_on for name, _, is_on in options.feature_gates.states()},
    )
    return dataclasses.replace(configuration, scheduler=scheduler, additions=additions)


def with_profiles(configuration: SchedulerConfiguration, options: SchedulerOptions) -> SchedulerConfiguration:
    """The same with the plugins and arguments that the profiles have."""
    registry = Registry([*(cls for cls, _ in DEFAULT_PLUGINS), *options.extra_plugins])
    profiles = tuple(
        _complete_profile(profile, options.profiles[profile.scheduler_name], registry)
        for profile in configuration.scheduler.profiles
    )
    return dataclasses.replace(configuration, scheduler=dataclasses.replace(configuration.scheduler, profiles=profiles))


def _complete_connection(connection: ClientConnection, kubeconfig: str) -> ClientConnection:
    return dataclasses.replace(
        connection,
        kubeconfig=kubeconfig or connection.kubeconfig,
        qps=connection.calls_per_second or _NO_LIMIT,
        burst=connection.calls_at_once,
    )


def _complete_profile(profile: ProfileConfiguration, recipe: ProfileRecipe, registry: Registry) -> ProfileConfiguration:
    refs = {choice.name: _reference(choice, registry) for choice in recipe.plugins}
    sets = {"multiPoint": PluginSet(tuple(refs.values()), _NOTHING_ELSE)}
    for point, names in (recipe.points or {}).items():
        spread = tuple(name for name in refs if point in SERVED_BY and serves(registry[name], point))
        if names != spread:
            sets[point] = PluginSet(tuple(refs[name] for name in names), _NOTHING_ELSE)
    return dataclasses.replace(
        profile,
        percentage_of_nodes_to_score=recipe.percentage_of_nodes_to_score,
        plugins=cast("Mapping[Point, PluginSet | tuple[PluginRef, ...]]", sets),
        plugin_config=tuple(_arguments(choice) for choice in recipe.plugins if choice.args),
    )


def _reference(choice: PluginChoice, registry: Registry) -> PluginRef:
    return PluginRef(choice.name, choice.weight if serves(registry[choice.name], "score") else 0)


def _arguments(choice: PluginChoice) -> PluginArguments:
    """Typed ones have a kind; a plugin that declares no type gets its arguments as they were written."""
    kind = {} if isinstance(choice.args, Mapping) else {"apiVersion": API_VERSION, "kind": f"{choice.name}Args"}
    return PluginArguments(choice.name, located({**kind, **plain(choice.args)}))
