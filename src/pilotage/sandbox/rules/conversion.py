"""Between the version in which an object is stored and the version in which a client asked for it.

Versions of a custom kind differ in `apiVersion` only, but those of Kueue's kinds in names of fields too. Core events
and events.k8s.io events are one object with two sets of field names, and the older autoscalers have one field for what
are metrics now. Everything else is stored as it is served and passes through untouched, as bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pilotage.sandbox.kinds.builtin_groups import KUEUE_GROUP
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.kinds.structural_schema import apply_schema_defaults
from pilotage.sandbox.rules.json_fields import dict_or_empty
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
AUTOSCALERS: Final = "horizontalpodautoscalers.autoscaling"
_UTILIZATION: Final = "targetCPUUtilizationPercentage"
_TO_CORE: Final = dict(_EVENT_FIELDS)
_FROM_CORE: Final = {core: modern for modern, core in _EVENT_FIELDS}


def to_storage(served: ResourceType, obj: Object) -> Object:
    """The object as it is to be stored."""
    if served.is_stored_as_served or obj.get("apiVersion", served.api_version) != served.api_version:
        return obj
    if served.storage == "events":
        obj = _renamed(obj, _TO_CORE)
    elif served.group == KUEUE_GROUP:
        to_newer(served.kind, obj)
    elif served.storage == AUTOSCALERS:
        _utilization_to_metrics(obj)
    obj["apiVersion"] = served.storage_api_version
    return obj


def from_storage(served: ResourceType, obj: Object) -> Object:
    """The stored object as the client wants it."""
    if served.is_stored_as_served:
        return obj
    if served.storage == "events":
        obj = _renamed(obj, _FROM_CORE)
    elif served.group == KUEUE_GROUP:
        to_older(served.kind, obj)
    elif served.storage == AUTOSCALERS:
        _metrics_to_utilization(obj)
    obj["apiVersion"] = served.api_version
    return obj


def _utilization_to_metrics(scaler: Object) -> None:
    spec = dict_or_empty(scaler.get("spec"))
    target = spec.pop(_UTILIZATION, None)
    if target is not None:
        wanted = {"type": "Utilization", "averageUtilization": target}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": wanted}}]


def _metrics_to_utilization(scaler: Object) -> None:
    """What version 1 has no fields for is left out."""
    spec = dict_or_empty(scaler.get("spec"))
    spec.pop("behavior", None)
    for metric in spec.pop("metrics", None) or ():
        resource = dict_or_empty(metric.get("resource"))
        target = dict_or_empty(resource.get("target")).get("averageUtilization")
        if resource.get("name") == "cpu" and target is not None:
            spec[_UTILIZATION] = target


def _renamed(obj: Object, names: Mapping[str, str]) -> Object:
    return dict(zip(map(names.get, obj, obj), obj.values(), strict=True))


def served_body(served: ResourceType, record: Record) -> bytes:
    """The JSON of a record as the client wants it."""
    if record.revision < served.defined_at and served.schema:
        obj = from_storage(served, record.object())
        apply_schema_defaults(served.schema, obj)
        return _encode(obj)
    if served.is_stored_as_served:
        return record.body
    if served.group == KUEUE_GROUP or served.storage == AUTOSCALERS:
        return _encode(from_storage(served, record.object()))
    # Versions differ in the names of fields only: their values stay as they are written.
    return _encode(from_storage(served, decode_fields(record.body)))
