"""Between the version in which an object is stored and the version in which a client asked for it.

Versions of a custom kind differ in `apiVersion` only, but those of Kueue's kinds in names of fields too. Core events
and events.k8s.io events are one object with two sets of field names. Everything else is stored as it is served and
passes through untouched, as bytes.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pilotage.sandbox.kinds.builtin_groups import KUEUE_GROUP
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.rules.kueue_conversion import to_newer, to_older
from pilotage.sandbox.storage.records import Record, decode_fields

Object = dict[str, Any]

_encode = msgspec.json.Encoder().encode

_EVENT_FIELDS: Final = (
    # (events.k8s.io, core)
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
)
_TO_CORE: Final = dict(_EVENT_FIELDS)
_FROM_CORE: Final = {core: modern for modern, core in _EVENT_FIELDS}


def to_storage(served: ResourceType, obj: Object) -> Object:
    """The object as it is to be stored."""
    if served.is_stored_as_served or obj.get("apiVersion", served.api_version) != served.api_version:
        return obj
    if served.storage == "events":
        obj = {_TO_CORE.get(field, field): value for field, value in obj.items()}
    elif served.group == KUEUE_GROUP:
        to_newer(served.kind, obj)
    obj["apiVersion"] = served.storage_api_version
    return obj


def from_storage(served: ResourceType, obj: Object) -> Object:
    """The stored object as the client wants it."""
    if served.is_stored_as_served:
        return obj
    if served.storage == "events":
        obj = {_FROM_CORE.get(field, field): value for field, value in obj.items()}
    elif served.group == KUEUE_GROUP:
        to_older(served.kind, obj)
    obj["apiVersion"] = served.api_version
    return obj


def served_body(served: ResourceType, record: Record) -> bytes:
    """The JSON of a record as the client wants it."""
    if served.is_stored_as_served:
        return record.body
    if served.group == KUEUE_GROUP:
        return _encode(from_storage(served, record.object()))
    # Versions differ in the names of fields only: their values stay as they are written.
    return _encode(from_storage(served, decode_fields(record.body)))
