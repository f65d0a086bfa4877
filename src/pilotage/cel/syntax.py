"""The syntax tree of a parsed expression.

The CEL library shows the tree in one way only: serialized as the message `cel.expr.ParsedExpr`. Read here is what the
bound on costs needs of it, without a generated protobuf class for each part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

_Message: TypeAlias = "dict[int, list[int | bytes]]"


@dataclass(frozen=True, slots=True)
class Literal:
    value: str | bytes | int | None
    """None for kinds whose value does not matter here."""


@dataclass(frozen=True, slots=True)
class Ident:
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    operand: Node
    field: str
    is_test: bool = False
    """It is has(): whether the field is there."""


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    args: tuple[Node, ...]
    """What it is called on comes first, if anything."""


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    keys: tuple[Node, ...]
    values: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """What macros become: an accumulator that begins as `init`, a `step` for each item of `range`, then `result`."""

    variable: str
    range: Node
    accumulator: str
    init: Node
    condition: Node
    step: Node
    result: Node


Node: TypeAlias = "Literal | Ident | Select | Call | ListOf | MapOf | Fold"


def tree_of(serialized: bytes) -> Node:
    """The tree of an expression as `Expression.serialize` gives it."""
    return _node(_one(_fields(_one(_fields(serialized), 2)), 2))


def nodes_of(tree: Node) -> Iterator[Node]:
    """The node and all nodes below it, apart from the turns of a loop that has none (as cel.bind() has)."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        match node:
            case Select(operand, _):
                waiting.append(operand)
            case Call(_, args):
                waiting += args
            case ListOf(items):
                waiting += items
            case MapOf(keys, values):
                waiting += (*keys, *values)
            case Fold():
                waiting += (node.range, node.init, node.result)
                waiting += () if node.range == ListOf(()) else (node.condition, node.step)


def _node(message: bytes) -> Node:
    for field, values in _fields(message).items():
        reader = _READERS.get(field)
        if reader is not None and isinstance(values[0], bytes):
            return reader(_fields(values[0]))
    return Literal(None)


def _literal(message: _Message) -> Node:
    if 6 in message:
        return Literal(_one(message, 6).decode())
    number = message.get(3, (None,))[0]
    return Literal(_one(message, 7) if 7 in message else number)


def _ident(message: _Message) -> Node:
    return Ident(_one(message, 1).decode())


def _select(message: _Message) -> Node:
    return Select(_node(_one(message, 1)), _one(message, 2).decode(), bool(message.get(3)))


def _call(message: _Message) -> Node:
    return Call(_one(message, 2).decode(), tuple(map(_node, [*_all(message, 1), *_all(message, 3)])))


def _list(message: _Message) -> Node:
    return ListOf(tuple(map(_node, _all(message, 1))))


def _map(message: _Message) -> Node:
    entries = [_fields(entry) for entry in _all(message, 2)]
    keys = tuple(_node(key) for entry in entries for key in _all(entry, 3))
    return MapOf(keys, tuple(_node(_one(entry, 4)) for entry in entries))


def _fold(message: _Message) -> Node:
    span, init, condition, step, result = (_node(_one(message, field)) for field in (2, 4, 5, 6, 7))
    return Fold(_one(message, 1).decode(), span, _one(message, 3).decode(), init, condition, step, result)


_READERS = {3: _literal, 4: _ident, 5: _select, 6: _call, 7: _list, 8: _map, 9: _fold}
"""By the number of the field in the message `cel.expr.Expr`."""


# --- the wire format of protocol buffers ------------------------------------------------------------------------------


def _one(message: _Message, number: int) -> bytes:
    return next(iter(_all(message, number)), b"")


def _all(message: _Message, number: int) -> list[bytes]:
    return [value for value in message.get(number, ()) if isinstance(value, bytes)]


def _fields(message: bytes) -> _Message:
    """Values by the numbers of their fields; those of fixed width (floating point numbers) are passed over."""
    found: _Message = {}
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        if kind == 0:
            number, place = _varint(message, place)
            found.setdefault(key >> 3, []).append(number)
        elif kind == 2:
            length, place = _varint(message, place)
            found.setdefault(key >> 3, []).append(message[place : place + length])
            place += length
        else:
            place += 8 if kind == 1 else 4
    return found


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return value, place
        shift += 7
