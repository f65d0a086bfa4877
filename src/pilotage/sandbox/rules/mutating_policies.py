"""MutatingAdmissionPolicies: CEL expressions that say what is to be changed in an object that is written.

A mutation is a part of an object (`ApplyConfiguration`), which is merged into the one that is written by the merge keys
of its kind, or a list of operations (`JSONPatch`). What policies match, their conditions, variables and parameters are
those of ValidatingAdmissionPolicies.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from pilotage.cel import CelCompileError, CelError
from pilotage.sandbox.errors import FieldError
from pilotage.sandbox.kinds.builtin_groups import is_builtin
from pilotage.sandbox.rules.admission_policies import (
    BindingSpec,
    Evaluation,
    Expression,
    MatchResources,
    ParamKind,
    PolicyMatch,
    PolicyPart,
    Write,
    compiled,
    conditions_of,
    expression_errors,
    match_errors,
    one_of,
    reference_errors,
    spec_of,
)
from pilotage.sandbox.rules.json_fields import Json
from pilotage.sandbox.rules.patch import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, apply_patch

MUTATING_POLICY = "MutatingAdmissionPolicy"
_PATCH_TYPES: Final = ("ApplyConfiguration", "JSONPatch")
_REINVOCATIONS: Final = ("IfNeeded", "Never")
_SERVERS_OWN: Final = ("apiVersion", "kind", "status")

_encode = msgspec.json.Encoder().encode


class MutationExpression(PolicyPart, frozen=True):
    expression: str = ""


class Mutation(PolicyPart, frozen=True):
    patch_type: str = ""
    apply_configuration: MutationExpression | None = None
    json_patch: MutationExpression | None = msgspec.field(default=None, name="jsonPatch")

    @property
    def expression(self) -> str:
        chosen = self.json_patch if self.patch_type == "JSONPatch" else self.apply_configuration
        return "" if chosen is None else chosen.expression


class MutatingPolicySpec(PolicyPart, frozen=True):
    param_kind: ParamKind | None = None
    match_constraints: MatchResources | None = None
    match_conditions: tuple[Expression, ...] | None = None
    variables: tuple[Expression, ...] | None = None
    mutations: tuple[Mutation, ...] | None = None
    failure_policy: str = "Fail"
    reinvocation_policy: str = ""


class MutatingPolicy(PolicyMatch):
    """A compiled policy; CelCompileError if one of its expressions is none."""

    spec: MutatingPolicySpec

    def __init__(self, name: str, spec: MutatingPolicySpec) -> None:
        super().__init__(name, spec)
        self._mutations = [(one, compiled(one.expression, builds=True)) for one in spec.mutations or ()]

    @property
    def wants_another_look(self) -> bool:
        return self.spec.reinvocation_policy == "IfNeeded"

    def mutated(self, write: Write, params: Json | None) -> Json:
        """The object as the policy wants it; CelError if an expression fails, ApiError if its result does not fit."""
        new = write.new or {}
        evaluation = Evaluation(self.variables, write, params)
        if not self.applies(evaluation):
            return new
        for mutation, program in self._mutations:
            # Each sees what those before it have made.
            changes = evaluation.with_object(new).result(program, mutation.expression)
            new = _applied(write.kind, new, mutation.patch_type, changes)
        return new


def _applied(kind: str, obj: Json, patch_type: str, changes: Any) -> Json:
    if patch_type == "JSONPatch":
        if not isinstance(changes, list):
            raise CelError("a JSONPatch expression must evaluate to a list of JSONPatch")
        return apply_patch(JSON_PATCH, kind, obj, _encode(changes))
    if not isinstance(changes, dict):
        raise CelError("an ApplyConfiguration expression must evaluate to Object")
    merged = {field: value for field, value in changes.items() if field not in _SERVERS_OWN}
    return apply_patch(STRATEGIC_MERGE_PATCH if is_builtin(obj) else MERGE_PATCH, kind, obj, _encode(merged))


# --- what a policy or a binding may be --------------------------------------------------------------------------------


def mutating_policy_errors(obj: Json) -> list[FieldError]:
    """Why the policy cannot be used."""
    try:
        spec = spec_of(obj, MutatingPolicySpec)
    except msgspec.ValidationError as error:
        return [FieldError("spec", str(error), "", "FieldValueTypeInvalid")]
    errors = match_errors(spec)
    if not spec.mutations:
        problem = "mutations must contain at least one item"
        errors.append(FieldError("spec.mutations", problem, type="FieldValueRequired"))
    errors += one_of("spec.failurePolicy", spec.failure_policy, ("Fail", "Ignore"))
    if not spec.reinvocation_policy:
        errors.append(FieldError("spec.reinvocationPolicy", type="FieldValueRequired"))
    else:
        errors += one_of("spec.reinvocationPolicy", spec.reinvocation_policy, _REINVOCATIONS)
    for path, expression, result in conditions_of(spec):
        errors += expression_errors(path, expression, result)
    for at, mutation in enumerate(spec.mutations or ()):
        errors += _mutation_errors(f"spec.mutations[{at}]", mutation)
    return errors


def _mutation_errors(path: str, mutation: Mutation) -> Iterator[FieldError]:
    if mutation.patch_type not in _PATCH_TYPES:
        yield from one_of(f"{path}.patchType", mutation.patch_type, _PATCH_TYPES)
        return
    field = "jsonPatch" if mutation.patch_type == "JSONPatch" else "applyConfiguration"
    other = mutation.apply_configuration if field == "jsonPatch" else mutation.json_patch
    if other is not None:
        wrong = "applyConfiguration" if field == "jsonPatch" else "jsonPatch"
        problem = f"may not be set for patchType {mutation.patch_type}"
        yield FieldError(f"{path}.{wrong}", problem, type="FieldValueForbidden")
    if not mutation.expression.strip():
        yield FieldError(f"{path}.{field}.expression", "expression is not specified", type="FieldValueRequired")
        return
    try:
        actual = compiled(mutation.expression, builds=True).result
    except CelCompileError as error:
        yield FieldError(f"{path}.{field}.expression", f"compilation failed: {error}", mutation.expression)
        return
    if actual.name().partition("<")[0] not in ("LIST" if field == "jsonPatch" else "MAP", "DYN"):
        expected = "list(JSONPatch)" if field == "jsonPatch" else "Object"
        yield FieldError(f"{path}.{field}.expression", f"must evaluate to {expected}", mutation.expression)


def mutating_binding_errors(obj: Json) -> list[FieldError]:
    """Why the binding cannot be used."""
    try:
        return reference_errors(spec_of(obj, BindingSpec))
    except msgspec.ValidationError as error:
        return [FieldError("spec", str(error), "", "FieldValueTypeInvalid")]
