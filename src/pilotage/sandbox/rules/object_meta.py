"""The part of `metadata` that belongs to the server: names, identity, times and generation.

A client proposes an object; what it may not decide (uid, creation and deletion times, generation, resource version) is
set here on creation and carried over unchanged on every later write.
"""

from __future__ import annotations

import random
from typing import Any, Final

from pilotage.rng import random_suffix, random_uid
from pilotage.sandbox.errors import FieldError, bad_request, invalid
from pilotage.sandbox.kinds.resources import ResourceType

_SUFFIX_LENGTH: Final = 5
_LONGEST_GENERATED: Final = 63
_NOT_FROM_CLIENTS: Final = frozenset(
    {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation", "resourceVersion"}
)
_SERVER_FIELDS: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


def metadata_of(resource_type: ResourceType, obj: dict[str, Any]) -> dict[str, Any]:
    """The metadata of an object whose shape was checked, made if missing."""
    metadata: dict[str, Any] | None = obj.get("metadata")
    if metadata is None:
        metadata = obj["metadata"] = {}
    return metadata


def check_type(resource_type: ResourceType, obj: dict[str, Any]) -> None:
    """Set apiVersion and kind where the client left them out; ApiError 400 when they name something else."""
    kind = obj.setdefault("kind", resource_type.kind)
    api_version = obj.setdefault("apiVersion", resource_type.api_version)
    if kind != resource_type.kind:
        raise bad_request(
            f'{kind} in version "{resource_type.version}" cannot be handled as a {resource_type.kind}: '
            f"no kind {json_text(kind)} is served at {resource_type.qualified}"
        )
    if api_version != resource_type.api_version:
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({resource_type.api_version})"
        )


def place_in_namespace(resource_type: ResourceType, metadata: dict[str, Any], namespace: str) -> None:
    """Make the object's namespace that of the request; ApiError 400 when it names another one."""
    if not resource_type.namespaced:
        metadata.pop("namespace", None)
        return
    own = metadata.get("namespace")
    if own and own != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = namespace


def choose_name(resource_type: ResourceType, metadata: dict[str, Any], rng: random.Random) -> str:
    """The object's own name, or a generated one; ApiError 422 when it asks for neither."""
    name = metadata.get("name")
    if name:
        return str(name)
    prefix = metadata.get("generateName")
    if not prefix:
        error = FieldError("metadata.name", "name or generateName is required", type="FieldValueRequired")
        raise invalid(resource_type.kind, resource_type.group, "", [error])
    generated: str = prefix[: _LONGEST_GENERATED - _SUFFIX_LENGTH] + random_suffix(rng, _SUFFIX_LENGTH)
    metadata["name"] = generated
    return generated


def stamp_new(resource_type: ResourceType, metadata: dict[str, Any], rng: random.Random, now: str) -> None:
    """Give a new object its identity."""
    if metadata.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    if not _NOT_FROM_CLIENTS.isdisjoint(metadata):
        for field in _NOT_FROM_CLIENTS:
            metadata.pop(field, None)
    metadata["uid"] = random_uid(rng)
    metadata["creationTimestamp"] = now
    if resource_type.tracks_generation:
        metadata["generation"] = 1


def carry_over(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Put back what a client's update may not change, whatever it sent."""
    for field in _SERVER_FIELDS:
        if field in old:
            new[field] = old[field]
        else:
            new.pop(field, None)
    for field in ("name", "namespace", "resourceVersion"):
        if field in old:
            new[field] = old[field]
    new.pop("selfLink", None)


def json_text(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
