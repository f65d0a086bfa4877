"""Update: what of a proposed object replaces the stored one, and what stays the server's.

A write to the object itself leaves `status` alone, a write to the status subresource leaves everything else alone, and
both keep the server's part of metadata. A write that changes nothing is no write: no revision, no watch event.
Taking the last finalizer off an object that is marked for deletion removes it.
"""

from __future__ import annotations

from typing import Any, Final

from pilotage.model import queue_admission
from pilotage.sandbox.errors import FieldError, bad_request, conflict, invalid, modified
from pilotage.sandbox.kinds.crds import CRD_RESOURCE, accept_definition
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.kinds.shapes import check_metadata_shape, check_shape, has_shape
from pilotage.sandbox.kinds.structural_schema import apply_schema_defaults
from pilotage.sandbox.operations.backend import Backend, Object, unsaved_record
from pilotage.sandbox.operations.creation import own_errors
from pilotage.sandbox.operations.deletion import Deletion, is_held
from pilotage.sandbox.operations.field_management import Author, manage_change
from pilotage.sandbox.operations.lookup import CachedLookup
from pilotage.sandbox.operations.policies import Policies
from pilotage.sandbox.operations.quotas import Quotas
from pilotage.sandbox.rules.admission import admit_update, admit_valid
from pilotage.sandbox.rules.defaults import apply_defaults
from pilotage.sandbox.rules.nulls import drop_empties, drop_empty_metadata, drop_nulls
from pilotage.sandbox.rules.object_meta import carry_over, check_type, metadata_of, place_in_namespace
from pilotage.sandbox.rules.qos import qos_class
from pilotage.sandbox.rules.validation import (
    validate_metadata_update,
    validate_state,
    validate_status,
    validate_update,
)
from pilotage.sandbox.storage.records import Record

# Their metadata is completed from the rest or the other way round, or their spec decides whether they may go.
_WHOLE: Final = frozenset({"namespaces", "replicationcontrollers", CRD_RESOURCE})
# What may change how much an object asks for; of a pod nothing but a resize.
_ASKING: Final = frozenset({("pods", "resize"), ("persistentvolumeclaims", "")})
# What may use more of a quota than before.
_CHARGED: Final = frozenset({*_ASKING, ("services", "")})

# The version of an update that is to replace whatever is there.
_ANY_VERSION: Final = (None, "", "0")
# Besides custom kinds, those of which an update must say what it replaces.
_CONDITIONAL: Final = frozenset(
    {
        CRD_RESOURCE,
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "leases.coordination.k8s.io",
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "poddisruptionbudgets.policy",
        "runtimeclasses.node.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)


class Updates:
    """The update verb of one sandbox."""

    def __init__(self, backend: Backend, deletion: Deletion, policies: Policies) -> None:
        self._backend = backend
        self._policies = policies
        self._deletion = deletion
        self._lookup = CachedLookup(backend.store)
        self._quotas = Quotas(backend, self._lookup)

    def update(
        self,
        resource_type: ResourceType,
        record: Record,
        change: tuple[Object, Object],
        author: Author,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Record:
        """Replace the record's object by what a new one may change of it; both are taken over and may be altered.

        A write to the status reads no spec: of a kind that has a separate one, the old object may be an outline.
        """
        old, new = change
        check_shape(resource_type, new)
        _identify(resource_type, record, old, new)
        new = self._merged(resource_type, old, new, subresource, author, dry_run=dry_run)
        is_asking = (resource_type.storage, subresource) in _ASKING
        if is_asking and not new["metadata"].get("deletionTimestamp"):
            admit_valid(resource_type.kind, new, self._lookup)
        self._policies.judge(resource_type, "UPDATE", new, old, subresource=subresource, dry_run=dry_run)
        if (record.key.resource, subresource) in _CHARGED:
            self._quotas.charge(record.key, new, old, dry_run=dry_run)
        return self.store(resource_type, record, old, new, dry_run=dry_run)

    def update_metadata(
        self,
        resource_type: ResourceType,
        record: Record,
        change: tuple[Object, Object],
        author: Author,
        *,
        dry_run: bool = False,
    ) -> Record:
        """Replace only the metadata of the old object, which may be an outline: its kind has a separate spec.

        What was accepted once stays acceptable, so that nothing but the metadata is judged.
        """
        old, new = change
        check_metadata_shape(resource_type, new)
        _identify(resource_type, record, old, new)
        drop_nulls(new["metadata"])
        drop_empty_metadata(new["metadata"])
        errors = validate_metadata_update(resource_type.kind, old, new)
        if errors:
            raise invalid(resource_type.kind, resource_type.group, record.key.name, errors)
        new = {**old, "metadata": new["metadata"]}
        manage_change(resource_type, old, new, author, "", self._backend.now())
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

    def _merged(
        self, resource_type: ResourceType, old: Object, new: Object, subresource: str, author: Author, *, dry_run: bool
    ) -> Object:
        if not subresource:
            return self._main(resource_type, old, new, author, dry_run=dry_run)
        sent = new["metadata"].get("managedFields")
        new = self._below(resource_type, old, new, subresource)
        new["metadata"] = dict(new["metadata"])
        if author.name and not resource_type.is_custom:
            drop_nulls(new["metadata"])
            drop_empties(resource_type.api_version, resource_type.kind, new)
        if author.has_managers:
            _put(new["metadata"], "managedFields", sent)
        manage_change(resource_type, old, new, author, subresource, self._backend.now())
        return new

    def _below(self, resource_type: ResourceType, old: Object, new: Object, subresource: str) -> Object:
        """What a subresource makes of the object."""
        match subresource:
            case "approval":
                conditions = (new.get("status") or {}).get("conditions")
                status = {**(old.get("status") or {}), **({"conditions": conditions} if conditions else {})}
                return _with_status(resource_type, old, {**new, "status": status})
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

    def _main(self, resource_type: ResourceType, old: Object, new: Object, author: Author, *, dry_run: bool) -> Object:
        if resource_type.has_status:
            _put(new, "status", old.get("status"))
        if resource_type.storage == "namespaces":
            _put(new, "spec", old.get("spec"))
        if resource_type.schema:
            apply_schema_defaults(resource_type.schema, new)
        apply_defaults(resource_type.kind, new)
        manage_change(resource_type, old, new, author, "", self._backend.now())
        if self._backend.queued:
            queue_admission.admit(new, self._backend.queued, is_new=False)
        admit_update(resource_type.kind, old, new)
        mutated = self._policies.mutated(resource_type, "UPDATE", new, old, dry_run=dry_run)
        if mutated is not new:
            new = mutated
            check_shape(resource_type, new)
            apply_defaults(resource_type.kind, new)
        errors = validate_update(resource_type.kind, old, new)
        if errors and not has_shape(resource_type, old):
            # A stored object that should never have been let in: it must be possible to mend it.
            errors = validate_state(resource_type.kind, new)
        errors = errors or own_errors(self._backend.registry, resource_type, new, old)
        if errors:
            raise invalid(resource_type.kind, resource_type.group, new["metadata"]["name"], errors)
        if resource_type.storage == CRD_RESOURCE:
            _keep_acceptance(old, new, self._backend.now())
        if resource_type.tracks_generation and _spec_of(resource_type, old) != _spec_of(resource_type, new):
            _bumped(resource_type, new)
        return new


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
    if version in _ANY_VERSION and (resource_type.is_custom or resource_type.storage in _CONDITIONAL):
        error = FieldError("metadata.resourceVersion", "must be specified for an update", 0)
        raise invalid(resource_type.kind, resource_type.group, name, [error])
    if version not in _ANY_VERSION and version != str(record.revision):
        raise modified(resource_type.qualified, name)


def _with_status(resource_type: ResourceType, old: Object, new: Object) -> Object:
    merged = dict(old)
    _put(merged, "status", new.get("status", None if resource_type.is_custom else {}))
    if resource_type.is_custom:
        _check_status(resource_type, old, merged)
        return merged
    errors = validate_status(resource_type.kind, old, merged)
    if errors:
        raise invalid(resource_type.kind, resource_type.group, new["metadata"]["name"], errors)
    metadata = new["metadata"]
    _put(metadata, "ownerReferences", old["metadata"].get("ownerReferences"))
    merged["metadata"] = metadata
    return merged


def _check_status(resource_type: ResourceType, old: Object, new: Object) -> None:
    errors = [] if resource_type.rules is None else resource_type.rules.errors(new, old)
    if errors:
        raise invalid(resource_type.kind, resource_type.group, new["metadata"]["name"], errors)


def _resized(resource_type: ResourceType, old: Object, new: Object) -> Object:
    """In-place resize: the resources of known containers change, nothing else."""
    spec = dict(old["spec"])
    for field in ("containers", "initContainers"):
        if field in spec:
            wanted = {c.get("name"): c.get("resources") for c in (new.get("spec") or {}).get(field) or ()}
            spec[field] = [dict(container) for container in spec[field]]
            for container in spec[field]:
                _put(container, "resources", wanted.get(container["name"], container.get("resources")))
    resized = {**old, "metadata": new["metadata"], "spec": spec}
    apply_defaults(resource_type.kind, resized)
    before = qos_class(old["spec"])
    errors = validate_state(resource_type.kind, resized)
    if qos_class(spec) != before:
        errors = [*errors, FieldError("spec", "Pod QOS Class may not change as a result of resizing", before)]
    if errors:
        raise invalid(resource_type.kind, resource_type.group, old["metadata"]["name"], errors)
    return _bumped(resource_type, resized) if spec != old["spec"] else resized


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
