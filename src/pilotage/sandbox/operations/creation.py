"""Create: from what a client sent to a stored object with an identity of its own.

The steps are those of the API server, in its order: types, names and namespace, the server's part of metadata, initial
status, defaults, admission, validation, admission policies, storage. Until the last step nothing has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pilotage.model import queue_admission
from pilotage.sandbox.errors import ApiError, FieldError, already_exists, forbidden, invalid, not_found
from pilotage.sandbox.kinds.crds import CRD_RESOURCE, accept_definition, definition_errors
from pilotage.sandbox.kinds.resources import ResourceRegistry, ResourceType
from pilotage.sandbox.kinds.shapes import check_metadata_shape, check_shape
from pilotage.sandbox.kinds.structural_schema import apply_schema_defaults
from pilotage.sandbox.operations.backend import Backend, Object, unsaved_record
from pilotage.sandbox.operations.field_management import (
    Author,
    fields_of_author,
    manage_alike,
    manage_new,
    metadata_shape,
)
from pilotage.sandbox.operations.known_specs import REMEMBERED, KnownObject, KnownSpecs, SentSpec
from pilotage.sandbox.operations.lookup import CachedLookup
from pilotage.sandbox.operations.policies import (
    BINDINGS,
    MUTATING_BINDINGS,
    MUTATING_POLICIES,
    MUTATING_WEBHOOKS,
    POLICIES,
    VALIDATING_WEBHOOKS,
    Policies,
)
from pilotage.sandbox.operations.quotas import Quotas
from pilotage.sandbox.operations.terminating import Terminating
from pilotage.sandbox.rules.admission import admit_create, admit_valid
from pilotage.sandbox.rules.admission_policies import binding_errors, policy_errors
from pilotage.sandbox.rules.defaults import apply_defaults
from pilotage.sandbox.rules.limit_ranger import LIMIT_RANGES
from pilotage.sandbox.rules.mutating_policies import mutating_binding_errors, mutating_policy_errors
from pilotage.sandbox.rules.nulls import drop_empty_metadata, drop_nulls
from pilotage.sandbox.rules.object_meta import check_type, choose_name, metadata_of, place_in_namespace, stamp_new
from pilotage.sandbox.rules.pod_defaults import merge_label_keys
from pilotage.sandbox.rules.resource_quota import QUOTAS
from pilotage.sandbox.rules.token_mounts import mount_token
from pilotage.sandbox.rules.validation import validate_create, validate_metadata, validate_name
from pilotage.sandbox.rules.webhooks import webhook_configuration_errors
from pilotage.sandbox.storage.records import Key, Record

_NAME_ATTEMPTS: Final = 8
_ADMITTED_LAST: Final = frozenset({"pods", "persistentvolumeclaims"})
_KEPT_STATUS: Final = frozenset({"nodes", "services"})
"""A kubelet registers its node complete with capacity and conditions."""

# Fields that clients take for granted from the first read on.
_ZEROS: Final[Mapping[str, Mapping[str, int]]] = {
    "replicasets.apps": {"replicas": 0},
    "replicationcontrollers": {"replicas": 0},
    "statefulsets.apps": {"replicas": 0, "availableReplicas": 0},
    "daemonsets.apps": dict.fromkeys(
        ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"), 0
    ),
    "poddisruptionbudgets.policy": dict.fromkeys(
        ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"), 0
    ),
    "deployments.apps": {},
    "jobs.batch": {},
    "cronjobs.batch": {},
    "resourceclaims.resource.k8s.io": {},
    "podgroups.scheduling.k8s.io": {},
}


_SIGNING_REQUESTS: Final = "certificatesigningrequests.certificates.k8s.io"

_RULES_OF_POLICIES: Final[Mapping[str, Callable[[Object], list[FieldError]]]] = {
    POLICIES: policy_errors,
    BINDINGS: binding_errors,
    MUTATING_POLICIES: mutating_policy_errors,
    MUTATING_BINDINGS: mutating_binding_errors,
    MUTATING_WEBHOOKS: webhook_configuration_errors,
    VALIDATING_WEBHOOKS: webhook_configuration_errors,
}


class Creation:
    """The create verb of one sandbox."""

    def __init__(self, backend: Backend, terminating: Terminating, policies: Policies) -> None:
        self._backend = backend
        self._terminating = terminating
        self._policies = policies
        self._lookup = CachedLookup(backend.store)
        self._quotas = Quotas(backend, self._lookup)
        self._known_specs = KnownSpecs(backend.store)

    def create(
        self, resource_type: ResourceType, namespace: str, obj: Object, author: Author, *, dry_run: bool = False
    ) -> Record:
        """Store `obj` (which is taken over and altered); ApiError when it is rejected."""
        self._queue(obj)
        sent = self._read(resource_type, namespace, obj, author)
        known = None if sent is None else self._known_specs.complete(sent, obj)
        if known is None:
            check_shape(resource_type, obj)
        elif not known.is_whole:
            check_metadata_shape(resource_type, obj)
        key = self._identify(resource_type, namespace, obj)
        if sent is None or known is None:
            shape = metadata_shape(obj["metadata"])
            self._complete(resource_type, obj, author, dry_run=dry_run)
            if sent is not None:
                self._known_specs.remember(sent, obj)
                if sent.is_managed:
                    self._known_specs.remember_owned(sent, shape, fields_of_author(obj))
        else:
            self._complete_known(resource_type, obj, sent, known)
            if known.owned is not None:
                manage_alike(obj, author, self._backend.now(), known.owned)
        return self._store(resource_type, key, obj, dry_run=dry_run)

    def create_converted(
        self, resource_type: ResourceType, namespace: str, obj: Object, author: Author, *, dry_run: bool = False
    ) -> Record:
        """The same for an object whose shape was checked in the version in which it came."""
        self._queue(obj)
        key = self._identify(resource_type, namespace, obj)
        self._complete(resource_type, obj, author, dry_run=dry_run)
        return self._store(resource_type, key, obj, dry_run=dry_run)

    def _read(self, resource_type: ResourceType, namespace: str, obj: Object, author: Author) -> SentSpec | None:
        """What is asked for, if nothing but the object itself has a say in what becomes of it."""
        if resource_type.storage not in REMEMBERED or self._policies.mutates(resource_type, "CREATE"):
            return None
        if self._lookup.list(LIMIT_RANGES, namespace) or self._lookup.list(QUOTAS, namespace):
            return None
        is_managed = bool(author.name) and not author.has_managers
        # What an account wants its pods to have depends on the namespace.
        scope = namespace if self._backend.mounts_tokens else ""
        return self._known_specs.read((resource_type.storage, scope), obj, is_managed=is_managed)

    def _queue(self, obj: Object) -> None:
        if self._backend.queued:
            if why := queue_admission.refusal(obj):
                raise ApiError(403, "Forbidden", f"admission of queued jobs denied the request: {why}")
            queue_admission.admit(obj, self._backend.queued)

    def _identify(self, resource_type: ResourceType, namespace: str, obj: Object) -> Key:
        check_type(resource_type, obj)
        metadata = metadata_of(resource_type, obj)
        place_in_namespace(resource_type, metadata, namespace)
        key = self._free_key(resource_type, metadata)
        self._check_may_grow(resource_type, key)
        stamp_new(resource_type, metadata, self._backend.rng, self._backend.now())
        return key

    def _store(self, resource_type: ResourceType, key: Key, obj: Object, *, dry_run: bool) -> Record:
        self._policies.judge(resource_type, "CREATE", obj, dry_run=dry_run)
        self._quotas.charge(key, obj, dry_run=dry_run)
        return unsaved_record(key, obj, 0) if dry_run else self._backend.store.create(key, obj)

    def _free_key(self, resource_type: ResourceType, metadata: Object) -> Key:
        scope = metadata.get("namespace", "")
        is_generated = not metadata.get("name")
        for _ in range(_NAME_ATTEMPTS if is_generated else 1):
            if is_generated:
                metadata.pop("name", None)
            name = choose_name(resource_type, metadata, self._backend.rng)
            key = Key(resource_type.storage, scope, name)
            if self._backend.store.get(key) is None:
                return key
        raise already_exists(resource_type.qualified, name)

    def _check_may_grow(self, resource_type: ResourceType, key: Key) -> None:
        """A namespace must exist and live; a definition must not be on its way out."""
        if resource_type.namespaced:
            namespace = Key("namespaces", "", key.namespace)
            if self._backend.store.get(namespace) is None:
                raise not_found("namespaces", key.namespace)
            if self._terminating.is_draining(namespace):
                raise _namespace_terminating(resource_type, key)
        if resource_type.is_custom and self._terminating.is_draining(Key(CRD_RESOURCE, "", resource_type.storage)):
            message = "create not allowed while custom resource definition is terminating"
            raise ApiError(405, "MethodNotAllowed", message)

    def _complete(self, resource_type: ResourceType, obj: Object, author: Author, *, dry_run: bool) -> None:
        _drop_sent_status(resource_type, obj, self._policies.user)
        if resource_type.schema:
            apply_schema_defaults(resource_type.schema, obj)
        apply_defaults(resource_type.kind, obj)
        manage_new(resource_type, obj, author, self._backend.now())
        _begin_status(resource_type, obj, self._backend.now())
        admit_create(resource_type.kind, obj, self._lookup)
        if self._backend.mounts_tokens and resource_type.storage == "pods":
            mount_token(obj, self._lookup, self._backend.rng)
        self._mutate(resource_type, obj, dry_run=dry_run)
        errors = validate_create(resource_type.kind, obj) or own_errors(self._backend.registry, resource_type, obj)
        if errors:
            raise invalid(resource_type.kind, resource_type.group, obj["metadata"]["name"], errors)
        if resource_type.storage in _ADMITTED_LAST:
            admit_valid(resource_type.kind, obj, self._lookup)
        if resource_type.storage == "pods":
            merge_label_keys(obj)

    def _complete_known(self, resource_type: ResourceType, obj: Object, sent: SentSpec, known: KnownObject) -> None:
        """The same for an object of which the rest, at least, is complete and accepted already."""
        if known.is_whole:
            errors = validate_name(resource_type.kind, obj)
        else:
            drop_nulls(obj["metadata"])
            drop_empty_metadata(obj["metadata"])
            errors = validate_metadata(resource_type.kind, obj)
        if errors:
            raise invalid(resource_type.kind, resource_type.group, obj["metadata"]["name"], errors)
        if not known.is_whole:
            self._known_specs.remember_metadata(sent, obj, known)

    def _mutate(self, resource_type: ResourceType, obj: Object, *, dry_run: bool) -> None:
        """What MutatingAdmissionPolicies change."""
        mutated = self._policies.mutated(resource_type, "CREATE", obj, dry_run=dry_run)
        if mutated is not obj:
            obj.clear()
            obj.update(mutated)
            check_shape(resource_type, obj)
            apply_defaults(resource_type.kind, obj)


def own_errors(
    registry: ResourceRegistry, resource_type: ResourceType, new: Object, old: Object | None = None
) -> list[FieldError]:
    """What is wrong by rules that no other kind has: of definitions and policies, and of what a definition defines."""
    if resource_type.storage == CRD_RESOURCE:
        return definition_errors(new, registry)
    rules = _RULES_OF_POLICIES.get(resource_type.storage)
    if rules is not None:
        return rules(new)
    return [] if resource_type.rules is None else resource_type.rules.errors(new, old)


def _namespace_terminating(resource_type: ResourceType, key: Key) -> ApiError:
    problem = f"unable to create new content in namespace {key.namespace} because it is being terminated"
    error = forbidden(resource_type.qualified, key.name, problem)
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {key.namespace} is being terminated",
        "field": "metadata.namespace",
    }
    error.details = {**(error.details or {}), "causes": [cause]}
    return error


def _drop_sent_status(resource_type: ResourceType, obj: Object, user: Mapping[str, Any]) -> None:
    """Before defaulting: forget what a client may not decide, such as a status that has a subresource."""
    if resource_type.has_status and resource_type.storage not in _KEPT_STATUS:
        obj.pop("status", None)
    if resource_type.storage == "namespaces":
        # The server's own hold: released when the namespace is empty.
        obj["spec"] = {"finalizers": ["kubernetes"]}
    if resource_type.storage == _SIGNING_REQUESTS and type(obj.get("spec")) is dict:
        # Who asks is for the server to say.
        obj["spec"] |= user


def _begin_status(resource_type: ResourceType, obj: Object, now: str) -> None:
    """After defaulting: what the server's own controllers would write at once."""
    zeros = _ZEROS.get(resource_type.storage)
    if zeros is not None:
        obj["status"] = dict(zeros)
    elif resource_type.storage == CRD_RESOURCE:
        accept_definition(obj, now)
