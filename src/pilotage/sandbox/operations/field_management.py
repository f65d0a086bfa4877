"""Who has written what: keeps `metadata.managedFields` when objects are created, changed and applied.

Followed is every object that a client has created, or that was applied. What parts of this process create (controllers,
seeded nodes) has no managers until it is applied for the first time, as objects from before server-side apply have in a
cluster: what was there then belongs to `before-first-apply`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from pilotage.sandbox.errors import ApiError, FieldError, bad_request, invalid
from pilotage.sandbox.kinds.merge_types import empty_object, merge_type, scale_type
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.kinds.strict_fields import unknown_fields
from pilotage.sandbox.kinds.structural_schema import null_errors
from pilotage.sandbox.rules.managed_fields.field_sets import KeyMissing, Path
from pilotage.sandbox.rules.managed_fields.managers import (
    APPLY,
    BEFORE_FIRST_APPLY,
    SCALE_VERSION,
    UPDATE,
    Application,
    Manager,
    Managers,
    applied,
    change_between,
    managers_after_scale,
    managers_of_scale,
    read_managers,
    updated,
    write_managers,
)

Object = dict[str, Any]

_PLAIN_METADATA: Final = frozenset(
    {
        *("name", "namespace", "generateName", "uid", "creationTimestamp", "generation"),
        *("labels", "annotations", "finalizers", "ownerReferences"),
    }
)
_OURSELVES: Final = "pilotage"
_MOST_CHARACTERS: Final = 128
_STATUS: Final[tuple[Path, ...]] = (("f:status",),)
_OF_STATUS: Final[tuple[Path, ...]] = (("f:spec",),)
# Besides the spec, what the status endpoint of a kind leaves alone.
_KEPT_BY_STATUS: Final[dict[str, tuple[Path, ...]]] = {
    "pods": (("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences")),
    "deployments.apps": (("f:metadata", "f:labels"),),
    **dict.fromkeys(
        (
            "podgroups.scheduling.k8s.io",
            "resourceclaims.resource.k8s.io",
            "devicetaintrules.resource.k8s.io",
            "volumeattachments.storage.k8s.io",
            "validatingadmissionpolicies.admissionregistration.k8s.io",
        ),
        (("f:metadata",),),
    ),
}


class Author(NamedTuple):
    """Who writes, in which version of the kind. No name: a part of this process."""

    name: str = ""
    api_version: str = ""
    has_managers: bool = False
    """`managedFields` is right already: the object was applied."""


SYSTEM: Final = Author()


@lru_cache(maxsize=512)
def author_of(name: str, user_agent: str, api_version: str) -> Author:
    """The author of a request: what it says of itself, or else the program's name."""
    if not name and not user_agent:
        return SYSTEM
    return Author(name or _program(user_agent), api_version)


def check_manager(kind: str, name: str, *, is_needed: bool) -> None:
    """ApiError 422 for a name that cannot be one."""
    error = None
    if not name and is_needed:
        error = FieldError("fieldManager", "is required for apply patch", type="FieldValueRequired")
    elif len(name.encode()) > _MOST_CHARACTERS:
        error = FieldError("fieldManager", f"may not be more than {_MOST_CHARACTERS} bytes", type="FieldValueTooLong")
    elif not name.isprintable():
        error = FieldError("fieldManager", "should only contain printable characters", name)
    if error is not None:
        raise invalid(kind, "meta.k8s.io", "", [error])


def _program(user_agent: str) -> str:
    name = user_agent.partition("/")[0]
    return "".join(one for one in name if one.isprintable())[:_MOST_CHARACTERS] or "unknown"


def manage_new(resource_type: ResourceType, obj: Object, author: Author, now: str) -> None:
    """Note who creates the object; it has its defaults, and nothing yet that admission adds."""
    if not author.name or author.has_managers:
        return
    metadata = obj["metadata"]
    written = {field: value for field, value in obj.items() if field != "status" or not resource_type.has_status}
    by = Manager(author.name, UPDATE, author.api_version, "")
    try:
        before = _sent_managers(metadata)
        change = change_between(merge_type(resource_type), empty_object(resource_type), written)
        managers = updated(change, by, now, before or {})
    except KeyMissing:
        managers = {}
    metadata.pop("managedFields", None)
    if managers:
        metadata["managedFields"] = write_managers(managers)


MetadataShape = tuple[tuple[str, ...], ...]


def metadata_shape(metadata: Object) -> MetadataShape | None:
    """What of its metadata an author owns, in short; None where that takes a closer look."""
    if not metadata.keys() <= _PLAIN_METADATA:
        return None
    owners = metadata.get("ownerReferences") or ()
    return (
        tuple(metadata.get("labels") or ()),
        tuple(metadata.get("annotations") or ()),
        tuple(metadata.get("finalizers") or ()),
        tuple([owner.get("uid", "") for owner in owners]),
        ("generateName",) if "generateName" in metadata else (),
    )


def fields_of_author(obj: Object) -> msgspec.Raw | None:
    """What the author of a new object owns, to be used again for one that is alike."""
    entries = obj["metadata"].get("managedFields") or []
    if len(entries) != 1 or entries[0]["operation"] != UPDATE:
        return None
    return msgspec.Raw(msgspec.json.encode(entries[0]["fieldsV1"]))


def manage_alike(obj: Object, author: Author, now: str, fields: msgspec.Raw) -> None:
    """Note who creates the object, of which it is known what the author owns."""
    entry: Object = {"manager": author.name, "operation": UPDATE, "apiVersion": author.api_version, "time": now}
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = fields
    obj["metadata"]["managedFields"] = [entry]


def manage_change(
    resource_type: ResourceType, old: Object, new: Object, author: Author, subresource: str, now: str
) -> None:
    """Note who makes `new` of `old`; it has its defaults, and nothing yet that admission adds."""
    if author.has_managers:
        return
    before, metadata = old["metadata"].get("managedFields"), new["metadata"]
    sent = metadata.pop("managedFields", None)
    if not before and not sent:
        return
    api_version = author.api_version or resource_type.api_version
    by = Manager(author.name or _OURSELVES, UPDATE, api_version, subresource)
    try:
        change = change_between(merge_type(resource_type), old, new)
        if sent is None or sent == before or subresource:
            managers = read_managers({"managedFields": before}, change, by)
        else:
            managers = _managers_before(before, sent)
        if managers:
            managers = updated(change, by, now, managers)
    except (KeyMissing, ValueError):
        return
    if managers:
        metadata["managedFields"] = write_managers(managers)


def _managers_before(stored: Any, sent: Any) -> Managers:
    """Those that the client has sent, if it has sent any; none when it asks for that by an empty list."""
    if sent in ([], [{}]):
        return {}
    return _sent_managers({"managedFields": sent}) or read_managers({"managedFields": stored})


def replicas_path(resource_type: ResourceType) -> Path:
    """Where an object of the kind has its number of replicas."""
    text = (resource_type.scale_paths or {}).get("specReplicasPath") or ".spec.replicas"
    return tuple(f"f:{field}" for field in text.strip(".").split("."))


def _sent_managers(metadata: Object) -> Managers:
    try:
        return read_managers(metadata)
    except ValueError:
        return {}


class ApplyRequest(NamedTuple):
    """A configuration as it came, who applies it, and where."""

    config: Object
    author: Author
    subresource: str
    force: bool


def apply_config(resource_type: ResourceType, live: Object | None, request: ApplyRequest, now: str) -> Object:
    """The object that a configuration makes of `live` (None: there is none), with its managers."""
    config, subresource = request.config, request.subresource
    _check_config(resource_type, config)
    kind = merge_type(resource_type)
    managers: Managers = {}
    if live is not None:
        managers = _sent_managers(live["metadata"])
        if not managers:
            first = Manager(BEFORE_FIRST_APPLY, UPDATE, resource_type.api_version, subresource)
            managers = updated(change_between(kind, empty_object(resource_type), live), first, now, {})
    by = Manager(request.author.name, APPLY, "", subresource)
    what = Application(config, by, _ignored(resource_type, subresource), request.force, now)
    try:
        done = applied(kind, live or {}, managers, what)
    except KeyMissing as error:
        raise _untyped(resource_type, config, str(error)) from None
    obj = done.obj
    errors = list(null_errors(resource_type.schema, obj)) if resource_type.schema else []
    if errors:
        raise invalid(resource_type.kind, resource_type.group, config["metadata"]["name"], errors)
    obj["metadata"] = {**obj["metadata"], "managedFields": write_managers(done.managers)}
    return obj


def manage_scale(
    resource_type: ResourceType, obj: Object, scales: tuple[Object, Object], author: Author, now: str
) -> list[Object] | None:
    """The managers of an object whose Scale is changed; `scales` are the one before and the one after."""
    managers = _sent_managers(obj["metadata"])
    replicas = replicas_path(resource_type)
    seen = managers_of_scale(managers, replicas)
    by = Manager(author.name or _OURSELVES, UPDATE, SCALE_VERSION, "scale")
    if seen:
        seen = updated(change_between(scale_type(), *map(_without_zero, scales)), by, now, seen)
    managers = managers_after_scale(managers, seen, replicas, author.api_version or resource_type.api_version)
    return write_managers(managers) or None


def apply_scale(
    resource_type: ResourceType, obj: Object, scale: Object, request: ApplyRequest, now: str
) -> tuple[Object, list[Object]]:
    """The Scale that an applied one makes of `scale`, and the managers of the object then."""
    config, scale = request.config, _without_zero(scale)
    if (config.get("apiVersion"), config.get("kind")) != (SCALE_VERSION, "Scale"):
        raise bad_request(f"invalid object type: {config.get('apiVersion')}, Kind={config.get('kind')}")
    managers = _sent_managers(obj["metadata"])
    replicas = replicas_path(resource_type)
    seen = managers_of_scale(managers, replicas)
    if not seen:
        first = Manager(BEFORE_FIRST_APPLY, UPDATE, SCALE_VERSION, "scale")
        nothing: Object = {"metadata": {}, "spec": {}, "status": {}}
        seen = updated(change_between(scale_type(), nothing, scale), first, now, {})
    by = Manager(request.author.name, APPLY, "", "scale")
    done = applied(scale_type(), scale, seen, Application(config, by, _STATUS, request.force, now))
    after = managers_after_scale(managers, done.managers, replicas, resource_type.api_version)
    return done.obj, write_managers(after)


def _without_zero(scale: Object) -> Object:
    """No replicas are none said: Go leaves a zero out here."""
    return scale if scale["spec"].get("replicas") else {**scale, "spec": {}}


def _ignored(resource_type: ResourceType, subresource: str) -> tuple[Path, ...]:
    """What the endpoint does not write, and its appliers do not own."""
    if subresource == "status":
        return _OF_STATUS + _KEPT_BY_STATUS.get(resource_type.storage, ())
    return _STATUS if resource_type.has_status else ()


def _check_config(resource_type: ResourceType, config: Object) -> None:
    if (config.get("apiVersion"), config.get("kind")) != (resource_type.api_version, resource_type.kind):
        group, _, version = str(config.get("apiVersion") or "").rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={config.get('kind') or ''}")
    metadata = config.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    unknown = unknown_fields(resource_type, config)
    if unknown:
        problems = [f".{path}: field not declared in schema" for path in unknown]
        text = problems[0] if len(problems) == 1 else "errors:\n  " + "\n  ".join(problems)
        raise _untyped(resource_type, config, text)


def _untyped(resource_type: ResourceType, config: Object, problem: str) -> ApiError:
    metadata = config.get("metadata") or {}
    kind = f"{resource_type.api_version}, Kind={resource_type.kind}"
    if not resource_type.group:
        kind = f"/{kind}"
    who = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}; {kind}"
    return ApiError(500, "", f"failed to create typed patch object ({who}): {problem}")
