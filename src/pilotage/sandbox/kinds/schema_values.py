"""Objects of custom kinds as CEL sees them: typed as the schema of their definition says.

Fields are found by escaped names where a name is no identifier (`foo-bar` is `foo__dash__bar`, `namespace` is
`__namespace__`), and only fields that the schema has. The CEL library knows maps, but no objects with fields of their
own, so that names are checked here (`check_fields`), as are comparisons of what can never be equal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from pilotage.cel import CelCompileError, CelType
from pilotage.cel.syntax import Call, Fold, Ident, ListOf, Literal, MapOf, Node, Select

Schema: TypeAlias = Mapping[str, Any]

TEXT: Final[Schema] = {"type": "string"}
_METADATA: Final[Schema] = {"type": "object", "properties": {"name": TEXT, "generateName": TEXT}}
_OF_RESOURCES: Final[Schema] = {"apiVersion": TEXT, "kind": TEXT, "metadata": _METADATA}
_RESERVED: Final = frozenset(
    {
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return"),
    }
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED: Final = re.compile(r"__|[./-]")
_SCALARS: Final = {"string": "string", "integer": "int", "boolean": "bool", "number": "double"}
_KINDS: Final = {"string": CelType.STRING, "integer": CelType.INT, "boolean": CelType.BOOL, "number": CelType.DOUBLE}
_COMPARISONS: Final = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"})


def escape(name: str) -> str | None:
    """How an expression names a property; None for one that it cannot name."""
    if name in _RESERVED:
        return f"__{name}__"
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], name) if _NAME.fullmatch(name) else None


def as_resource(schema: Schema) -> Schema:
    """The schema of a whole object: of its metadata a rule sees the name alone."""
    return {**schema, "properties": {**(schema.get("properties") or {}), **_OF_RESOURCES}}


def resource_or_part(schema: Schema) -> Schema:
    return as_resource(schema) if schema.get("x-kubernetes-embedded-resource") else schema


def converter(schema: Schema) -> str:
    """The function that makes a time or duration of the text that stands in JSON; "" for other values."""
    formats = {"date-time": "timestamp", "duration": "duration"}
    return formats.get(str(schema.get("format")), "") if schema.get("type") == "string" else ""


def kind_of(schema: Schema) -> tuple[str, Any]:
    """The type of a variable, with a name for it."""
    if schema.get("x-kubernetes-int-or-string"):
        return "dyn", CelType.ANY
    match schema.get("type"):
        case "array":
            inner = _KINDS.get((schema.get("items") or {}).get("type", ""), CelType.ANY)
            return f"list({inner.name()})", CelType.list_of(inner)
        case "object":
            return "map", CelType.MAP
        case str(scalar) if scalar in _KINDS:
            return scalar, _KINDS[scalar]
    return "dyn", CelType.ANY


def is_plain(schema: Schema) -> bool:
    """Whether no name has to be escaped and no number converted, at any depth."""
    if schema.get("type") == "number":
        return False
    below = [schema.get("items"), schema.get("additionalProperties"), *(schema.get("properties") or {}).values()]
    names = schema.get("properties") or {}
    return all(escape(name) == name for name in names) and all(is_plain(p) for p in below if isinstance(p, Mapping))


def cel_value(schema: Schema, value: Any) -> Any:
    """A value of JSON as CEL sees it."""
    if isinstance(value, dict):
        return _cel_object(resource_or_part(schema), value)
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [cel_value(items, item) for item in value]
    if schema.get("type") == "number" and type(value) is int:
        return _as_float(value)
    if schema.get("type") == "integer" and type(value) is float and value.is_integer():
        return int(value)
    if type(value) is int and not -(2**63) <= value < 2**63:
        return _as_float(value)
    return value


def _as_float(value: int) -> float:
    """Numbers without a fraction that are no integers of CEL are floating point numbers, as in the API server."""
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _cel_object(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    if properties is None:
        others = schema.get("additionalProperties")
        below = others if isinstance(others, Mapping) else {}
        return {name: cel_value(below, item) for name, item in value.items()}
    found = {}
    for name, item in value.items():
        below = properties.get(name)
        if below is None:
            # Kept, where unknown fields are, and compared, but no rule can name it.
            found[f".{name}"] = cel_value({}, item)
        elif item is not None or below.get("nullable"):
            found[escape(name) or f".{name}"] = cel_value(below, item)
    return found


# --- what the type checker of the CEL library cannot know -------------------------------------------------------------


def check_fields(tree: Node, schemas: Mapping[str, Schema]) -> str:
    """The type of the result, if it is known; CelCompileError for an unknown field or an impossible comparison."""
    return _scalar(_Checker().of(tree, schemas))


class _Checker:
    """Finds the schema of each part of an expression, as far as it has one."""

    def of(self, node: Node, scope: Mapping[str, Schema]) -> Schema | None:
        match node:
            case Ident(name):
                return scope.get(name)
            case Literal(value):
                return {"type": "string"} if isinstance(value, str) else _literal(value)
            case Select(operand, field):
                found = _field(self.of(operand, scope), field)
                return {"type": "boolean"} if node.is_test else found
            case ListOf(items):
                self._all(items, scope)
            case MapOf(keys, values):
                self._all((*keys, *values), scope)
            case Fold():
                return self._fold(node, scope)
            case Call(function, args):
                return self._call(function, args, scope)
        return None

    def _all(self, nodes: tuple[Node, ...], scope: Mapping[str, Schema]) -> list[Schema | None]:
        return [self.of(node, scope) for node in nodes]

    def _call(self, function: str, args: tuple[Node, ...], scope: Mapping[str, Schema]) -> Schema | None:
        found = self._all(args, scope)
        if function in _COMPARISONS:
            left, right = map(_scalar, found)
            if left and right and left != right and not {left, right} == {"int", "double"}:
                raise CelCompileError(f"found no matching overload for '{function}' applied to '({left}, {right})'")
        if function == "_?._" and isinstance(args[1], Literal) and isinstance(args[1].value, str):
            return _field(found[0], args[1].value)
        if function in ("_[_]", "_[?_]") and found[0] is not None:
            inner = found[0].get("items") or found[0].get("additionalProperties")
            return resource_or_part(inner) if isinstance(inner, Mapping) else None
        return None

    def _fold(self, fold: Fold, scope: Mapping[str, Schema]) -> Schema | None:
        span, init = self.of(fold.range, scope), self.of(fold.init, scope)
        known = {name: schema for name, schema in scope.items() if name not in (fold.variable, fold.accumulator)}
        inner = span.get("items") if span is not None else None
        if isinstance(inner, Mapping):
            known[fold.variable] = resource_or_part(inner)
        elif span is not None and span.get("type") == "object":
            known[fold.variable] = TEXT
        # cel.bind() is a loop without turns, of which the accumulator is the variable.
        is_binding = fold.range == ListOf(())
        if is_binding and init is not None:
            known[fold.accumulator] = init
        if not is_binding:
            self._all((fold.condition, fold.step), known)
        result = self.of(fold.result, known)
        return result if is_binding else None


def _literal(value: object) -> Schema | None:
    return {"type": "integer"} if isinstance(value, int) else None


def _scalar(schema: Schema | None) -> str:
    if schema is None or schema.get("nullable") or schema.get("x-kubernetes-int-or-string") or converter(schema):
        return ""
    return _SCALARS.get(schema.get("type", ""), "")


def _field(schema: Schema | None, field: str) -> Schema | None:
    if schema is None or schema.get("x-kubernetes-int-or-string") or "type" not in schema:
        return None
    if schema["type"] != "object":
        raise CelCompileError(f"type '{_SCALARS.get(schema['type'], 'list')}' does not support field selection")
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        return resource_or_part(others)
    for name, below in (schema.get("properties") or {}).items():
        if escape(name) == field:
            return resource_or_part(below)
    raise CelCompileError(f"undefined field '{field}'")
