"""What is said when an object from the API server cannot be understood.

The reader of the message has to find the object and the field: the error names kind, namespace/name and field path,
in Kubernetes' words (`spec.containers[0].resources.requests: expected object, got string`). msgspec reports
"Expected `object`, got `str` - at `$.spec...`"; `explain_problem` translates it.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from pilotage.model.quantity import NOT_A_QUANTITY

_PATH = re.compile(r" - at `(?:key in )?\$([^`]*)`$")
_EXPECTED = re.compile(r"^Expected `(?P<want>[^`]+)`, got `(?P<got>[^`]+)`")
_BOUND = re.compile(r"^Expected `(?P<want>[^`]+)`(?P<bound> [<>]=? \S+)$")
_MISSING = re.compile(r"^Object missing required field `(?P<name>[^`]+)`")
_PATTERN_MISSED = "matching regex"  # quantities are the only strings of the model that have to match one
_TYPE_WORDS = {"str": "string", "int": "integer", "bool": "boolean", "float": "number"}
_NAMES_IN_BROKEN_JSON = re.compile(rb'"(name|namespace)"\s*:\s*"([^"\\]{1,253})"')


class DecodeError(ValueError):
    """An object that does not have the shape of its kind. `key` is "ns/name" or "name", "" if unknown."""

    def __init__(self, kind: str, key: str, path: str, problem: str) -> None:
        self.kind = kind
        self.key = key
        self.path = path
        self.problem = problem
        super().__init__(kind, key, path, problem)

    def __str__(self) -> str:
        head = f"{self.kind} {self.key}" if self.key else self.kind
        return ": ".join(part for part in (head, self.path, self.problem) if part)


def decode_error(kind: str, data: bytes, cause: Exception) -> DecodeError:
    """The error for one object whose JSON is `data`; name and namespace are recovered as far as possible."""
    path, problem = explain_problem(str(cause))
    return DecodeError(kind, recover_key(data), path, problem)


def explain_problem(text: str) -> tuple[str, str]:
    """(field path, problem) of a msgspec message."""
    path = ""
    found = _PATH.search(text)
    if found:
        path = found.group(1).lstrip(".").replace("[...]", "[*]")
        text = text[: found.start()]
    if _PATTERN_MISSED in text:
        return path, NOT_A_QUANTITY
    wrong_type = _EXPECTED.match(text)
    if wrong_type:
        return path, f"expected {_in_words(wrong_type['want'])}, got {_in_words(wrong_type['got'])}"
    out_of_bounds = _BOUND.match(text)
    if out_of_bounds:
        return path, f"expected {_in_words(out_of_bounds['want'])}{out_of_bounds['bound']}"
    missing = _MISSING.match(text)
    if missing:
        return ".".join(filter(None, (path, missing["name"]))), "required, but missing"
    return path, text[:1].lower() + text[1:] if not text.startswith("JSON") else text


def recover_key(data: bytes) -> str:
    """ "ns/name" or "name" of an object that does not decode; "" if not even that can be read."""
    try:
        tree = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _key_from_broken_json(data)
    metadata: Any = tree.get("metadata") if isinstance(tree, dict) else None
    if not isinstance(metadata, dict):
        return ""
    parts = (metadata.get("namespace"), metadata.get("name"))
    return "/".join(part for part in parts if isinstance(part, str) and part)


def _key_from_broken_json(data: bytes) -> str:
    start = data.find(b'"metadata"')
    if start < 0:
        return ""
    seen: dict[str, str] = {}
    for found in _NAMES_IN_BROKEN_JSON.finditer(data, start, start + 65536):
        seen.setdefault(found[1].decode(), found[2].decode("utf-8", "replace"))
        if len(seen) == 2:
            break
    return "/".join(seen[part] for part in ("namespace", "name") if part in seen)


def _in_words(types: str) -> str:
    names = [_TYPE_WORDS.get(name.strip(), name.strip()) for name in types.split("|")]
    kept = [name for name in names if name != "null"] or names
    return " or ".join(kept)
