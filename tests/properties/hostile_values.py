"""Values that fit the type of a field and nothing else: for objects that no sane person writes and an API server may
still hold.

`overlay` takes a valid object and puts such values into some of its fields, guided by the schemas of the sandbox: every
field of a kind is reached, whether our model reads it or not.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pilotage.sandbox.kinds.api_schemas import SCALARS, api_schemas, element

Json = dict[str, Any]

_NAMES: Final = ("", "a", "h-0", "h-1", "cpu", "memory", "pods", "nvidia.com/gpu", "default", "kubernetes.io/hostname")
_WORDS: Final = ("In", "Exists", "Gt", "NoSchedule", "Required", "Never", "Any", "Always", "Delete", "Exact", "All")
_ODD: Final = (
    "x" * 300,
    "a/b/c",
    "../..",
    "\u0000",
    "\U0001f600",
    "٣",
    "*",
    "{{",
    "-",
    "9" * 5000,
    "'\";",
    "\n\x1b[31m",
)
STRINGS: Final = (*_NAMES, *_WORDS, *_ODD)
INTEGERS: Final = (0, 1, -1, 2, 100, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 2**63, 10**30)
QUANTITIES: Final = (
    *("0", "1", "-1", "100m", "8Ei", "1e999", "1e-999", "1E", "9223372036854775808", "1n", "0." + "0" * 300 + "1"),
    *("9" * 5000, "-" + "9" * 400, "0" * 5000 + "1", "1e9999", "NaN", "inf", "", "٣", "+.5Ki", "1" * 400 + "e999"),
    *(0, -1, 2**63, 10**30, 0.1, 1e300, -1e-300),
)
TIMES: Final = (
    *("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1969-12-31T23:59:59Z", "2026-02-30T00:00:00Z", "", "soon"),
    *("9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", "2026-01-01T00:00:00+99:99", "2026-01-01T00:00:00Z"),
)
_SCALARS: Final[Mapping[str, Sequence[Any]]] = {
    "string": STRINGS,
    "integer": INTEGERS,
    "int32": INTEGERS,
    "boolean": (True, False),
    "number": (0, -1, 1e308, -1e308, 0.5, 2**64),
    "time": TIMES,
    "quantity": QUANTITIES,
    "int-or-string": (*INTEGERS, "50%", "-1%", "9" * 5000 + "%", "", "x"),
    "object": ({}, {"a": 1}, [], None, "x"),
    "any": ({}, [], None, 0, "x", {"a": {"b": [1, None]}}, [[[[[]]]]]),
}
_DEEPEST: Final = 9
_MOST_VALUES: Final = 400
"""Of one object: schemas are wide, and deep."""


class HostileValues:
    """Values by type code of `api_schemas`, or by JSON schema."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._left = 0

    def overlay(self, obj: Any, code: str, *, share: float = 0.12, depth: int = 0) -> Any:
        """The object with hostile values in about `share` of the fields that its type has."""
        self._left = self._left if depth else _MOST_VALUES
        shape, inner = element(code)
        if shape == "list" and isinstance(obj, list):
            return [self.overlay(one, inner, share=share, depth=depth + 1) for one in obj]
        if shape or inner in SCALARS or not isinstance(obj, dict):
            return obj
        found = dict(obj)
        for name, field in api_schemas()[inner].items():
            if name in found and self._chance.random() > share / 3:
                found[name] = self.overlay(found[name], field, share=share, depth=depth + 1)
            elif self._chance.random() < share:
                found[name] = self.value(field, depth + 1)
        return found

    def value(self, code: str, depth: int = 0) -> Any:
        shape, inner = element(code)
        if self._chance.random() < 0.02:
            return None
        if shape == "list":
            return [self.value(inner, depth + 1) for _ in range(self._size(depth))]
        if shape == "map":
            return {self._chance.choice(STRINGS): self.value(inner, depth + 1) for _ in range(self._size(depth))}
        if inner in SCALARS:
            return self._chance.choice(_SCALARS[inner])
        if depth > _DEEPEST or self._left <= 0:
            return {}
        self._left -= 1
        return {
            name: self.value(field, depth + 1)
            for name, field in api_schemas()[inner].items()
            if field.endswith("!") or self._chance.random() < 0.3
        }

    def overlay_schema(self, obj: Any, schema: Json, *, share: float = 0.15, depth: int = 0) -> Any:
        """The same for kinds whose fields are told by a JSON schema."""
        self._left = self._left if depth else _MOST_VALUES
        if isinstance(obj, list):
            return [self.overlay_schema(one, schema.get("items", {}), share=share, depth=depth + 1) for one in obj]
        fields = schema.get("properties")
        if not isinstance(obj, dict) or not fields:
            return obj
        found = dict(obj)
        for name, field in fields.items():
            if name in ("apiVersion", "kind", "metadata"):
                continue
            if name in found and self._chance.random() > share / 2:
                found[name] = self.overlay_schema(found[name], field, share=share, depth=depth + 1)
            elif self._chance.random() < share:
                found[name] = self.of_schema(field, depth + 1)
        return found

    def of_schema(self, schema: Json, depth: int = 0) -> Any:
        if schema.get("x-kubernetes-int-or-string"):
            return self._chance.choice(QUANTITIES)
        if "enum" in schema and self._chance.random() < 0.8:
            return self._chance.choice(schema["enum"])
        match schema.get("type"):
            case "string":
                return self._chance.choice(TIMES if schema.get("format") == "date-time" else STRINGS)
            case "integer":
                return self._chance.choice(INTEGERS)
            case "number":
                return self._chance.choice(_SCALARS["number"])
            case "boolean":
                return self._chance.random() < 0.5
            case "array":
                return [self.of_schema(schema.get("items", {}), depth + 1) for _ in range(self._size(depth))]
        if depth > _DEEPEST or self._left <= 0:
            return {}
        self._left -= 1
        if isinstance(more := schema.get("additionalProperties"), dict):
            return {self._chance.choice(STRINGS): self.of_schema(more, depth + 1) for _ in range(self._size(depth))}
        return {
            name: self.of_schema(field, depth + 1)
            for name, field in (schema.get("properties") or {}).items()
            if self._chance.random() < 0.4
        }

    def _size(self, depth: int) -> int:
        if depth > _DEEPEST or self._left <= 0:
            return 0
        self._left -= 1
        return self._chance.choice((0, 1, 1, 2, 3, 40 if depth < 3 else 3))
