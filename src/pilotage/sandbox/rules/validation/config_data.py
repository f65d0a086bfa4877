"""Rules for ConfigMaps and Secrets."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final

from pilotage.sandbox.rules.json_fields import Json
from pilotage.sandbox.rules.validation.field_rules import KindRules, Rule, fields
from pilotage.sandbox.rules.validation.names import config_key_problem
from pilotage.sandbox.rules.validation.problems import IMMUTABLE, Errors, forbidden, invalid

_LARGEST_BYTES: Final = 1024 * 1024


def _entries(*, encoded: bool) -> Rule:
    def check(entries: Mapping[str, str], path: str) -> Errors:
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

    return check


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _unique_keys(config_map: Json, _path: str) -> Errors:
    texts = config_map.get("data") or {}
    keys = (key for key in config_map.get("binaryData") or () if key in texts)
    return [invalid("data", key, "duplicate of key present in binaryData") for key in keys]


def _keeps_its_type(old: Json, new: Json) -> Errors:
    has_changed = old.get("type") and old["type"] != new.get("type")
    return ([invalid("type", new.get("type"), IMMUTABLE)] if has_changed else []) + _immutable_if_set(old, new)


def _immutable_if_set(old: Json, new: Json) -> Errors:
    names = ("immutable", "data", "binaryData") if old.get("immutable") else ()
    problem = "field is immutable when `immutable` is set"
    return [forbidden(name, problem) for name in names if old.get(name) != new.get(name)]


_CONFIG_MAP: Final = fields(
    ("data", _entries(encoded=False)), ("binaryData", _entries(encoded=True)), ("", _unique_keys)
)
_SECRET: Final = fields(("data", _entries(encoded=True)))

CONFIG_DATA_RULES: Final[Mapping[str, KindRules]] = {
    "ConfigMap": KindRules(_CONFIG_MAP, update=_immutable_if_set),
    "Secret": KindRules(_SECRET, update=_keeps_its_type),
}
