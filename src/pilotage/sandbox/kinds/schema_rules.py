"""The CEL rules of a definition's schema (`x-kubernetes-validations`), at any of its nodes.

They are compiled when they are first needed, once per version of a definition, into a tree that has only the nodes at
or below which there are rules. A rule is asked about values that are there; one that speaks of `oldSelf` only if there
is an old value to compare with, found by field, by key, or in a list of maps by the keys of its items. What an update
leaves as it was is not judged anew, except by such rules. A rule is given the parts of a value that it reads, and what
it has accepted is remembered by these: the many writes of a status differ in little that rules look at.

    error = SchemaRules(schema).errors(obj, old)        spec.size: Invalid value: 1: may not shrink
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, Final

from pilotage.cel import (
    MOST_FOR_OBJECT,
    CelCompileError,
    CelError,
    CelType,
    Environment,
    Program,
    ReadParts,
    Sizes,
    TooCostly,
    Values,
)
from pilotage.sandbox.errors import FieldError, FieldErrorType
from pilotage.sandbox.kinds.schema_values import (
    Schema,
    as_resource,
    cel_value,
    check_fields,
    converter,
    is_plain,
    kind_of,
)

RULES: Final = "x-kubernetes-validations"
_LONGEST_MESSAGE: Final = 5 * 1024
_DEEPEST: Final = 100
_REASONS: Final[Mapping[str, FieldErrorType]] = {
    "FieldValueDuplicate": "FieldValueDuplicate",
    "FieldValueForbidden": "FieldValueForbidden",
    "FieldValueInvalid": "FieldValueInvalid",
    "FieldValueRequired": "FieldValueRequired",
}
_SELF, _OLD = "self", "oldSelf"
_RAW: Final = {_SELF: "__self", _OLD: "__oldSelf"}
"""Names of variables of which an expression sees what was made of them."""
_OLDS: Final = "__oldSelfs"
"""The old value as a list of one, or none."""
_ABSENT: Final = object()
_MOST_BYTES: Final = 2 << 20
"""Of all questions about one kind that are kept."""
_LONGEST_QUESTION: Final = 4096


class SchemaRules:
    """The rules of one schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._accepted = _Accepted()
        self._tree: _Node | None = None
        self._is_compiled = False

    @property
    def is_empty(self) -> bool:
        return self._root() is None

    def errors(self, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[FieldError]:
        """What the rules forbid about an object that has the types of its schema; `old` is the stored one, if any."""
        root = self._root()
        if root is None:
            return []
        return _Judgement(self._accepted).of(root, dict(obj), _ABSENT if old is None else dict(old))

    def _root(self) -> _Node | None:
        if not self._is_compiled:
            self._tree = _compiled(self._schema)
            self._is_compiled = True
        return self._tree


def rule_problems(schema: Schema, path: str) -> list[FieldError]:
    """Why the rules of a schema cannot be used; `path` is where the schema stands in its definition."""
    return list(_problems(schema, path, is_resource=True, is_correlatable=True))


# --- compiling --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rule:
    source: Mapping[str, Any]
    program: Program
    message: Program | None
    is_transition: bool

    def applies(self, has_old: bool, is_unchanged: bool) -> bool:
        """Whether there is anything to ask about a value."""
        if not self.is_transition:
            return not is_unchanged
        # Most rules of this kind only say that nothing may change.
        return (has_old or bool(self.source.get("optionalOldSelf"))) and not (
            is_unchanged and self.source["rule"] == "self == oldSelf"
        )

    @property
    def name(self) -> str:
        return str(self.source.get("message") or self.source["rule"]).strip()


@dataclass(frozen=True, slots=True)
class _RuleSet:
    """Rules that are asked together."""

    rules: tuple[_Rule, ...]
    reads: ReadParts
    """What they read together."""


@dataclass(frozen=True, slots=True)
class _Node:
    """One node of a schema with rules at it or below it."""

    schema: Schema
    environment: Environment
    rules: Mapping[tuple[bool, bool], _RuleSet]
    """Those that apply, by whether there is an old value and whether it is the same."""
    properties: Mapping[str, _Node]
    others: _Node | None
    items: _Node | None
    is_plain: bool
    """Its values are seen by rules as they are stored, if they are ordinary."""
    compares: bool
    """Some rule at it or below it speaks of the old value."""
    names: Mapping[str, str]
    """Of the variables that its rules and their messages use: `self`, `oldSelf`, and the old value as an optional."""

    def old_field(self, old: Any, name: str) -> Any:
        """The value that a field had before."""
        compares = self.schema.get("x-kubernetes-map-type") != "atomic"
        value = old.get(name) if compares and isinstance(old, dict) else None
        return _ABSENT if value is None else value

    @property
    def keys(self) -> Sequence[str]:
        """By which items of a list of maps are the same as before."""
        is_map = self.schema.get("x-kubernetes-list-type") == "map"
        return self.schema.get("x-kubernetes-list-map-keys") or () if is_map else ()


def _compiled(schema: Schema, *, is_resource: bool = True, depth: int = 0) -> _Node | None:
    typed = as_resource(schema) if is_resource else schema
    sources = [source for _, source in _sources(schema, "")]
    environment = _environment(*_signature(typed))
    rules = tuple(_rule(environment, typed, source) for source in sources)
    below = {name: node for name, part in _properties(schema) if (node := _part(part, depth)) is not None}
    others, items = (_part(schema.get(part), depth) for part in ("additionalProperties", "items"))
    nodes = [node for node in (*below.values(), others, items) if node is not None]
    if not rules and not nodes:
        return None
    compares = any(rule.is_transition for rule in rules) or any(node.compares for node in nodes)
    cases = product((False, True), (False, True)) if rules else ()
    sets = {(has_old, is_unchanged): _rule_set(rules, has_old, is_unchanged) for has_old, is_unchanged in cases}
    return _Node(typed, environment, sets, below, others, items, is_plain(typed), compares, _names(typed, rules))


def _rule_set(rules: Sequence[_Rule], has_old: bool, is_unchanged: bool) -> _RuleSet:
    chosen = tuple(rule for rule in rules if rule.applies(has_old, is_unchanged))
    return _RuleSet(chosen, ReadParts(*(rule.program.tree for rule in chosen)))


def _names(schema: Schema, rules: Sequence[_Rule]) -> Mapping[str, str]:
    names = dict(_RAW) if converter(schema) else {_SELF: _SELF, _OLD: _OLD}
    if not any(rule.is_transition or (rule.message is not None and rule.message.uses(_OLD)) for rule in rules):
        del names[_OLD]
    return {**names, _OLDS: _OLDS} if any(rule.source.get("optionalOldSelf") for rule in rules) else names


def _part(schema: Any, depth: int) -> _Node | None:
    if not isinstance(schema, Mapping) or depth >= _DEEPEST:
        return None
    is_resource = bool(schema.get("x-kubernetes-embedded-resource"))
    return _compiled(schema, is_resource=is_resource, depth=depth + 1)


def _properties(schema: Schema) -> Iterator[tuple[str, Schema]]:
    for name, part in (schema.get("properties") or {}).items():
        if isinstance(part, Mapping):
            yield name, part


def _sources(schema: Schema, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rules of a node, with those that stand in an `allOf` of it."""
    for at, source in enumerate(schema.get(RULES) or ()):
        if isinstance(source, Mapping):
            yield f"{path}.{RULES}[{at}]", source
    for number, part in enumerate(schema.get("allOf") or ()):
        if isinstance(part, Mapping):
            yield from _sources(part, f"{path}.allOf[{number}]")


def _signature(schema: Schema) -> tuple[str, str]:
    return kind_of(schema)[0], converter(schema)


@lru_cache(maxsize=64)
def _environment(kind: str, conversion: str) -> Environment:
    type_ = _KINDS.get(kind, CelType.ANY)
    names = _RAW.values() if conversion else (_SELF, _OLD)
    return Environment({**dict.fromkeys(names, type_), _OLDS: CelType.LIST})


_KINDS: Final = {
    "map": CelType.MAP,
    "string": CelType.STRING,
    "integer": CelType.INT,
    "boolean": CelType.BOOL,
    "number": CelType.DOUBLE,
    **{
        f"list({kind.name()})": CelType.list_of(kind)
        for kind in (CelType.STRING, CelType.INT, CelType.BOOL, CelType.DOUBLE, CelType.ANY)
    },
}


def _rule(environment: Environment, schema: Schema, source: Mapping[str, Any]) -> _Rule:
    """CelCompileError if the rule, or the expression for its message, is none."""
    program, result = _program(environment, schema, source, "rule")
    if program.result not in (CelType.BOOL, CelType.ANY) or result not in ("", "bool"):
        raise CelCompileError("cel expression must evaluate to a bool")
    message = None
    if source.get("messageExpression"):
        message, result = _program(environment, schema, source, "messageExpression")
        if message.result not in (CelType.STRING, CelType.ANY) or result not in ("", "string"):
            raise CelCompileError("messageExpression must evaluate to a string")
    return _Rule(source, program, message, is_transition=program.uses(_OLD))


def _program(environment: Environment, schema: Schema, source: Mapping[str, Any], field: str) -> tuple[Program, str]:
    """A compiled expression and the type of its result, as far as the schema says it."""
    expression = str(source.get(field) or "")
    convert = converter(schema)
    wrapped = expression
    scope: dict[str, Schema] = {_SELF: schema, _OLD: schema}
    if source.get("optionalOldSelf"):
        wrapped = f"cel.bind(oldSelf, __oldSelfs[?0], ({wrapped}))"
        del scope[_OLD]
    elif convert and "oldSelf" in expression:
        wrapped = f"cel.bind(oldSelf, {convert}(__oldSelf), ({wrapped}))"
    if convert:
        wrapped = f"cel.bind(self, {convert}(__self), ({wrapped}))"
    program = environment.compile(wrapped)
    return program, check_fields(program.tree, scope)


# --- problems of a definition -----------------------------------------------------------------------------------------


def _problems(
    schema: Schema, path: str, *, is_resource: bool, is_correlatable: bool, depth: int = 0
) -> Iterator[FieldError]:
    if depth > _DEEPEST:
        return
    typed = as_resource(schema) if is_resource else schema
    for place, source in _sources(schema, path):
        yield from _rule_problems(typed, source, place, is_correlatable=is_correlatable)
    is_atomic = schema.get("x-kubernetes-map-type") == "atomic"
    for name, part in _properties(schema):
        yield from _part_problems(part, f"{path}.properties[{name}]", is_correlatable and not is_atomic, depth)
    others, items = schema.get("additionalProperties"), schema.get("items")
    yield from _part_problems(others, f"{path}.additionalProperties", is_correlatable and not is_atomic, depth)
    is_list_of_maps = schema.get("x-kubernetes-list-type") == "map"
    yield from _part_problems(items, f"{path}.items", is_correlatable and is_list_of_maps, depth)


def _part_problems(schema: Any, path: str, is_correlatable: bool, depth: int) -> Iterator[FieldError]:
    if isinstance(schema, Mapping):
        is_resource = bool(schema.get("x-kubernetes-embedded-resource"))
        yield from _problems(schema, path, is_resource=is_resource, is_correlatable=is_correlatable, depth=depth + 1)


def _rule_problems(
    schema: Schema, source: Mapping[str, Any], path: str, *, is_correlatable: bool
) -> Iterator[FieldError]:
    text, message = str(source.get("rule") or "").strip(), str(source.get("message") or "")
    if not text:
        yield FieldError(f"{path}.rule", "rule is not specified", type="FieldValueRequired")
        return
    if "message" in source and not message.strip():
        yield FieldError(f"{path}.message", "message must be non-empty if specified", message)
    if "\n" in message.strip():
        yield FieldError(f"{path}.message", "message must not contain line breaks", message)
    if "\n" in text and not message:
        problem = "message must be specified if rule contains line breaks"
        yield FieldError(f"{path}.message", problem, type="FieldValueRequired")
    reason = source.get("reason")
    if reason is not None and reason not in _REASONS:
        supported = ", ".join(f'"{one}"' for one in _REASONS)
        yield FieldError(f"{path}.reason", f"supported values: {supported}", reason, "FieldValueNotSupported")
    field_path = source.get("fieldPath")
    if field_path and _normalized(schema, str(field_path)) is None:
        yield FieldError(f"{path}.fieldPath", "must be a valid path", field_path)
    yield from _expression_problems(schema, source, path, is_correlatable=is_correlatable)


def _expression_problems(
    schema: Schema, source: Mapping[str, Any], path: str, *, is_correlatable: bool
) -> Iterator[FieldError]:
    try:
        rule = _rule(_environment(*_signature(schema)), schema, source)
    except CelCompileError as error:
        field = "messageExpression" if _compiles(schema, source) else "rule"
        yield FieldError(f"{path}.{field}", f"compilation failed: {error}", dict(source))
        return
    if rule.is_transition and not is_correlatable:
        within = path.partition(f".{RULES}")[0]
        problem = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
        yield FieldError(f"{path}.rule", problem, source["rule"])
    if source.get("optionalOldSelf") and not rule.is_transition:
        problem = "may not be set if oldSelf is not used in rule"
        yield FieldError(f"{path}.optionalOldSelf", problem, source["optionalOldSelf"])


def _compiles(schema: Schema, source: Mapping[str, Any]) -> bool:
    """Whether the rule itself is one."""
    alone = {field: value for field, value in source.items() if field != "messageExpression"}
    try:
        _rule(_environment(*_signature(schema)), schema, alone)
    except CelCompileError:
        return False
    return True


def _normalized(schema: Schema, field_path: str) -> str | None:
    """A `fieldPath` as error messages have it: `.spec.x` and `['spec'].x` are `spec.x`; None if there is no such."""
    steps = field_path.replace("']", "").replace("['", ".").split(".")
    if steps[0] or len(steps) < 2:
        return None
    found = ""
    for step in steps[1:]:
        part = (schema.get("properties") or {}).get(step)
        others = schema.get("additionalProperties")
        if isinstance(part, Mapping):
            found = f"{found}.{step}" if found else step
        elif isinstance(others, Mapping):
            found, part = f"{found}[{step}]", others
        else:
            return None
        schema = part
    return found


# --- judging ----------------------------------------------------------------------------------------------------------


_Question = tuple[ReadParts, bytes]
"""What a rule or several read, and what that was."""


class _Accepted:
    """Which questions rules have answered with yes before, and what that cost: the answer is the same again."""

    def __init__(self) -> None:
        self._costs: dict[_Question, int] = {}
        self._size = 0

    def question(self, reads: ReadParts, variables: Mapping[str, Any]) -> _Question | None:
        """None if it is too long to be kept."""
        text = reads.digest(variables)
        return (reads, text) if len(text) <= _LONGEST_QUESTION else None

    def cost(self, question: _Question | None) -> int | None:
        return None if question is None else self._costs.get(question)

    def add(self, question: _Question | None, cost: int) -> None:
        if question is None:
            return
        self._size += len(question[1])
        if self._size > _MOST_BYTES:
            self._costs.clear()
            self._size = len(question[1])
        self._costs[question] = cost


class _Judgement:
    """Of one object: what is wrong with it, and what may still be spent on finding out."""

    def __init__(self, accepted: _Accepted) -> None:
        self._accepted = accepted
        self._errors: list[FieldError] = []
        self._budget = MOST_FOR_OBJECT

    def of(self, tree: _Node, new: dict[str, Any], old: Any) -> list[FieldError]:
        self._walk(tree, new, old, "", is_unchanged=False)
        return self._errors

    def _walk(self, node: _Node, new: Any, old: Any, path: str, *, is_unchanged: bool) -> None:
        if new is None or self._budget < 0:
            return
        is_unchanged = is_unchanged or (old is not _ABSENT and new == old)
        if is_unchanged and not node.compares:
            return
        self._ask(node, new, old, path, is_unchanged=is_unchanged)
        if isinstance(new, list) and node.items is not None:
            for at, (item, before) in enumerate(_items(new, old, node.keys)):
                self._walk(node.items, item, before, f"{path}[{at}]", is_unchanged=is_unchanged)
        elif isinstance(new, dict):
            for name, value in new.items():
                below = node.properties.get(name, node.others)
                if below is not None:
                    step = f"[{name}]" if name not in node.properties else f".{name}" if path else name
                    self._walk(below, value, node.old_field(old, name), path + step, is_unchanged=is_unchanged)

    def _ask(self, node: _Node, new: Any, old: Any, path: str, *, is_unchanged: bool) -> None:
        together = node.rules.get((old is not _ABSENT, is_unchanged))
        if together is None or not together.rules:
            return
        variables = _variables(node, new, old)
        if not node.is_plain:
            variables = _converted(node, variables)
        question = self._accepted.question(together.reads, variables)
        cost = self._accepted.cost(question)
        if cost is not None and cost <= self._budget:
            self._budget -= cost
            return
        left, many = self._budget, len(self._errors)
        for rule in together.rules:
            if self._budget < 0:
                return
            violation = self._verdict(node, rule, variables)
            if violation is not None:
                self._errors.append(_field_error(node.schema, rule, path, violation, new))
        if len(self._errors) == many:
            self._accepted.add(question, left - self._budget)

    def _verdict(self, node: _Node, rule: _Rule, variables: Mapping[str, Any]) -> _Violation | None:
        question = self._accepted.question(rule.program.reads, variables)
        cost = self._accepted.cost(question)
        if cost is not None and cost <= self._budget:
            self._budget -= cost
            return None
        left = self._budget
        try:
            if rule.program.holds(self._values(node, rule.program, variables)):
                self._accepted.add(question, left - self._budget)
                return None
        except TooCostly:
            return self._exhausted(rule)
        except CelError as error:
            if "cost limit exceeded" in str(error):
                return self._exhausted(rule)
            if str(error).startswith("no such overload"):
                problem = (
                    "'no such overload': call arguments did not match a supported operator, function or macro signature"
                )
                return _Violation(f"{problem} for rule: {rule.name}", is_error=True)
            return _Violation(f"{error} evaluating rule: {rule.name}", is_error=True)
        return _Violation(self._message(node, rule, variables), is_error=False)

    def _values(self, node: _Node, program: Program, variables: Mapping[str, Any]) -> Values:
        """What the program is evaluated with, once its cost is paid; TooCostly if the budget is too small for it."""
        inputs = program.reads.cut(variables)
        sizes = Sizes(inputs)
        self._budget -= program.cost(sizes, self._budget)
        if node.is_plain and not sizes.is_ordinary:
            inputs = _converted(node, inputs)
        return node.environment.bind(inputs)

    def _exhausted(self, rule: _Rule) -> _Violation:
        self._budget = -1
        problem = "'operation cancelled: actual cost limit exceeded': no further validation rules will be run"
        return _Violation(f"{problem} due to call cost exceeds limit for rule: {rule.name}", is_error=True)

    def _message(self, node: _Node, rule: _Rule, variables: Mapping[str, Any]) -> str:
        """What the expression for the message says, if that is a line of text."""
        if rule.message is not None:
            try:
                text = rule.message.evaluate(self._values(node, rule.message, variables))
            except (CelError, TooCostly):
                text = ""
            text = text.strip() if isinstance(text, str) else ""
            if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE:
                return text
        return str(rule.source.get("message") or f"failed rule: {rule.source['rule']}").strip()


@dataclass(frozen=True, slots=True)
class _Violation:
    text: str
    is_error: bool
    """The rule could not be asked, so that its own message does not apply."""


def _variables(node: _Node, new: Any, old: Any) -> dict[str, Any]:
    found = {node.names[_SELF]: new}
    if old is not _ABSENT and _OLD in node.names:
        found[node.names[_OLD]] = old
    if _OLDS in node.names:
        found[_OLDS] = [] if old is _ABSENT else [old]
    return found


def _converted(node: _Node, variables: Mapping[str, Any]) -> dict[str, Any]:
    optional = {"type": "array", "items": node.schema}
    return {name: cel_value(optional if name == _OLDS else node.schema, value) for name, value in variables.items()}


def _items(new: list[Any], old: Any, keys: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """Each item with the one that it was before, which only a list of maps can say."""
    before = {_key(item, keys): item for item in old} if keys and isinstance(old, list) else {}
    for item in new:
        yield item, before.get(_key(item, keys), _ABSENT)


def _key(item: Any, keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(item.get(key)) if isinstance(item, dict) else "" for key in keys)


def _field_error(schema: Schema, rule: _Rule, path: str, violation: _Violation, value: Any) -> FieldError:
    """Of a broken rule the value is shown if it is not a large one; of one that fails only its type."""
    if violation.is_error:
        return FieldError(path or "<nil>", violation.text, schema.get("type", ""))
    below = _normalized(schema, str(rule.source["fieldPath"])) if rule.source.get("fieldPath") else ""
    where = ".".join(part for part in (path, below) if part) or "<nil>"
    kind = _REASONS.get(rule.source.get("reason") or "", "FieldValueInvalid")
    text = "" if kind == "FieldValueDuplicate" else violation.text
    if isinstance(value, dict | list):
        return FieldError(where, text, type=kind)
    return FieldError(where, text, value, kind)
