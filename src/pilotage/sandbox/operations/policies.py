"""Which admission policies are in force, what they change in a write, and what they say to it.

Policies and bindings are objects like others; what is compiled from them is kept until one of them changes, by what is
written: most writes concern no policy and cost one look into a table. The policies for Kueue's kinds that are built in
stand in no list, and give way to stored ones of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from pilotage.cel import CelCompileError, CelError
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
    PolicyMatch,
    PolicySpec,
    Write,
    spec_of,
)
from pilotage.sandbox.rules.mutating_policies import (
    MUTATING_POLICY,
    MutatingPolicy,
    MutatingPolicySpec,
)
from pilotage.sandbox.storage.records import Change, Key

POLICIES: Final = "validatingadmissionpolicies.admissionregistration.k8s.io"
BINDINGS: Final = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
MUTATING_POLICIES: Final = "mutatingadmissionpolicies.admissionregistration.k8s.io"
MUTATING_BINDINGS: Final = "mutatingadmissionpolicybindings.admissionregistration.k8s.io"
MUTATING_WEBHOOKS: Final = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING_WEBHOOKS: Final = "validatingwebhookconfigurations.admissionregistration.k8s.io"
USER: Final[dict[str, Any]] = {"username": "sandbox-admin", "groups": ["system:masters", "system:authenticated"]}
"""The administrator, and without roles the one user of a sandbox."""
_EXEMPT: Final = frozenset(
    {POLICIES, BINDINGS, MUTATING_POLICIES, MUTATING_BINDINGS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS}
)
_CODES: Final[Mapping[str, int]] = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_MOST_KNOWN: Final = 1024

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class _Bound:
    """A policy with one of its bindings."""

    policy: PolicyMatch
    binding: str
    spec: BindingSpec

    @property
    def name(self) -> str:
        return f"'{self.policy.name}' with binding '{self.binding}'"


class Policies:
    """The admission policies of one sandbox."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._lookup = CachedLookup(backend.store)
        self._bound: dict[str, tuple[_Bound, ...]] = {}
        self._concerned: dict[tuple[str, ...], tuple[_Bound, ...]] = {}
        self.warnings: list[str] = []
        """Of the last write."""
        self.user: Mapping[str, Any] = USER
        """Who writes."""
        for resource in (POLICIES, BINDINGS, MUTATING_POLICIES, MUTATING_BINDINGS, CRD_RESOURCE):
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
        """ApiError if a policy rejects the write."""
        concerned = self.concern(resource_type, operation, subresource)
        if concerned:
            write = self._write(resource_type, operation, new, old)
            self._ask(concerned, replace(write, subresource=subresource, is_dry_run=dry_run), resource_type)

    def mutated(
        self, resource_type: ResourceType, operation: str, new: Object, old: Object | None = None, *, dry_run: bool
    ) -> Object:
        """The object as the policies that mutate want it; the same one if there are none. ApiError if one fails."""
        concerned = self._concern(MUTATING_POLICY, resource_type, operation, "")
        if not concerned:
            return new
        write = replace(self._write(resource_type, operation, new, old), is_dry_run=dry_run)
        looked_at: dict[int, Object | None] = {}
        # Twice: those that want it look again at what others have changed after them.
        for is_again in (False, True):
            for at, one in enumerate(concerned):
                assert isinstance(one.policy, MutatingPolicy)
                if is_again and (not one.policy.wants_another_look or looked_at[at] == write.new):
                    continue
                write = replace(write, new=self._mutate(one, one.policy, write, resource_type))
                looked_at[at] = write.new
        return write.new or new

    def _mutate(self, one: _Bound, policy: MutatingPolicy, write: Write, resource_type: ResourceType) -> Object | None:
        if not _concerns(one, write):
            return write.new
        try:
            for params in self._params(one, write):
                write = replace(write, new=_whole(policy.mutated(write, params)))
        except (CelError, LookupError, ApiError) as error:
            if policy.spec.failure_policy != "Ignore":
                problem = error.message if isinstance(error, ApiError) else str(error.args[0])
                raise _rejection(resource_type, write.name, f"{MUTATING_POLICY} {one.name}", Denial(problem)) from None
        return write.new

    def concern(self, resource_type: ResourceType, operation: str, subresource: str = "") -> tuple[_Bound, ...]:
        """Those that may have something to say to writes of this kind."""
        if self.warnings:
            self.warnings = []
        return self._concern(POLICY, resource_type, operation, subresource)

    def mutates(self, resource_type: ResourceType, operation: str) -> bool:
        """Whether a policy may want to change objects of this kind."""
        return bool(self._concern(MUTATING_POLICY, resource_type, operation, ""))

    def _concern(
        self, family: str, resource_type: ResourceType, operation: str, subresource: str
    ) -> tuple[_Bound, ...]:
        key = (family, resource_type.api_version, resource_type.plural, operation, subresource)
        concerned = self._concerned.get(key)
        if concerned is None:
            if len(self._concerned) >= _MOST_KNOWN:
                self._concerned.clear()
            write = replace(about(resource_type, operation), subresource=subresource)
            concerned = () if resource_type.storage in _EXEMPT else self._find(family, write)
            self._concerned[key] = concerned
        return concerned

    def _find(self, family: str, write: Write) -> tuple[_Bound, ...]:
        bound = self._bound.get(family)
        if bound is None:
            bound = self._bound[family] = tuple(_FAMILIES[family](self))
        return tuple(one for one in bound if one.policy.may_match(write))

    def _validating(self) -> Iterator[_Bound]:
        stored = self._lookup.list(POLICIES) + self._lookup.list(BINDINGS)
        names = {(obj["kind"], obj["metadata"]["name"]) for obj in stored}
        builtin = [obj for obj in builtin_policies() if (obj["kind"], obj["metadata"]["name"]) not in names]
        objects = [*builtin, *stored]
        policies = _compiled([obj for obj in objects if obj["kind"] == POLICY], Policy, PolicySpec)
        return _bound([obj for obj in objects if obj["kind"] == BINDING], policies)

    def _mutating(self) -> Iterator[_Bound]:
        policies = _compiled(self._lookup.list(MUTATING_POLICIES), MutatingPolicy, MutatingPolicySpec)
        return _bound(self._lookup.list(MUTATING_BINDINGS), policies)

    def _write(self, resource_type: ResourceType, operation: str, new: Object | None, old: Object | None) -> Write:
        metadata = (new or old or {}).get("metadata") or {}
        namespace = metadata.get("namespace", "")
        return replace(
            about(resource_type, operation),
            name=metadata.get("name", ""),
            namespace=namespace,
            new=_whole(new),
            old=_whole(old),
            namespace_object=self._lookup.get("namespaces", "", namespace) if namespace else None,
            user=dict(self.user),
        )

    def _ask(self, concerned: tuple[_Bound, ...], write: Write, resource_type: ResourceType) -> None:
        for one in concerned:
            if not _concerns(one, write):
                continue
            for denial in self._denials(one, write):
                if "Deny" in (one.spec.validation_actions or ()):
                    raise _rejection(resource_type, write.name, f"{POLICY} {one.name}", denial)
                if "Warn" in (one.spec.validation_actions or ()):
                    self.warnings.append(f"Validation failed for {POLICY} {one.name}: {denial.message}")

    def _denials(self, one: _Bound, write: Write) -> Iterator[Denial]:
        try:
            params = self._params(one, write)
        except LookupError as error:
            if one.policy.spec.failure_policy != "Ignore":
                yield Denial(f"failed to configure binding: {error.args[0]}")
            return
        assert isinstance(one.policy, Policy)
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
        self._bound.clear()
        self._concerned.clear()


_FAMILIES: Final[Mapping[str, Callable[[Policies], Iterator[_Bound]]]] = {
    POLICY: Policies._validating,
    MUTATING_POLICY: Policies._mutating,
}


def _compiled(objects: Iterable[Object], made: type[PolicyMatch], kind: type[Any]) -> dict[str, PolicyMatch]:
    """The policies by name; one that an earlier version of the sandbox let in may be none."""
    policies = {}
    for obj in objects:
        with suppress(CelCompileError, msgspec.ValidationError):
            policies[obj["metadata"]["name"]] = made(obj["metadata"]["name"], spec_of(obj, kind))
    return policies


def _bound(bindings: Iterable[Object], policies: Mapping[str, PolicyMatch]) -> Iterator[_Bound]:
    for obj in bindings:
        spec = spec_of(obj, BindingSpec)
        if spec.policy_name in policies:
            yield _Bound(policies[spec.policy_name], obj["metadata"]["name"], spec)


def _concerns(one: _Bound, write: Write) -> bool:
    constraints = one.spec.match_resources
    return one.policy.matches(write) and (constraints is None or constraints.match(write))


def about(resource_type: ResourceType, operation: str) -> Write:
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


def _whole(obj: Object | None) -> Object | None:
    """The object as expressions see it, with what may still be JSON text in it."""
    found: Object | None = None if obj is None else cel_value({}, _decode(_encode(obj)))
    return found


def _rejection(resource_type: ResourceType, name: str, who: str, denial: Denial) -> ApiError:
    message = f"{who} denied request: {denial.message}"
    error = forbidden(resource_type.qualified, name, message)
    error.reason, error.code = denial.reason, _CODES.get(denial.reason, 422)
    error.details = {**(error.details or {}), "causes": [{"message": message}]}
    return error
