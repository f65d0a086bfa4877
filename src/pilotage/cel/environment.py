"""Expressions, compiled against the variables that they may use, and evaluated with their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

from pilotage.cel.cost import MOST_FOR_OBJECT, Sizes, TooCostly, ValueShape, bound
from pilotage.cel.functions import QUANTITY, Overload, declarations
from pilotage.cel.reads import ReadParts
from pilotage.cel.syntax import Call, Ident, Node, nodes_of, tree_of

MAX_LENGTH: Final = 10 * 1024
_DOUBLING: Final = re.compile(r"\bopt(?:Flat)?Map\b")
_LARGEST_EXPANSION: Final = 100_000
_LONGEST_MESSAGE: Final = 1_000
_MOST_KNOWN_SHAPES: Final = 64
_SMALL_PART: Final = 8
"""What cannot cost more than this part of the budget is not looked at more closely."""
MISSING_MACROS: Final = frozenset({"sortBy", "existsOne", "transformList", "transformMap", "transformMapEntry"})
MISSING_FUNCTIONS: Final = frozenset({"unwrap", "unwrapOpt"})
_TWO_VARIABLES: Final = frozenset({"all", "exists", "exists_one"})
_KEY: Final = re.compile(r'Key not found in map : "(.*)"', re.DOTALL)
_INDEX: Final = re.compile(r"Index error: index=(-?\d+)")
_OVERLOAD: Final = re.compile(r"No matching overloads found : (.*)", re.DOTALL)
_PREFIX: Final = re.compile(r"^[A-Z_]+: ")
_SUFFIX: Final = re.compile(r" \[[A-Z_]+\]$")

Values: TypeAlias = Any
"""The values of variables, as the library holds them."""


class CelError(Exception):
    """An expression that fails."""


class CelCompileError(CelError):
    """An expression that fails always, because it is none."""


class CelType:
    """Types of variables."""

    ANY = cel.Type.DYN
    BOOL = cel.Type.BOOL
    BYTES = cel.Type.BYTES
    DOUBLE = cel.Type.DOUBLE
    DURATION = cel.Type.DURATION
    INT = cel.Type.INT
    STRING = cel.Type.STRING
    TIMESTAMP = cel.Type.TIMESTAMP
    QUANTITY = QUANTITY
    MAP = cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
    LIST = cel.Type.List(cel.Type.DYN)

    @staticmethod
    def map_of(values: Any) -> Any:
        return cel.Type.Map(cel.Type.STRING, values)

    @staticmethod
    def list_of(items: Any) -> Any:
        return cel.Type.List(items)


class Environment:
    """The variables that an expression may use, by name and type, and functions beside those that all may call."""

    def __init__(self, variables: Mapping[str, Any], functions: Iterable[Overload] = ()) -> None:
        extensions = [ext_strings.ExtStrings(2), ext_optional.ExtOptional(), ext_bindings.ExtBindings()]
        self._library = cel.NewEnv(variables=dict(variables), functions=declarations(functions), extensions=extensions)

    def compile(self, expression: str, sizes: Mapping[str, ValueShape] | None = None) -> Program:
        """CelCompileError if the expression is none, or could take too long with variables of these sizes.

        Variables without a size count as small; how large they are is to be looked at before each evaluation then, by
        `Program.cost`.
        """
        try:
            if len(expression.encode()) > MAX_LENGTH:
                raise CelCompileError(f"expression is longer than {MAX_LENGTH} characters")
            tree = self._parsed(expression)
            bound(tree, sizes or {})
            compiled = self._library.compile(expression)
        except TooCostly as error:
            raise CelCompileError(f"too complex, exceeds cost limit: {error}") from None
        except RecursionError:
            raise CelCompileError("too complex: it is nested too deeply") from None
        except (RuntimeError, ValueError) as error:  # the library raises bare RuntimeErrors
            raise CelCompileError(_plain(str(error))) from None
        return Program(compiled, tree)

    def bind(self, values: Mapping[str, Any]) -> Values:
        """What `Program.evaluate` needs; CelError for values that are none of CEL's."""
        try:
            return self._library.Activation(dict(values))
        except Exception as error:
            raise CelError(_plain(str(error))) from None

    def _parsed(self, expression: str) -> Node:
        """TooCostly before anything is done with the expression that could take long, such as checking its types."""
        # These two write what they are called on twice: a chain of them grows exponentially while it is parsed.
        doublings = len(_DOUBLING.findall(expression))
        if doublings and len(expression) << doublings > _LARGEST_EXPANSION:
            raise TooCostly(f"{doublings} calls of optMap or optFlatMap")
        tree = tree_of(self._library.compile(expression, disable_check=True).serialize())
        problem = _missing_function(tree)
        if problem:
            raise CelCompileError(problem)
        return tree


def _missing_function(tree: Node) -> str:
    """What Kubernetes' expressions may call and ours may not; "" if nothing is missing."""
    for node in nodes_of(tree):
        if not isinstance(node, Call):
            continue
        if node.function in MISSING_MACROS:
            return f"the macro {node.function}() is not supported"
        if node.function in MISSING_FUNCTIONS:
            return f"the function {node.function}() is not supported"
        # A macro that is known has become a loop; with two variables it is none and still a call.
        if node.function in _TWO_VARIABLES and len(node.args) == 4:
            return f"the macro {node.function}() with two variables is not supported"
        # format.dns1123Label() and its like
        if node.args and node.args[0] == Ident("format"):
            return f"the function format.{node.function}() is not supported"
    return ""


class Program:
    """A compiled expression."""

    __slots__ = ("_compiled", "_costs", "_used", "reads", "tree")

    def __init__(self, compiled: Any, tree: Node) -> None:
        self._compiled = compiled
        self._used = frozenset(node.name for node in nodes_of(tree) if isinstance(node, Ident))
        self.reads = ReadParts(tree)
        self._costs: dict[tuple[ValueShape | None, ...], int] = {}
        self.tree = tree

    @property
    def result(self) -> Any:
        """The type of its result, one of `CelType`; ANY if that is known only when it is evaluated."""
        return self._compiled.return_type()

    def uses(self, variable: str) -> bool:
        return variable in self._used

    def cost(self, sizes: Sizes, budget: int = MOST_FOR_OBJECT) -> int:
        """The most that an evaluation with values of these sizes can cost; TooCostly if that is beyond the budget."""
        cost = self._bound(sizes.coarse)
        if cost > budget // _SMALL_PART:
            cost = self._bound(sizes.exact(self._used))
        if cost > budget:
            raise TooCostly(f"more than {budget} units")
        return cost

    def _bound(self, shapes: Mapping[str, ValueShape]) -> int:
        key = tuple(map(shapes.get, self._used))
        known = self._costs.get(key)
        if known is None:
            try:
                known = bound(self.tree, shapes, MOST_FOR_OBJECT)
            except TooCostly:
                known = MOST_FOR_OBJECT + 1
            if len(self._costs) >= _MOST_KNOWN_SHAPES:
                self._costs.clear()
            self._costs[key] = known
        return known

    def evaluate(self, values: Values) -> Any:
        """The result as a plain value of Python; CelError if it fails."""
        try:
            result = self._compiled.eval(values)
            # An error is a value here; read as a truth it would be true.
            if result.type() != cel.Type.ERROR:
                return result.plain_value()
            text = str(result.value())
        except Exception as error:
            # The library counts the turns of loops, and ends an evaluation that takes too many.
            text = str(error)
        raise CelError(_plain(text))

    def holds(self, values: Values) -> bool:
        """The same for an expression that must be true or false."""
        result = self.evaluate(values)
        if not isinstance(result, bool):
            raise CelError(f"expression returned {type_name(result)}, must be bool")
        return result


def type_name(value: Any) -> str:
    return _TYPE_NAMES.get(type(value), "dyn")


_TYPE_NAMES: Final = {
    str: "string",
    int: "int",
    float: "double",
    bytes: "bytes",
    list: "list",
    dict: "map",
    type(None): "null_type",
}


def _plain(text: str) -> str:
    """The library's texts in Kubernetes' words where there are any."""
    if "Iteration budget exceeded" in text:
        return "operation cancelled: actual cost limit exceeded"
    if found := _KEY.search(text):
        return f"no such key: {found[1]}"
    if found := _INDEX.search(text):
        return f"index out of bounds: {found[1]}"
    if found := _OVERLOAD.search(text):
        return f"no such overload: {found[1]}"[:_LONGEST_MESSAGE]
    return _SUFFIX.sub("", _PREFIX.sub("", text[:_LONGEST_MESSAGE]))
