"""ValidatingAdmissionPolicies: CEL expressions that say what may be written, to which kinds, by which binding.

A policy is compiled once. For a write that it matches its conditions are asked, then its validations; an expression
that fails counts as a rejection, or as nothing with `failurePolicy: Ignore`. Variables are evaluated when an expression
that names them is, once per write. Every user may do everything here, which is what `authorizer` says. Policies that
mutate share what is here about matching, variables and parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec

from pilotage.cel import MOST_FOR_OBJECT, CelCompileError, CelError, CelType, Environment, Program, Sizes, TooCostly
from pilotage.cel.functions import ANY_USER, AUTHORIZER, authorizer_library
from pilotage.cel.structs import structs_as_maps
from pilotage.cel.syntax import Ident, Select, nodes_of
from pilotage.model.selectors import LabelSelector
from pilotage.sandbox.errors import FieldError
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty

POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
_LONGEST_MESSAGE: Final = 5 * 1024
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
_ANYTHING: Final = "*"
_BUILT: Final = frozenset({"JSONPatch", "Object"})
_AUTHORIZERS: Final = {"authorizer": ANY_USER, "authorizer.requestResource": ANY_USER}


class PolicyPart(msgspec.Struct, frozen=True, rename="camel"):
    """Base of what policies consist of."""


class ResourceRule(PolicyPart, frozen=True):
    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    scope: str = _ANYTHING

    def matches(self, write: Write) -> bool:
        return (
            _has(self.api_groups, write.group)
            and _has(self.api_versions, write.version)
            and _has(self.operations, write.operation)
            and any(_names(pattern, write.resource, write.subresource) for pattern in self.resources)
            and (not self.resource_names or write.name in self.resource_names)
            and self.scope in (_ANYTHING, "Namespaced" if write.is_namespaced else "Cluster")
        )


class MatchResources(PolicyPart, frozen=True):
    resource_rules: tuple[ResourceRule, ...] | None = None
    exclude_resource_rules: tuple[ResourceRule, ...] | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None

    def match(self, write: Write) -> bool:
        """Of the selectors those of objects hold if they hold for the old or the new one."""
        if self.resource_rules is not None and not any(rule.matches(write) for rule in self.resource_rules):
            return False
        if any(rule.matches(write) for rule in self.exclude_resource_rules or ()):
            return False
        about, where = self.object_selector, self.namespace_selector
        if about is not None and not any(about.matches(labels) for labels in write.labels()):
            return False
        namespace = write.namespace_labels()
        return where is None or namespace is None or where.matches(namespace)


class Expression(PolicyPart, frozen=True):
    """A condition or a variable."""

    name: str = ""
    expression: str = ""


class Validation(PolicyPart, frozen=True):
    expression: str = ""
    message: str = ""
    message_expression: str = ""
    reason: str = ""


class ParamKind(PolicyPart, frozen=True):
    api_version: str = ""
    kind: str = ""


class PolicySpec(PolicyPart, frozen=True):
    param_kind: ParamKind | None = None
    match_constraints: MatchResources | None = None
    match_conditions: tuple[Expression, ...] | None = None
    validations: tuple[Validation, ...] | None = None
    variables: tuple[Expression, ...] | None = None
    audit_annotations: tuple[Any, ...] | None = None
    failure_policy: str = "Fail"


class ParamRef(PolicyPart, frozen=True):
    name: str = ""
    namespace: str = ""
    selector: LabelSelector | None = None
    parameter_not_found_action: str = ""


class BindingSpec(PolicyPart, frozen=True):
    policy_name: str = ""
    param_ref: ParamRef | None = None
    match_resources: MatchResources | None = None
    validation_actions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """What a client wants to write; `new` and `old` are the objects as they would be and as they are stored."""

    operation: str
    group: str
    version: str
    kind: str
    resource: str
    subresource: str
    is_namespaced: bool
    name: str
    namespace: str
    new: Json | None
    old: Json | None
    namespace_object: Json | None
    user: Json
    is_dry_run: bool = False

    def labels(self) -> Iterator[Mapping[str, str]]:
        for obj in (self.new, self.old):
            if obj is not None:
                yield dict_or_empty(dict_or_empty(obj.get("metadata")).get("labels"))

    def namespace_labels(self) -> Mapping[str, str] | None:
        """Those of the namespace that it is about or in; None if there is none."""
        if self.kind == "Namespace" and not self.group:
            return next(self.labels(), {})
        if self.namespace_object is None:
            return None
        return dict_or_empty(dict_or_empty(self.namespace_object.get("metadata")).get("labels"))

    def request(self) -> Json:
        """The variable `request`."""
        kind = {"group": self.group, "version": self.version, "kind": self.kind}
        resource = {"group": self.group, "version": self.version, "resource": self.resource}
        return {
            **{"kind": kind, "resource": resource, "subResource": self.subresource},
            **{"requestKind": kind, "requestResource": resource, "requestSubResource": self.subresource},
            **{"name": self.name, "namespace": self.namespace, "operation": self.operation},
            **{"userInfo": self.user, "dryRun": self.is_dry_run},
        }


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a write is rejected."""

    message: str
    reason: str = "Invalid"


@dataclass(frozen=True, slots=True)
class _CompiledValidation:
    source: Validation
    program: Program
    message: Program | None


class PolicyMatch:
    """What policies that validate and policies that mutate have in common: the writes that they are about."""

    def __init__(self, name: str, spec: Any) -> None:
        self.name = name
        self.spec = spec
        self.variables = {one.name: compiled(one.expression) for one in spec.variables or ()}
        self._conditions = [compiled(one.expression) for one in spec.match_conditions or ()]

    def matches(self, write: Write) -> bool:
        constraints = self.spec.match_constraints
        return constraints is not None and bool(constraints.match(write))

    def may_match(self, write: Write) -> bool:
        """Whether some object of this kind may concern it."""
        constraints = self.spec.match_constraints
        rules = constraints.resource_rules or () if constraints is not None else ()
        return any(msgspec.structs.replace(rule, resource_names=()).matches(write) for rule in rules)

    def applies(self, evaluation: Evaluation) -> bool:
        """CelError if a condition fails, unless another does not hold, which outweighs it."""
        failure: CelError | None = None
        for program, source in zip(self._conditions, self.spec.match_conditions or (), strict=True):
            try:
                if not evaluation.holds(program, source.expression):
                    return False
            except CelError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return True


class Policy(PolicyMatch):
    """A compiled policy that validates; CelCompileError if one of its expressions is none."""

    spec: PolicySpec

    def __init__(self, name: str, spec: PolicySpec) -> None:
        super().__init__(name, spec)
        self._validations = [
            _CompiledValidation(one, compiled(one.expression), _message_of(one)) for one in spec.validations or ()
        ]

    def denials(self, write: Write, params: Json | None) -> Iterator[Denial]:
        """What it has against a write that it matches."""
        evaluation = Evaluation(self.variables, write, params)
        try:
            if not self.applies(evaluation):
                return
        except CelError as error:
            yield from self._failure(error)
            return
        for one in self._validations:
            try:
                if not evaluation.holds(one.program, one.source.expression):
                    yield Denial(_message(one, evaluation), one.source.reason or "Invalid")
            except CelError as error:
                yield from self._failure(error)

    def _failure(self, error: CelError) -> Iterator[Denial]:
        if self.spec.failure_policy != "Ignore":
            yield Denial(str(error))


class Evaluation:
    """The expressions of one policy on one write."""

    def __init__(self, variables: Mapping[str, Program], write: Write, params: Json | None) -> None:
        self._variables = variables
        self._values: dict[str, Any] = {}
        self._failures: dict[str, str] = {}
        self._budget = MOST_FOR_OBJECT
        self._known = {
            "object": write.new,
            "oldObject": write.old,
            "request": write.request(),
            "params": params,
            "namespaceObject": write.namespace_object,
        }

    def with_object(self, obj: Json) -> Evaluation:
        """From now on `object` is this one; variables that were asked for keep their values."""
        self._known["object"] = obj
        return self

    def holds(self, program: Program, source: str) -> bool:
        result = self.result(program, source)
        if not isinstance(result, bool):
            raise CelError(f"expression '{source}' resulted in error: cel expression must evaluate to a bool")
        return result

    def result(self, program: Program, source: str) -> Any:
        """CelError with the expression that fails."""
        for name in _variables_in(program):
            self._evaluate_variable(name)
        # Values of variables are CEL's, not JSON: times are no texts.
        inputs = {**program.reads.cut(self._known), **_AUTHORIZERS, "variables": self._values}
        try:
            self._budget -= program.cost(Sizes(inputs), self._budget)
            return program.evaluate(_environment().bind(inputs))
        except TooCostly:
            raise CelError(
                f"expression '{source}' resulted in error: operation cancelled: actual cost limit exceeded"
            ) from None
        except CelError as error:
            problem = str(error)
            missing = problem.removeprefix("no such key: ")
            if missing != problem:
                problem = self._failures.get(missing, problem)
            raise CelError(f"expression '{source}' resulted in error: {problem}") from None

    def _evaluate_variable(self, name: str) -> None:
        """A variable that fails has no value, so that only expressions fail that need it."""
        program = self._variables.get(name)
        if program is None or name in self._values or name in self._failures:
            return
        # Variables see those before them only, so that this ends.
        self._failures[name] = f'composited variable "{name}" names itself'
        try:
            self._values[name] = self.result(program, name)
            del self._failures[name]
        except CelError as error:
            self._failures[name] = f'composited variable "{name}" fails to evaluate: {error}'


def _variables_in(program: Program) -> Iterator[str]:
    for node in nodes_of(program.tree):
        if isinstance(node, Select) and node.operand == Ident("variables"):
            yield node.field


@lru_cache(maxsize=1)
def _environment() -> Environment:
    anything = ("object", "oldObject", "request", "params", "namespaceObject")
    return Environment(
        {
            **dict.fromkeys(anything, CelType.ANY),
            "variables": CelType.MAP,
            "authorizer": AUTHORIZER,
            "authorizer.requestResource": AUTHORIZER,
        },
        authorizer_library(),
    )


def compiled(expression: str, *, builds: bool = False) -> Program:
    """`builds`: it may build objects of the types that mutations are made of."""
    return _environment().compile(structs_as_maps(expression, _BUILT) if builds else expression)


def _message_of(validation: Validation) -> Program | None:
    return compiled(validation.message_expression) if validation.message_expression else None


def _message(validation: _CompiledValidation, evaluation: Evaluation) -> str:
    source = validation.source
    if validation.message is not None:
        try:
            text = evaluation.result(validation.message, source.message_expression)
        except CelError:
            text = ""
        text = text.strip() if isinstance(text, str) else ""
        if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE:
            return text
    return source.message.strip() or f"failed expression: {source.expression.strip()}"


def _has(names: Sequence[str], name: str) -> bool:
    return name in names or _ANYTHING in names


def _names(pattern: str, resource: str, subresource: str) -> bool:
    """`pods`, `pods/status`, `pods/*`, `*/status`; `*` is all resources without subresources, `*/*` all of both."""
    if pattern == "*/*":
        return True
    wanted, _, part = pattern.partition("/")
    return wanted in (_ANYTHING, resource) and (part == subresource or (part == _ANYTHING and bool(subresource)))


# --- what a policy or a binding may be --------------------------------------------------------------------------------


def spec_of(obj: Json, kind: type[Any]) -> Any:
    """The spec of a policy or a binding, whose types were checked."""
    return msgspec.convert(without_nulls(obj.get("spec") or {}), kind)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def policy_errors(obj: Json) -> list[FieldError]:
    """Why the policy cannot be used."""
    try:
        spec = spec_of(obj, PolicySpec)
    except msgspec.ValidationError as error:
        return [FieldError("spec", str(error), "", "FieldValueTypeInvalid")]
    errors = match_errors(spec)
    if not spec.validations and not spec.audit_annotations:
        problem = "validations or auditAnnotations must contain at least one item"
        errors.append(FieldError("spec.validations", problem, type="FieldValueRequired"))
    errors += one_of("spec.failurePolicy", spec.failure_policy, ("Fail", "Ignore"))
    for path, expression, result in (*conditions_of(spec), *_expressions(spec)):
        errors += expression_errors(path, expression, result)
    for at, validation in enumerate(spec.validations or ()):
        if validation.reason:
            errors += one_of(f"spec.validations[{at}].reason", validation.reason, _REASONS)
    return errors


def match_errors(spec: Any) -> list[FieldError]:
    if spec.match_constraints is None:
        return [FieldError("spec.matchConstraints", type="FieldValueRequired")]
    if not spec.match_constraints.resource_rules:
        return [FieldError("spec.matchConstraints.resourceRules", type="FieldValueRequired")]
    return []


def binding_errors(obj: Json) -> list[FieldError]:
    """Why the binding cannot be used."""
    try:
        spec = spec_of(obj, BindingSpec)
    except msgspec.ValidationError as error:
        return [FieldError("spec", str(error), "", "FieldValueTypeInvalid")]
    return [*_action_errors(spec), *reference_errors(spec)]


def _action_errors(spec: BindingSpec) -> list[FieldError]:
    errors = []
    path, actions = "spec.validationActions", spec.validation_actions or ()
    if not actions:
        errors.append(FieldError(path, "at least one validation action is required", type="FieldValueRequired"))
    for at, one in enumerate(actions):
        errors += one_of(f"{path}[{at}]", one, _ACTIONS)
    if {"Deny", "Warn"} <= set(actions):
        problem = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API response"
            " and headers serves no purpose)"
        )
        errors.append(FieldError(path, problem, list(actions)))
    return errors


def reference_errors(spec: Any) -> list[FieldError]:
    """What a binding of either sort may be wrong about."""
    errors = []
    if not spec.policy_name:
        errors.append(FieldError("spec.policyName", type="FieldValueRequired"))
    reference = spec.param_ref
    if reference is not None:
        where = "spec.paramRef.parameterNotFoundAction"
        errors += one_of(where, reference.parameter_not_found_action, ("Allow", "Deny"))
    if reference is not None and bool(reference.name) == (reference.selector is not None):
        errors.append(
            FieldError("spec.paramRef.name", "one of name or selector must be specified", type="FieldValueRequired")
        )
    return errors


def conditions_of(spec: Any) -> Iterator[tuple[str, str, Any]]:
    for at, condition in enumerate(spec.match_conditions or ()):
        yield f"spec.matchConditions[{at}].expression", condition.expression, CelType.BOOL
    for at, variable in enumerate(spec.variables or ()):
        yield f"spec.variables[{at}].expression", variable.expression, CelType.ANY


def _expressions(spec: PolicySpec) -> Iterator[tuple[str, str, Any]]:
    for at, validation in enumerate(spec.validations or ()):
        yield f"spec.validations[{at}].expression", validation.expression, CelType.BOOL
        if validation.message_expression:
            yield f"spec.validations[{at}].messageExpression", validation.message_expression, CelType.STRING


def expression_errors(path: str, expression: str, result: Any) -> Iterator[FieldError]:
    if not expression.strip():
        yield FieldError(path, "expression is not specified", type="FieldValueRequired")
        return
    try:
        actual = compiled(expression).result
    except CelCompileError as error:
        yield FieldError(path, f"compilation failed: {error}", expression)
        return
    if result != CelType.ANY and actual not in (result, CelType.ANY):
        yield FieldError(path, f"must evaluate to {result.name().lower()}", expression)


def one_of(path: str, value: str, supported: Sequence[str]) -> list[FieldError]:
    if value in supported:
        return []
    names = ", ".join(f'"{name}"' for name in supported)
    return [FieldError(path, f"supported values: {names}", value, "FieldValueNotSupported")]
