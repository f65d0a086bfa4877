"""What evaluating an expression can cost at most, found from its syntax tree before it is evaluated.

Kubernetes estimates the costs of an expression when it is written, counts them when it is evaluated, and allows a
million units for either. The CEL library counts nothing but the turns of loops, so all is estimated here, by the
sizes that values can have: a literal has its own, the result of a call follows from its arguments, and a variable is
as large as its value is (`shape_of`), or as the largest that it can have. One unit is about 50 ns, so the limit is a
twentieth of a second.

The estimate must never be too low; it may be too high, as for a condition of which only one branch is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from pilotage.cel import patterns
from pilotage.cel.syntax import Call, Fold, Ident, ListOf, Literal, MapOf, Node, Select

MAX_COST: Final = 1_000_000
"""Of one expression that is asked about very many values."""
MOST_FOR_OBJECT: Final = 10 * MAX_COST
"""Of all expressions that are asked about one object when it is written: half a second."""
LONGEST_RANGE: Final = 10_000

_STEP, _PYTHON_CALL, _FOR_PYTHON, _CHARACTERS = 2, 40, 4, 16
_LONGEST_NUMBER: Final = 1_400
"""Characters of a number that is formatted with the largest precision."""


_MOST_FIELDS: Final = 256
_INT64: Final = 2**63


class TooCostly(Exception):
    """The expression could take too long; the text says what makes it so."""


class ValueShape(msgspec.Struct, frozen=True):
    """How large a value can be."""

    length: int = 1
    """Characters of a text, items of a list or map."""
    weight: int = 1
    """What it costs to look at all of it."""
    item: ValueShape | None = None
    """The largest item of a list or map; also its keys."""
    fields: tuple[tuple[str, ValueShape], ...] | None = None
    """Of a map that is known: each value by its key."""

    most_items: int | None = None
    """Of a value that is a text or a list or has either in it: the items of the longest list or map."""

    @property
    def turns(self) -> int:
        """Of a loop over it."""
        return self.length if self.most_items is None else self.most_items

    @property
    def inside(self) -> ValueShape:
        return self.item or self

    def field(self, name: object) -> ValueShape:
        """The value of a map at a key that is known."""
        if self.fields is None:
            return self.inside
        return next((shape for key, shape in self.fields if key == name), _SCALAR)


_SCALAR: Final = ValueShape()


def text_shape(length: int) -> ValueShape:
    return ValueShape(length, 1 + length // _CHARACTERS)


def collection_shape(length: int, item: ValueShape) -> ValueShape:
    return ValueShape(length, 1 + length * (1 + item.weight), item)


class Sizes:
    """How large the values of variables are: at first how large any part of them is, all of it when that matters."""

    __slots__ = ("_exact", "_values", "coarse", "is_ordinary")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)
        self._exact: dict[str, ValueShape] = {}
        self.coarse: dict[str, ValueShape] = {}
        self.is_ordinary = True
        """No null, no floating point number, and no integer of more than 64 bits is in them."""
        for name, value in values.items():
            self.coarse[name] = self._extent(value)

    def exact(self, names: Iterable[str]) -> Mapping[str, ValueShape]:
        """Of the variables of these names."""
        for name in names:
            if name not in self._exact and name in self._values:
                self._exact[name] = shape_of(self._values[name])
        return self._exact

    def _extent(self, value: object) -> ValueShape:
        """A shape that each part of the value has, and the whole: its longest text, list or map, and all its weight."""
        longest, most_items, weight, waiting = 1, 1, 0, [value]
        while waiting:
            part: Any = waiting.pop()
            kind = type(part)
            if kind is str or kind is bytes:
                length = len(part) if part.isascii() else 4 * len(part)
                weight += 1 + length // _CHARACTERS
                if length > longest:
                    longest = length
            elif kind is dict or kind is list:
                count = len(part)
                weight += 1 + 2 * count
                if count > most_items:
                    most_items = count
                waiting += part
                if kind is dict:
                    waiting += part.values()
            else:
                weight += 1
                if kind is not bool and (kind is not int or not -_INT64 <= part < _INT64):
                    self.is_ordinary = False
        return ValueShape(_rounded(max(longest, most_items)), _rounded(weight), most_items=_rounded(most_items))


def shape_of(value: object) -> ValueShape:
    """How large a value is, rounded up, so that many values have the same shape."""
    return _measured(value)[0]


def _measured(value: object) -> tuple[ValueShape, int]:
    """The shape of a value, and its weight before it was rounded."""
    if isinstance(value, str | bytes):
        # A character has up to four bytes.
        shape = text_shape(_rounded(len(value) * (1 if value.isascii() else 4)))
        return shape, shape.weight
    if isinstance(value, Mapping):
        return _measured_map(value)
    if isinstance(value, list | tuple):
        parts = [_measured(item) for item in value]
        weight = 1 + sum(1 + own for _, own in parts)
        return ValueShape(
            _rounded(len(parts)), _rounded(weight), _joined(*dict.fromkeys(shape for shape, _ in parts))
        ), weight
    return _SCALAR, 1


def _measured_map(value: Mapping[Any, Any]) -> tuple[ValueShape, int]:
    parts = {str(key): _measured(item) for key, item in value.items()}
    keys = text_shape(_rounded(4 * max(map(len, parts), default=0)))
    weight = 1 + sum(1 + keys.weight + own for _, own in parts.values())
    fields = tuple((name, parts[name][0]) for name in sorted(parts)) if len(parts) <= _MOST_FIELDS else None
    item = _joined(keys, *dict.fromkeys(shape for shape, _ in parts.values()))
    return ValueShape(_rounded(len(parts)), _rounded(weight), item, fields), weight


def _rounded(size: int) -> int:
    """Up to a power of two; 1 at least."""
    return 1 << max(0, size - 1).bit_length()


def _joined(*shapes: ValueShape) -> ValueShape:
    """At least as large as each of them."""
    if not shapes:
        return _SCALAR
    if len(shapes) == 1:
        return shapes[0]
    items = [shape.item for shape in shapes if shape.item is not None]
    length, weight = max(shape.length for shape in shapes), max(shape.weight for shape in shapes)
    turns = None if all(shape.most_items is None for shape in shapes) else max(shape.turns for shape in shapes)
    return ValueShape(length, weight, _joined(*items) if items else None, _joined_fields(shapes), turns)


def _joined_fields(shapes: Sequence[ValueShape]) -> tuple[tuple[str, ValueShape], ...] | None:
    """By field, if all of them are maps that are known, or no collections at all."""
    known = [shape.fields for shape in shapes if shape.item is not None]
    by_name: dict[str, list[ValueShape]] = {}
    for fields in known:
        if fields is None:
            return None
        for name, value in fields:
            by_name.setdefault(name, []).append(value)
    return tuple((name, _joined(*by_name[name])) for name in sorted(by_name)) if known else None


def bound(tree: Node, sizes: Mapping[str, ValueShape], limit: int = MAX_COST) -> int:
    """The most that an evaluation can cost with variables of these sizes; TooCostly if that is more than it may."""
    cost, _ = _Estimate(sizes, limit).of(tree)
    return cost


class _Estimate:
    """Of one expression: cost and shape of each part."""

    def __init__(self, scope: Mapping[str, ValueShape], limit: int) -> None:
        self._scope = dict(scope)
        self._limit = limit
        self._instructions = 0
        """Of all regular expressions so far: making one costs time already here."""

    def of(self, node: Node) -> tuple[int, ValueShape]:
        cost, shape = self._of(node)
        if cost > self._limit:
            raise TooCostly(
                f"up to {cost} units, {self._limit} are allowed" if cost < 10**12 else "it grows without end"
            )
        return cost, shape

    def _of(self, node: Node) -> tuple[int, ValueShape]:
        match node:
            case Literal(value):
                return _STEP, text_shape(len(value.encode())) if isinstance(value, str) else _literal(value)
            case Ident(name):
                return _STEP, self._scope.get(name, _SCALAR)
            case Select(operand, field):
                cost, shape = self.of(operand)
                return cost + _STEP, shape.field(field)
            case ListOf(items):
                cost, shapes = self._all(items)
                return cost + _STEP * (1 + len(items)), _literal_collection(shapes)
            case MapOf(keys, values):
                return self._map(keys, values)
            case Fold():
                return self._fold(node)
            case Call():
                return self._call(node)

    def _all(self, nodes: Sequence[Node]) -> tuple[int, list[ValueShape]]:
        found = [self.of(node) for node in nodes]
        return sum(cost for cost, _ in found), [shape for _, shape in found]

    def _map(self, keys: Sequence[Node], values: Sequence[Node]) -> tuple[int, ValueShape]:
        cost_of_keys, key_shapes = self._all(keys)
        if any(shape.item is not None for shape in key_shapes):
            # Types of maps in maps as keys grow exponentially when they are checked, and are no keys in the end.
            raise TooCostly("unsupported key type")
        cost_of_values, shapes = self._all(values)
        return cost_of_keys + cost_of_values + 2 * _STEP * (1 + len(keys)), _literal_collection([*key_shapes, *shapes])

    def _fold(self, fold: Fold) -> tuple[int, ValueShape]:
        cost, span = self.of(fold.range)
        cost_of_init, collected = self.of(fold.init)
        turns = 0 if fold.range == ListOf(()) else span.turns
        outer = self._scope
        self._scope = {**outer, fold.variable: span.inside, fold.accumulator: collected}
        cost += cost_of_init + _STEP
        if turns:
            cost_of_condition, _ = self.of(fold.condition)
            cost_of_step, after_one = self.of(fold.step)
            collected = self._scope[fold.accumulator] = _grown(collected, after_one, turns)
            # A list is copied whenever something is appended.
            copied = collected.length if collected.item is not None else 0
            cost += turns * (cost_of_condition + cost_of_step + copied)
        cost_of_result, result = self.of(fold.result)
        self._scope = outer
        return cost + cost_of_result, result

    # --- calls -------------------------------------------------------------------------------------------------

    def _call(self, call: Call) -> tuple[int, ValueShape]:
        function, args = call.function, call.args
        if args and isinstance(args[0], Ident) and f"{args[0].name}.{function}" in _QUALIFIED:
            function, args = f"{args[0].name}.{function}", args[1:]
        cost, shapes = self._all(args)
        if function in _WITH_PATTERN and len(args) > 1:
            cost += self._matching(function, args[1], shapes[0])
        rule = _RULES.get(function)
        if rule is not None:
            own, shape = rule(args, shapes)
            return cost + own, shape
        # All others are given to Python and look at all that they get.
        given = sum(shape.weight + shape.length for shape in shapes)
        return cost + _PYTHON_CALL + _FOR_PYTHON * given, _python_result(function, shapes)

    def _matching(self, function: str, pattern: Node, text: ValueShape) -> int:
        if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
            raise TooCostly(f"the pattern of {function}() must be written out as a text")
        size = patterns.program_size(pattern.value)
        self._instructions += size
        if self._instructions > MAX_COST // patterns.COST_OF_INSTRUCTION:
            raise TooCostly("its regular expressions are too large")
        searches = text.length + 1 if function == "findAll" else 1
        return patterns.COST_OF_INSTRUCTION * size + searches * (1 + (text.length + 1) * (8 + size) // 64)


def _literal(value: bytes | int | None) -> ValueShape:
    return text_shape(len(value)) if isinstance(value, bytes) else _SCALAR


def _literal_collection(shapes: Sequence[ValueShape]) -> ValueShape:
    weight = 1 + sum(1 + shape.weight for shape in shapes)
    return ValueShape(len(shapes), weight, _joined(*shapes) if shapes else _SCALAR)


def _grown(init: ValueShape, after_one: ValueShape, turns: int) -> ValueShape:
    """The accumulator after all turns, if each adds what the first does: macros append one item at a time."""
    longer, heavier = max(0, after_one.length - init.length), max(0, after_one.weight - init.weight)
    return ValueShape(init.length + turns * longer, init.weight + turns * heavier, after_one.item or init.item)


# --- functions of the CEL library -------------------------------------------------------------------------------------

_Args = Sequence[Node]
_Shapes = Sequence[ValueShape]


def _step(args: _Args, shapes: _Shapes) -> tuple[int, ValueShape]:
    return _STEP, _SCALAR


def _either(args: _Args, shapes: _Shapes) -> tuple[int, ValueShape]:
    """One of the arguments, or what is inside of one."""
    return _STEP, _joined(*shapes)


def _item(args: _Args, shapes: _Shapes) -> tuple[int, ValueShape]:
    key = args[1] if len(args) > 1 else None
    return _STEP, shapes[0].field(key.value) if isinstance(key, Literal) else shapes[0].inside


def _value(args: _Args, shapes: _Shapes) -> tuple[int, ValueShape]:
    """What is inside of an optional value: that counts as a list of one, or as the value itself."""
    return _STEP, _joined(shapes[0], shapes[0].inside)


def _wrapped(args: _Args, shapes: _Shapes) -> tuple[int, ValueShape]:
    return _STEP, collection_shape(1, _joined(*shapes))


def _sum(args: _Args, shapes: _Shapes) -> tuple[int, ValueShape]:
    length, weight = sum(shape.length for shape in shapes), sum(shape.weight for shape in shapes)
    items = [shape.item for shape in shapes if shape.item is not None]
    copied = length if items else length // _CHARACTERS
    return _STEP + copied, ValueShape(length, weight, _joined(*items) if items else None)


def _compare(args: _Args, shapes: _Shapes) -> tuple[int, ValueShape]:
    return _STEP + 2 * min(shape.weight for shape in shapes), _SCALAR


def _member(args: _Args, shapes: _Shapes) -> tuple[int, ValueShape]:
    wanted, container = shapes[0], shapes[-1]
    return _STEP + container.length * (1 + min(wanted.weight, container.inside.weight)), _SCALAR


def _traverse(args: _Args, shapes: _Shapes) -> tuple[int, ValueShape]:
    """Reads a text once, and gives a text that is no longer."""
    return _STEP + shapes[0].length // 8, text_shape(shapes[0].length)


def _quote(args: _Args, shapes: _Shapes) -> tuple[int, ValueShape]:
    return _STEP + shapes[0].length // 4, text_shape(2 + 2 * shapes[0].length)


def _size(args: _Args, shapes: _Shapes) -> tuple[int, ValueShape]:
    return _STEP + shapes[0].length // _CHARACTERS, _SCALAR


def _look_for(args: _Args, shapes: _Shapes) -> tuple[int, ValueShape]:
    text, wanted = shapes[0].length, shapes[-1].length
    return _STEP + text * (1 + wanted // _CHARACTERS) // 4, _SCALAR


def _replace(args: _Args, shapes: _Shapes) -> tuple[int, ValueShape]:
    text, new = shapes[0].length, shapes[2].length if len(shapes) > 2 else 0
    old = args[1].value if len(args) > 1 and isinstance(args[1], Literal) else None
    places = text // len(old) + 1 if isinstance(old, str) and old else text + 1
    length = text + places * new
    return _STEP + text // 4 + 2 * places + length // _CHARACTERS, text_shape(length)


def _split(args: _Args, shapes: _Shapes) -> tuple[int, ValueShape]:
    text = shapes[0].length
    return _STEP + 3 * text, ValueShape(text + 1, 1 + 2 * text, text_shape(text))


def _join(args: _Args, shapes: _Shapes) -> tuple[int, ValueShape]:
    items, between = shapes[0], shapes[1].length if len(shapes) > 1 else 0
    length = _CHARACTERS * items.weight + items.length * between
    return _STEP + 2 * items.length + length // _CHARACTERS, text_shape(length)


def _format(args: _Args, shapes: _Shapes) -> tuple[int, ValueShape]:
    template, items = shapes[0], shapes[-1]
    length = template.length + _LONGEST_NUMBER * items.length + 8 * _CHARACTERS * items.weight
    return _STEP + 3 * items.weight + length // _CHARACTERS, text_shape(length)


def _convert(args: _Args, shapes: _Shapes) -> tuple[int, ValueShape]:
    """Numbers, texts and times into each other."""
    return 2 * _STEP + shapes[0].length // 4, text_shape(64 + shapes[0].length)


def _range(args: _Args, shapes: _Shapes) -> tuple[int, ValueShape]:
    count = args[0].value if args and isinstance(args[0], Literal) else None
    length = min(count, LONGEST_RANGE) if isinstance(count, int) else LONGEST_RANGE
    return _PYTHON_CALL + _FOR_PYTHON * length, collection_shape(length, _SCALAR)


_Rule = Callable[[_Args, _Shapes], tuple[int, ValueShape]]
_RULES: Final[Mapping[str, _Rule]] = {
    **dict.fromkeys(("_&&_", "_||_", "!_", "-_", "_-_", "_*_", "_/_", "_%_", "@not_strictly_false", "hasValue"), _step),
    **dict.fromkeys(("_?_:_", "or", "orValue", "dyn", "optional.none"), _either),
    **dict.fromkeys(("_[_]", "_?._", "_[?_]"), _item),
    "value": _value,
    **dict.fromkeys(("optional.of", "optional.ofNonZeroValue"), _wrapped),
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), _compare),
    **dict.fromkeys(("lowerAscii", "upperAscii", "trim", "substring", "charAt"), _traverse),
    **dict.fromkeys(("contains", "startsWith", "endsWith", "indexOf", "lastIndexOf"), _look_for),
    **dict.fromkeys(("int", "uint", "double", "string", "bytes", "bool", "duration", "timestamp", "type"), _convert),
    "_+_": _sum,
    "@in": _member,
    "size": _size,
    "matches": _step,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "format": _format,
    "strings.quote": _quote,
    "lists.range": _range,
}
"""What the library does by itself; nearly everything else is done by functions of ours."""
_WITH_PATTERN: Final = frozenset({"matches", "find", "findAll"})
_QUALIFIED: Final = frozenset(
    {"lists.range", "ip.isCanonical", "optional.of", "optional.none", "optional.ofNonZeroValue", "strings.quote"}
    | {f"sets.{name}" for name in ("contains", "equivalent", "intersects")}
)


def _python_result(function: str, shapes: _Shapes) -> ValueShape:
    """Functions of ours give a number or a truth, or no more than they got."""
    given = _joined(*shapes)
    if function in ("flatten", "findAll", "getQuery"):
        return ValueShape(given.weight * _CHARACTERS, 2 * given.weight * _CHARACTERS, given)
    return given
