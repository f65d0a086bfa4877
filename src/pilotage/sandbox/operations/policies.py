"""Which admission policies are in force, and what they say to a write.

Policies and bindings are objects like others; what is compiled from them is kept until one of them changes, by what is
written: most writes concern no policy and cost one look into a table. The policies for Kueue's kinds that are built in
stand in no list, and give way to stored ones of the same name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from pilotage.cel import CelCompileError
from pilotage.sandbox.errors import ApiError, forbidden
from pilotage.sandbox.kinds.crds import CRD_RESOURCE
from pilotage.sandbox.kinds.kueue_schemas import builtin_policies
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.kinds.schema_values import cel_value
from pilotage.sandbox.operations.backend import Backend, Object
from pilotage.sandbox.operations.lookup import CachedLookup
from pilotage.sandbox.rules.admission_policies import (
    BINDING,
    POLICY,
    BindingSpec,
    Denial,
    ParamKind,
    Policy,
    PolicySpec,
    ResourceRule,
    Write,
    spec_of,
)
from pilotage.sandbox.storage.records import Change, Key

POLICIES: Final = "validatingadmissionpolicies.admissionregistration.k8s.io"
BINDINGS: Final = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
USER: Final[dict[str, Any]] = {"username": "sandbox-admin", "groups": ["system:masters", "system:authenticated"]}
"""The one user of a sandbox."""
_EXEMPT: Final = frozenset({POLICIES, BINDINGS})
_CODES: Final[Mapping[str, int]] = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_MOST_KNOWN: Final = 1024

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class _Bound:
    """A policy with one of its bindings."""

    policy: Policy
    binding: str
    spec: BindingSpec


class Policies:
    """The admission policies of one sandbox."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._lookup = CachedLookup(backend.store)
        self._bound: tuple[_Bound, ...] | None = None
        self._concerned: dict[tuple[str, ...], tuple[_Bound, ...]] = {}
        self.warnings: list[str] = []
        """Of the last write."""
        for resource in (POLICIES, BINDINGS, CRD_RESOURCE):
            backend.store.subscribe(resource, self._forget)

    def judge(
        self,
        resource_type: ResourceType,
        operation: str,
        new: Object | None,
        old: Object | None = None,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> None:
        """ApiError if a policy refuses the write."""
        concerned = self.concern(resource_type, operation, subresource)
        if concerned:
            write = self._write(resource_type, operation, new, old)
            self._ask(concerned, replace(write, subresource=subresource, is_dry_run=dry_run), resource_type)

    def concern(self, resource_type: ResourceType, operation: str, subresource: str = "") -> tuple[_Bound, ...]:
        """Those that may have something to say to writes of this kind."""
        if self.warnings:
            self.warnings = []
        key = (resource_type.api_version, resource_type.plural, operation, subresource)
        concerned = self._concerned.get(key)
        if concerned is None:
            if len(self._concerned) >= _MOST_KNOWN:
                self._concerned.clear()
            write = replace(_about(resource_type, operation), subresource=subresource)
            concerned = self._concerned[key] = () if resource_type.storage in _EXEMPT else self._find(write)
        return concerned

    def _find(self, write: Write) -> tuple[_Bound, ...]:
        if self._bound is None:
            self._bound = tuple(self._in_force())
        return tuple(one for one in self._bound if _may_match(one.policy, write))

    def _in_force(self) -> Iterator[_Bound]:
        stored = self._lookup.list(POLICIES) + self._lookup.list(BINDINGS)
        names = {(obj["kind"], obj["metadata"]["name"]) for obj in stored}
        builtin = [obj for obj in builtin_policies() if (obj["kind"], obj["metadata"]["name"]) not in names]
        objects = [*builtin, *stored]
        policies = {}
        for obj in objects:
            if obj["kind"] == POLICY:
                try:
                    policies[obj["metadata"]["name"]] = Policy(obj["metadata"]["name"], spec_of(obj, PolicySpec))
                except (CelCompileError, msgspec.ValidationError):
                    # Judged when it was written; one of an earlier version of the sandbox may be worse.
                    continue
        for obj in objects:
            spec = spec_of(obj, BindingSpec) if obj["kind"] == BINDING else BindingSpec()
            if spec.policy_name in policies:
                yield _Bound(policies[spec.policy_name], obj["metadata"]["name"], spec)

    def _write(self, resource_type: ResourceType, operation: str, new: Object | None, old: Object | None) -> Write:
        metadata = (new or old or {}).get("metadata") or {}
        namespace = metadata.get("namespace", "")
        return replace(
            _about(resource_type, operation),
            name=metadata.get("name", ""),
            namespace=namespace,
            new=_whole(new),
            old=_whole(old),
            namespace_object=self._lookup.get("namespaces", "", namespace) if namespace else None,
        )

    def _ask(self, concerned: tuple[_Bound, ...], write: Write, resource_type: ResourceType) -> None:
        for one in concerned:
            constraints = one.spec.match_resources
            if not one.policy.matches(write) or (constraints is not None and not constraints.match(write)):
                continue
            for denial in self._denials(one, write):
                who = f"'{one.policy.name}' with binding '{one.binding}'"
                if "Deny" in (one.spec.validation_actions or ()):
                    raise _refusal(resource_type, write.name, who, denial)
                if "Warn" in (one.spec.validation_actions or ()):
                    self.warnings.append(f"Validation failed for ValidatingAdmissionPolicy {who}: {denial.message}")

    def _denials(self, one: _Bound, write: Write) -> Iterator[Denial]:
        try:
            params = self._params(one, write)
        except LookupError as error:
            if one.policy.spec.failure_policy != "Ignore":
                yield Denial(f"failed to configure binding: {error.args[0]}")
            return
        for each in params:
            yield from one.policy.denials(write, each)

    def _params(self, one: _Bound, write: Write) -> list[Object | None]:
        """The objects that the binding names; LookupError if they cannot be had."""
        kind, reference = one.policy.spec.param_kind, one.spec.param_ref
        if kind is None or reference is None:
            return [None]
        resource_type = self._type_of(kind)
        namespace = (reference.namespace or write.namespace) if resource_type.namespaced else ""
        if resource_type.namespaced and not namespace:
            raise LookupError("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
        if reference.selector is None:
            record = self._backend.store.get(Key(resource_type.storage, namespace, reference.name))
            found = [] if record is None else [record.object()]
        else:
            objects = [record.object() for record in self._backend.store.list(resource_type.storage, namespace)]
            found = [obj for obj in objects if reference.selector.matches(obj["metadata"].get("labels") or {})]
        if not found and reference.parameter_not_found_action == "Deny":
            raise LookupError("no params found for policy binding with `Deny` parameterNotFoundAction")
        return list(found)

    def _type_of(self, kind: ParamKind) -> ResourceType:
        resource_type = self._backend.registry.for_kind(kind.api_version, kind.kind)
        if resource_type is None:
            raise LookupError(
                f"failed to find resource referenced by paramKind: '{kind.api_version}, Kind={kind.kind}'"
            )
        return resource_type

    def _forget(self, change: Change) -> None:
        self._bound = None
        self._concerned.clear()


def _about(resource_type: ResourceType, operation: str) -> Write:
    """A write of which nothing is known but its kind."""
    return Write(
        operation,
        resource_type.group,
        resource_type.version,
        resource_type.kind,
        resource_type.plural,
        "",
        resource_type.namespaced,
        "",
        "",
        None,
        None,
        None,
        USER,
    )


def _may_match(policy: Policy, write: Write) -> bool:
    """Whether some object of this kind may concern it."""
    constraints = policy.spec.match_constraints
    rules = constraints.resource_rules or () if constraints is not None else ()
    return any(_without_names(rule).matches(write) for rule in rules)


def _without_names(rule: ResourceRule) -> ResourceRule:
    return msgspec.structs.replace(rule, resource_names=())


def _whole(obj: Object | None) -> Object | None:
    """The object as expressions see it, with what may still be JSON text in it."""
    found: Object | None = None if obj is None else cel_value({}, _decode(_encode(obj)))
    return found


def _refusal(resource_type: ResourceType, name: str, who: str, denial: Denial) -> ApiError:
    message = f"ValidatingAdmissionPolicy {who} denied request: {denial.message}"
    error = forbidden(resource_type.qualified, name, message)
    error.reason, error.code = denial.reason, _CODES.get(denial.reason, 422)
    error.details = {**(error.details or {}), "causes": [{"message": message}]}
    return error
