"""Update: what of a proposed object replaces the stored one, and what stays the server's.

A write to the object itself leaves `status` alone, a write to the status subresource leaves everything else alone, and
both keep the server's part of metadata. A write that changes nothing is no write: no revision, no watch event.
Taking the last finalizer off an object that is marked for deletion removes it.
"""

from __future__ import annotations

from typing import Any, Final

from pilotage.sandbox.errors import FieldError, bad_request, conflict, invalid, modified
from pilotage.sandbox.kinds.crds import CRD_RESOURCE, accept_definition, definition_errors
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.kinds.shapes import check_metadata_shape, check_shape
from pilotage.sandbox.kinds.structural_schema import apply_schema_defaults, custom_errors
from pilotage.sandbox.operations.backend import Backend, Object, unsaved_record
from pilotage.sandbox.operations.deletion import Deletion, is_held
from pilotage.sandbox.operations.lookup import CachedLookup
from pilotage.sandbox.operations.policies import BINDINGS, POLICIES, Policies
from pilotage.sandbox.rules.admission import admit_update, admit_valid
from pilotage.sandbox.rules.admission_policies import binding_errors, policy_errors
from pilotage.sandbox.rules.defaults import apply_defaults
from pilotage.sandbox.rules.nulls import drop_nulls
from pilotage.sandbox.rules.object_meta import carry_over, check_type, metadata_of, place_in_namespace
from pilotage.sandbox.rules.validation import (
    validate_create,
    validate_metadata_update,
    validate_update,
)
from pilotage.sandbox.storage.records import Record

# Their metadata is completed from the rest or the other way round, or their spec decides whether they may go.
_WHOLE: Final = frozenset({"namespaces", "replicationcontrollers", CRD_RESOURCE})
# What may change how much an object asks for; of a pod nothing but a resize.
_ASKING: Final = frozenset({("pods", "resize"), ("persistentvolumeclaims", "")})


class Updates:
    """The update verb of one sandbox."""

    def __init__(self, backend: Backend, deletion: Deletion, policies: Policies) -> None:
        self._backend = backend
        self._policies = policies
        self._deletion = deletion
        self._lookup = CachedLookup(backend.store)

    def update(
        self,
        resource_type: ResourceType,
        record: Record,
        old: Object,
        new: Object,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Record:
        """Replace the record's object `old` by what `new` may change of it; both are taken over and may be altered.

        A write to the status reads no spec: of a kind that has a separate one, `old` may be an outline.
        """
        check_shape(resource_type, new)
        _identify(resource_type, record, old, new)
        new = self._merged(resource_type, old, new, subresource)
        is_asking = (resource_type.storage, subresource) in _ASKING
        if is_asking and not new["metadata"].get("deletionTimestamp"):
            admit_valid(resource_type.kind, new, self._lookup)
        self._policies.judge(resource_type, "UPDATE", new, old, subresource=subresource, dry_run=dry_run)
        return self.store(resource_type, record, old, new, dry_run=dry_run)

    def update_metadata(
        self, resource_type: ResourceType, record: Record, old: Object, new: Object, *, dry_run: bool = False
    ) -> Record:
        """Replace only the metadata of `old`, an outline of an object of a kind with a separate spec.

        What was accepted once stays acceptable, so that nothing but the metadata is judged.
        """
        check_metadata_shape(resource_type, new)
        _identify(resource_type, record, old, new)
        drop_nulls(new["metadata"])
        errors = validate_metadata_update(resource_type.kind, old, new)
        if errors:
            raise invalid(resource_type.kind, resource_type.group, record.key.name, errors)
        new = {**old, "metadata": new["metadata"]}
        self._policies.judge(resource_type, "UPDATE", new, old, dry_run=dry_run)
        return self.store(resource_type, record, old, new, dry_run=dry_run)

    def store(
        self, resource_type: ResourceType, record: Record, old: Object, new: Object, *, dry_run: bool = False
    ) -> Record:
        """Write the next state of an object, or remove it if it only waited for this."""
        if new == old:
            return record
        if dry_run:
            return unsaved_record(record.key, new, record.revision)
        if new["metadata"].get("deletionTimestamp") and not is_held(resource_type, new):
            return self._deletion.remove(record.key, new)
        return self._backend.store.update(record.key, new)

    def _merged(self, resource_type: ResourceType, old: Object, new: Object, subresource: str) -> Object:
        match subresource:
            case "":
                return self._main(resource_type, old, new)
            case "status":
                return _with_status(resource_type, old, new)
            case "finalize":
                return {**old, "spec": new.get("spec") or {}}
            case "resize":
                return _resized(resource_type, old, new)
            case "ephemeralcontainers":
                containers = (new.get("spec") or {}).get("ephemeralContainers") or []
                return _bumped(resource_type, {**old, "spec": {**old["spec"], "ephemeralContainers": containers}})
            case _:
                raise bad_request(f"{resource_type.qualified}/{subresource} cannot be updated")

    def _main(self, resource_type: ResourceType, old: Object, new: Object) -> Object:
        if resource_type.has_status:
            _put(new, "status", old.get("status"))
        if resource_type.storage == "namespaces":
            _put(new, "spec", old.get("spec"))
        if resource_type.schema:
            apply_schema_defaults(resource_type.schema, new)
        apply_defaults(resource_type.kind, new)
        admit_update(resource_type.kind, old, new)
        errors = validate_update(resource_type.kind, old, new) or self._own_rules(resource_type, old, new)
        if errors:
            raise invalid(resource_type.kind, resource_type.group, new["metadata"]["name"], errors)
        if resource_type.storage == CRD_RESOURCE:
            _keep_acceptance(old, new, self._backend.now())
        if resource_type.tracks_generation and _spec_of(resource_type, old) != _spec_of(resource_type, new):
            _bumped(resource_type, new)
        return new

    def _own_rules(self, resource_type: ResourceType, old: Object, new: Object) -> list[FieldError]:
        if resource_type.storage == CRD_RESOURCE:
            return definition_errors(new, self._backend.registry)
        if resource_type.storage == POLICIES:
            return policy_errors(new)
        if resource_type.storage == BINDINGS:
            return binding_errors(new)
        if resource_type.schema:
            return custom_errors(resource_type.schema, resource_type.rules, new, old)
        return []


def has_separate_spec(resource_type: ResourceType) -> bool:
    """Whether metadata and status of its objects can be written without a look at their spec."""
    is_whole = resource_type.is_custom or resource_type.storage in _WHOLE
    return not is_whole and resource_type.is_stored_as_served


def _identify(resource_type: ResourceType, record: Record, old: Object, new: Object) -> None:
    """See to it that `new` is the object that it claims to be, with the server's part of its metadata."""
    check_type(resource_type, new)
    metadata = metadata_of(resource_type, new)
    _check_identity(resource_type, record, metadata)
    place_in_namespace(resource_type, metadata, record.key.namespace)
    carry_over(old["metadata"], metadata)


def _check_identity(resource_type: ResourceType, record: Record, metadata: Object) -> None:
    name = metadata.setdefault("name", record.key.name)
    if name != record.key.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({record.key.name})")
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    if uid and uid != record.uid:
        problem = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {record.uid}"
        raise conflict(resource_type.qualified, name, problem)
    if not version and resource_type.is_custom:
        error = FieldError("metadata.resourceVersion", "must be specified for an update", 0)
        raise invalid(resource_type.kind, resource_type.group, name, [error])
    if version and version != str(record.revision):
        raise modified(resource_type.qualified, name)


def _with_status(resource_type: ResourceType, old: Object, new: Object) -> Object:
    merged = dict(old)
    _put(merged, "status", new.get("status"))
    if resource_type.is_custom:
        _check_status(resource_type, old, merged)
        return merged
    metadata = new["metadata"]
    _put(metadata, "ownerReferences", old["metadata"].get("ownerReferences"))
    merged["metadata"] = metadata
    return merged


def _check_status(resource_type: ResourceType, old: Object, new: Object) -> None:
    schema = resource_type.schema
    errors = custom_errors(schema, resource_type.rules, new, old) if schema else []
    if errors:
        raise invalid(resource_type.kind, resource_type.group, new["metadata"]["name"], errors)


def _resized(resource_type: ResourceType, old: Object, new: Object) -> Object:
    """In-place resize: the resources of known containers change, nothing else."""
    wanted = {c.get("name"): c.get("resources") for c in (new.get("spec") or {}).get("containers") or ()}
    containers = [dict(container) for container in old["spec"]["containers"]]
    for container in containers:
        _put(container, "resources", wanted.get(container["name"], container.get("resources")))
    resized = {**old, "metadata": new["metadata"], "spec": {**old["spec"], "containers": containers}}
    errors = validate_create(resource_type.kind, resized)
    if errors:
        raise invalid(resource_type.kind, resource_type.group, old["metadata"]["name"], errors)
    return _bumped(resource_type, resized) if containers != old["spec"]["containers"] else resized


def _keep_acceptance(old: Object, new: Object, now: str) -> None:
    accept_definition(new, now)
    if old["metadata"].get("deletionTimestamp"):
        _put(new["metadata"], "finalizers", old["metadata"].get("finalizers"))
    before = old.get("status") or {}
    status = new["status"]
    status["conditions"] = before.get("conditions") or status["conditions"]
    status["storedVersions"] = [*dict.fromkeys((*(before.get("storedVersions") or ()), *status["storedVersions"]))]


def _bumped(resource_type: ResourceType, new: Object) -> Object:
    metadata = new["metadata"] = dict(new["metadata"])
    if resource_type.tracks_generation:
        metadata["generation"] = metadata.get("generation", 0) + 1
    return new


def _spec_of(resource_type: ResourceType, obj: Object) -> Object:
    """What counts for the generation: everything but metadata and a status with a subresource."""
    others = ("metadata", "status") if resource_type.has_status else ("metadata",)
    return {field: value for field, value in obj.items() if field not in others}


def _put(obj: Object, field: str, value: Any) -> None:
    if value is None:
        obj.pop(field, None)
    else:
        obj[field] = value
