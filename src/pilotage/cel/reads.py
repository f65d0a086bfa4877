"""Which parts of its variables an expression reads, so that it is given nothing else.

    reads = ReadParts(tree of "self.conditions.exists(c, c.type == 'Ready')")
    reads.cut({"self": {"size": 3, "conditions": [{"type": "Ready", "message": "..."}]}})
    {"self": {"conditions": [{"type": "Ready"}]}}

The result of the expression is the same, errors included. What is left is smaller to measure and to compare: values
that differ only in what is not read become equal. Fields are followed through `x.f`, `x['f']`, `has(x.f)`, `size(x)`,
`cel.bind()` and the loops of macros; a value that goes anywhere else counts as read as a whole. For what is read there
is a type, to which msgspec converts the values.

Of two parts that are only compared with each other (`self.parts == oldSelf.parts`), a digest has no more than that they
are the same, if they are, or that both are absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pilotage.cel.syntax import Call, Fold, Ident, ListOf, Literal, MapOf, Node, Select

_encode = msgspec.json.Encoder().encode


class _Empty(msgspec.Struct, frozen=True, gc=False):
    """What is left of an object whose fields are not read."""


_TYPE_ONLY: Final[Any] = _Empty | list[Any] | str | int | float | bool | None
_ABSENT: Final = object()


class ReadParts:
    """What one expression reads, or several."""

    __slots__ = ("_compared", "_type", "_type_if_same")

    def __init__(self, *trees: Node) -> None:
        whole, partly = _Reading(), _Reading(compares=True)
        for tree in trees:
            whole.read(tree, {})
            partly.read(tree, {})
        # All variables in one: msgspec looks at a struct's fields once, at any other type whenever it is used.
        self._type = whole.variables.struct()
        self._type_if_same = partly.variables.struct()
        self._compared = tuple(dict.fromkeys(partly.compared))

    def digest(self, values: Mapping[str, Any]) -> bytes:
        """The same for values of which the expression reads the same."""
        if self._compared:
            alike = [_likeness(_found(values, one), _found(values, other)) for one, other in self._compared]
            if "" not in alike:
                return "".join(alike).encode() + _encode(_cut(values, self._type_if_same))
        return _encode(_cut(values, self._type))

    def cut(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values without what is not read."""
        cut: dict[str, Any] = msgspec.to_builtins(_cut(values, self._type))
        return cut


def _cut(values: Mapping[str, Any], type_: Any) -> Any:
    try:
        return msgspec.convert(values, type_)
    except (msgspec.ValidationError, RecursionError):
        # They have another form than the expression expects; it sees all of them, and fails as it would.
        return values


def _found(values: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """The value at a path."""
    value: Any = values
    for name in path:
        value = value.get(name, _ABSENT) if isinstance(value, dict) else _ABSENT
    return value


def _likeness(value: Any, other: Any) -> str:
    """Whether both are absent, or equal and of the same types (to Python 1 is True); "" if neither."""
    if value is other:
        return "-" if value is _ABSENT else "="
    return "=" if value == other and _encode(value) == _encode(other) else ""


class _Part:
    """What is read of one value."""

    def __init__(self, path: tuple[str, ...] | None = None) -> None:
        self.path = path
        """Where it is; None within a list."""
        self.is_whole = False
        self.is_compared = False
        self._fields: dict[str, _Part] = {}
        self._items: _Part | None = None

    def field(self, name: str) -> _Part:
        if name not in self._fields:
            self._fields[name] = _Part(None if self.path is None else (*self.path, name))
        return self._fields[name]

    def items(self) -> _Part:
        if self._items is None:
            self._items = _Part()
        return self._items

    @property
    def is_read(self) -> bool:
        """More than in a comparison, which is known to be one of a value with itself."""
        return self.is_whole or not self.is_compared or bool(self._fields) or self._items is not None

    def type(self) -> Any:
        if self.is_whole or (self._fields and self._items is not None):
            return Any
        if self._items is not None:
            # Of a map all is read: a loop over it sees its keys.
            return list[self._items.type()] | dict[str, Any] | str | None  # type: ignore[misc]
        if not self._fields:
            return _TYPE_ONLY
        return self.struct() | None

    def struct(self) -> Any:
        """The type of an object of which no more than the fields is read."""
        read = {name: part for name, part in self._fields.items() if part.is_read}
        fields = [(f"f{at}", part.type() | msgspec.UnsetType, msgspec.UNSET) for at, part in enumerate(read.values())]
        rename = {f"f{at}": name for at, name in enumerate(read)}
        return msgspec.defstruct("Part", fields, rename=rename, frozen=True, gc=False)


class _Reading:
    def __init__(self, *, compares: bool = False) -> None:
        self.variables = _Part(())
        """All of them, as fields of one object."""
        self.compared: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        """The paths of parts that are compared with each other, if those do not count as read."""
        self._compares = compares

    def read(self, node: Node, scope: Mapping[str, _Part | None]) -> None:
        """All of the value of this node is read."""
        part = self._refer(node, scope)
        if part is not None:
            part.is_whole = True

    def _refer(self, node: Node, scope: Mapping[str, _Part | None]) -> _Part | None:
        """The part of a variable that the node stands for, which is not yet read; None if it stands for none."""
        match node:
            case Literal():
                return None
            case Ident(name):
                return scope[name] if name in scope else self.variables.field(name)
            case Select(operand, field):
                return self._field(operand, field, scope, is_test=node.is_test)
            case ListOf(items):
                self._read_all(items, scope)
            case MapOf(keys, values):
                self._read_all((*keys, *values), scope)
            case Fold():
                return self._fold(node, scope)
            case Call("_[_]", (operand, Literal(str(field)))):
                return self._field(operand, field, scope)
            case Call("size", (operand,)):
                part = self._refer(operand, scope)
                if part is not None:
                    part.items()
            case Call("_==_" | "_!=_", (left, right)):
                self._compare(self._refer(left, scope), self._refer(right, scope))
            case Call(_, args):
                self._read_all(args, scope)
        return None

    def _compare(self, left: _Part | None, right: _Part | None) -> None:
        parts = [part for part in (left, right) if part is not None]
        paths = [part.path for part in parts if part.path is not None]
        if self._compares and len(paths) == 2:
            self.compared.append((paths[0], paths[1]))
        for part in parts:
            part.is_compared = part.is_compared or (self._compares and len(paths) == 2)
            part.is_whole = part.is_whole or not self._compares or len(paths) != 2

    def _read_all(self, nodes: tuple[Node, ...], scope: Mapping[str, _Part | None]) -> None:
        for node in nodes:
            self.read(node, scope)

    def _field(
        self, operand: Node, field: str, scope: Mapping[str, _Part | None], *, is_test: bool = False
    ) -> _Part | None:
        part = self._refer(operand, scope)
        if part is None:
            return None
        below = part.field(field)
        return None if is_test else below

    def _fold(self, fold: Fold, scope: Mapping[str, _Part | None]) -> _Part | None:
        if fold.range == ListOf(()):
            # cel.bind() is a loop without turns, of which the accumulator is the variable.
            return self._refer(fold.result, {**scope, fold.accumulator: self._refer(fold.init, scope)})
        span = self._refer(fold.range, scope)
        self.read(fold.init, scope)
        inner = {**scope, fold.variable: None if span is None else span.items(), fold.accumulator: None}
        self._read_all((fold.condition, fold.step, fold.result), inner)
        return None
