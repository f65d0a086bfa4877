"""Rules for ConfigMaps and Secrets."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final

from pilotage.sandbox.rules.validation.kind_rules import KindRules, ObjectUpdate
from pilotage.sandbox.rules.validation.metadata import AnyObject
from pilotage.sandbox.rules.validation.names import config_key_problem
from pilotage.sandbox.rules.validation.problems import IMMUTABLE, Errors, forbidden, invalid
from pilotage.sandbox.rules.validation.shapes import Labels

_LARGEST_BYTES: Final = 1024 * 1024


class ConfigMap(AnyObject):
    data: Labels | None = None
    binary_data: Labels | None = None
    immutable: bool | None = None


class Secret(AnyObject):
    data: Labels | None = None
    type: str | None = None
    immutable: bool | None = None


def _config_map_errors(config_map: ConfigMap) -> Errors:
    errors = _entries_errors(config_map.data or {}, "data", encoded=False)
    errors += _entries_errors(config_map.binary_data or {}, "binaryData", encoded=True)
    for key in config_map.binary_data or ():
        if key in (config_map.data or {}):
            errors.append(invalid("data", key, "duplicate of key present in binaryData"))
    return errors


def _secret_errors(secret: Secret) -> Errors:
    return _entries_errors(secret.data or {}, "data", encoded=True)


def _entries_errors(entries: Labels, path: str, *, encoded: bool) -> Errors:
    errors: Errors = []
    size = 0
    for key, value in entries.items():
        if problem := config_key_problem(key):
            errors.append(invalid(f"{path}[{key}]", key, problem))
        if encoded and not _is_base64(value):
            errors.append(invalid(f"{path}[{key}]", value[:40], "illegal base64 data"))
        size += len(value) * 3 // 4 if encoded else len(value.encode(errors="replace"))
    if size > _LARGEST_BYTES:
        errors.append(invalid(path, "", f"may not be more than {_LARGEST_BYTES} bytes"))
    return errors


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _update_errors(change: ObjectUpdate) -> Errors:
    errors: Errors = []
    if isinstance(change.before, Secret) and change.before.type and change.before.type != change.after.type:
        errors.append(invalid("type", change.after.type, IMMUTABLE))
    if change.before.immutable:
        problem = "field is immutable when `immutable` is set"
        fields = ("immutable", "data", "binaryData")
        errors += [forbidden(name, problem) for name in fields if change.old.get(name) != change.new.get(name)]
    return errors


CONFIG_DATA_RULES: Final[Mapping[str, KindRules]] = {
    "ConfigMap": KindRules(ConfigMap, _config_map_errors, update=_update_errors),
    "Secret": KindRules(Secret, _secret_errors, update=_update_errors),
}
