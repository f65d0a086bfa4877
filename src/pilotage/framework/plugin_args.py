"""The arguments of a plugin: what `pluginConfig` says, decoded into the class that the plugin declares."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from pilotage.config import obsolete
from pilotage.config.decode import FieldPlace, camel, decode, description
from pilotage.config.kinds import PluginArguments
from pilotage.config.located import Located, located
from pilotage.config.problems import ConfigError, Problem

_TYPE_META: Final = ("apiVersion", "kind")


def decode_arguments(
    args_type: type | None, entry: PluginArguments, switched_off: Mapping[str, str], problems: list[Problem]
) -> Any:
    """An instance of `args_type`, or the plain mapping if there is no such type; None if something is wrong.

    `switched_off` names the fields that a feature gate has turned off: they must not be given and are then None.
    """
    given = Located({}, entry.place.line) if entry.args is None else entry.args
    place = FieldPlace(given.line, f"{entry.place.path}.args" if entry.place.path else "args")
    if not isinstance(given.value, Mapping):
        problems.append(place.problem("expected an object"))
        return None
    if args_type is None:
        return given.plain()
    _check_type_meta(entry.name, given, place, problems)
    for name in switched_off:
        if name in given.value:
            message = f"Forbidden: remove it or turn on the feature gate {switched_off[name]}"
            problems.append(Problem(given.line_of(name), f"{place.path}.{name}", message))
    fields = {key: item for key, item in given.value.items() if key not in _TYPE_META and key not in switched_off}
    args = _decoded(args_type, Located(fields, given.line), problems, place)
    if args is None or not switched_off:
        return args
    unset = [field.name for field in dataclasses.fields(args) if camel(field.name) in switched_off]
    return dataclasses.replace(args, **dict.fromkeys(unset))


def arguments_of(plugin: str, args_type: type, given: Mapping[str, Any]) -> Any:
    """The arguments for a plugin that is built without a configuration file; ConfigError if they are wrong."""
    problems: list[Problem] = []
    args = decode_arguments(args_type, PluginArguments(plugin, located(given)), {}, problems)
    if problems:
        raise ConfigError(f'plugin "{plugin}"', problems)
    return args


def _check_type_meta(plugin: str, given: Located, place: FieldPlace, problems: list[Problem]) -> None:
    assert isinstance(given.value, Mapping)
    kind, version = given.value.get("kind"), given.value.get("apiVersion")
    wanted = f"{plugin}Args"
    if kind is not None and kind.value not in (None, wanted):
        value = f'"{kind.value}"' if isinstance(kind.value, str) else description(kind)
        message = f"Invalid value: {value}: has to match plugin args (write {wanted}, or leave it out)"
        problems.append(Problem(kind.line, f"{place.path}.kind", message))
    if version is not None and isinstance(version.value, str) and version.value in obsolete.OLD_VERSIONS:
        message = f'Unsupported value: "{version.value}": write "{obsolete.API_VERSION}", or leave it out'
        problems.append(Problem(version.line, f"{place.path}.apiVersion", message))


def _decoded(args_type: type, fields: Located, problems: list[Problem], place: FieldPlace) -> Any:
    try:
        return decode(args_type, fields, problems, place.path)
    except Exception as error:  # the class comes from the plugin's author and may do anything
        message = f"{args_type.__name__}, the class of the arguments, does not work: {type(error).__name__}: {error}"
        problems.append(place.problem(message))
        return None
