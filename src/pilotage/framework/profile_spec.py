"""Profile specifications from a configuration: the plugins to instantiate, their arguments, and who serves which point.

Everything that can be known before a scheduler exists is checked here, for all profiles at once, so that
`pilotage config check` and start-up say the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from pilotage.config.decode import FieldPlace
from pilotage.config.kinds import PluginArguments, ProfileConfiguration, SchedulerConfiguration
from pilotage.config.problems import ConfigError, Problem
from pilotage.framework.plugin_args import decode_arguments
from pilotage.framework.plugin_sets import Catalog, lay_out, unknown_plugin


@dataclass(frozen=True, slots=True)
class PluginChoice:
    """A plugin wanted in a profile."""

    name: str
    weight: int = 1
    args: Any = field(default_factory=dict)
    """An instance of the plugin's `args_type`, or a mapping: decoded if the plugin has such a type, else as it is."""


class ProfileRecipe(Struct, frozen=True):
    """How to make a profile."""

    plugins: tuple[PluginChoice, ...]
    points: Mapping[str, tuple[str, ...]] | None = None
    """Names in order for each extension point; None: every plugin serves what it can, in the order of `plugins`."""
    percentage_of_nodes_to_score: int = 0
    """0: all nodes."""


def recipes_of(configuration: SchedulerConfiguration, catalog: Catalog) -> dict[str, ProfileRecipe]:
    """The recipes by scheduler name; ConfigError with everything that is wrong in any profile."""
    recipes, problems = examine_profiles(configuration, catalog)
    if problems:
        raise ConfigError(configuration.source, problems)
    return recipes


def examine_profiles(
    configuration: SchedulerConfiguration, catalog: Catalog
) -> tuple[dict[str, ProfileRecipe], list[Problem]]:
    """The recipes by scheduler name, and everything that is wrong in any profile."""
    problems: list[Problem] = []
    recipes: dict[str, ProfileRecipe] = {}
    for profile in configuration.scheduler.profiles:
        layout = lay_out(profile, catalog, problems)
        args = _arguments(profile, layout.plugins, catalog, problems)
        own = profile.percentage_of_nodes_to_score
        recipes[profile.scheduler_name] = ProfileRecipe(
            tuple(PluginChoice(name, layout.weights.get(name, 1), args.get(name, {})) for name in layout.plugins),
            layout.points,
            configuration.scheduler.percentage_of_nodes_to_score if own is None else own,
        )
        _check_common_sorting(profile, recipes, problems)
    return recipes, problems


def _arguments(
    profile: ProfileConfiguration, enabled: tuple[str, ...], catalog: Catalog, problems: list[Problem]
) -> dict[str, Any]:
    """Decoded arguments of the enabled plugins and of all others that the configuration has arguments for."""
    entries = {entry.name: entry for entry in profile.plugin_config}
    found: dict[str, Any] = {}
    for name in dict.fromkeys((*enabled, *entries)):
        entry = entries.get(name) or _nothing_given(profile, name)
        if name not in catalog.names():
            problems.append(entry.place.problem(unknown_plugin(profile.scheduler_name, name, catalog), "name"))
            continue
        args_type = catalog.args_type(name)
        if args_type is not None or name in entries:
            found[name] = decode_arguments(args_type, entry, catalog.switched_off.get(name, {}), problems)
    return found


def _nothing_given(profile: ProfileConfiguration, name: str) -> PluginArguments:
    path = ".".join(filter(None, (profile.place.path, f"pluginConfig[name={name}]")))
    return PluginArguments(name, place=FieldPlace(profile.place.line, path))


def _check_common_sorting(
    profile: ProfileConfiguration, recipes: Mapping[str, ProfileRecipe], problems: list[Problem]
) -> None:
    """There is one queue, so all profiles must sort it alike."""
    first_name = next(iter(recipes))
    first, own = _sorting(recipes[first_name]), _sorting(recipes[profile.scheduler_name])
    if first[0] != own[0]:
        message = (
            f'has to match for all profiles: "{first_name}" sorts by {_names(first[0])}, this one by {_names(own[0])}'
        )
        problems.append(profile.place.problem(message, "plugins.queueSort"))
    elif first[1] != own[1]:
        message = f'the args of {_names(own[0])} have to match for all profiles and differ from those of "{first_name}"'
        problems.append(profile.place.problem(message, "pluginConfig"))


def _sorting(recipe: ProfileRecipe) -> tuple[tuple[str, ...], list[Any]]:
    names = (recipe.points or {}).get("queueSort", ())
    return names, [choice.args for choice in recipe.plugins if choice.name in names]


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"
