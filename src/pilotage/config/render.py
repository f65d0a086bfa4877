"""A configuration as the YAML that would be read back as the same: the inverse of `load`, but for secrets."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import msgspec

from pilotage.config.decode import FieldPlace, name_in_files, stands_in_files
from pilotage.config.kinds import (
    KIND,
    PILOTAGE_API_VERSION,
    PILOTAGE_KIND,
    PilotageConfiguration,
    PluginRef,
    SchedulerConfiguration,
)
from pilotage.config.located import Located
from pilotage.config.obsolete import API_VERSION
from pilotage.model.durations import DurationText, go_duration

HIDDEN: Final = "***"
"""Instead of a key: loading the file fails with the message that it is none."""


def render(configuration: SchedulerConfiguration) -> str:
    """The complete configuration, defaults included; a second document only if there are additions of our own."""
    import yaml

    documents = [{"apiVersion": API_VERSION, "kind": KIND, **plain(configuration.scheduler)}]
    if configuration.additions != PilotageConfiguration():
        additions = plain(configuration.additions)
        documents.append({"apiVersion": PILOTAGE_API_VERSION, "kind": PILOTAGE_KIND, **additions})
    return "---\n".join(
        yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120) for document in documents
    )


def plain(value: Any, hint: Any = None) -> Any:
    """A dataclass as the JSON value of a file: camelCase, durations as texts, nothing where nothing is set."""
    if _is_duration(hint) and isinstance(value, int | float):
        return go_duration(value)
    if isinstance(value, Located):
        return value.plain()
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if dataclasses.is_dataclass(value):
        return _object(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value.value if isinstance(value, Enum) else value


def _object(value: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(type(value), include_extras=True)
    made = {}
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if not stands_in_files(field) or _is_unset(item):
            continue
        if isinstance(value, PluginRef) and field.name == "weight" and not item:
            continue
        # What stands in no repr stands in no file either: it is a key.
        made[name_in_files(field)] = HIDDEN if item and not field.repr else plain(item, hints[field.name])
    return made


def _is_unset(item: Any) -> bool:
    return item is None or isinstance(item, FieldPlace) or (isinstance(item, Mapping | tuple) and not item)


def _is_duration(hint: Any) -> bool:
    """Whether a hint is `Duration`, or a union with it."""
    if any(isinstance(mark, DurationText) for mark in getattr(hint, "__metadata__", ())):
        return True
    return any(_is_duration(member) for member in typing.get_args(hint) if not isinstance(member, str))
