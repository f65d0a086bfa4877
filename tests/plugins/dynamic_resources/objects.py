"""Claims, slices and classes for tests, written as short as possible."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotage.model import KINDS
from pilotage.model.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice

DRIVER = "gpu.example.com"
Json = dict[str, Any]


def _decoded(plural: str, obj: Json) -> Any:
    return KINDS[plural].decode(msgspec.json.encode(obj))


def device(name: str, **fields: Any) -> Json:
    """`attributes` in plain Python values: an int, bool or str; `capacity` as name -> amount."""
    given = dict(fields)
    attributes = {key: _attribute(value) for key, value in given.pop("attributes", {}).items()}
    capacity = {key: v if isinstance(v, dict) else {"value": v} for key, v in given.pop("capacity", {}).items()}
    return {"name": name, "attributes": attributes, "capacity": capacity, **given}


def _attribute(value: Any) -> Json:
    if isinstance(value, dict):
        return value
    return (
        {"bool": value} if isinstance(value, bool) else {"int": value} if isinstance(value, int) else {"string": value}
    )


def device_slice(node: str, *devices: Json, name: str = "", pool: Json | None = None, **spec: Any) -> ResourceSlice:
    """A complete pool of one slice on one node, unless told otherwise."""
    published = {"name": node, "generation": 1, "resourceSliceCount": 1, **(pool or {})}
    where = {} if {"allNodes", "nodeSelector", "perDeviceNodeSelection"} & spec.keys() else {"nodeName": node}
    body = {"driver": DRIVER, "pool": published, "devices": list(devices), **where, **spec}
    decoded: ResourceSlice = _decoded("resourceslices", {"metadata": {"name": name or f"{node}-slice"}, "spec": body})
    return decoded


def device_class(name: str = "gpu", *expressions: str, **spec: Any) -> DeviceClass:
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    body = {"metadata": {"name": name, "uid": f"class-{name}"}, "spec": {"selectors": selectors, **spec}}
    decoded: DeviceClass = _decoded("deviceclasses", body)
    return decoded


def exactly(name: str = "r0", *expressions: str, count: int = 1, cls: str = "gpu", **fields: Any) -> Json:
    return {"name": name, "exactly": _request(expressions, count, cls, fields)}


def everything(name: str = "r0", *expressions: str, cls: str = "gpu", **fields: Any) -> Json:
    return {"name": name, "exactly": {**_request(expressions, 1, cls, fields), "allocationMode": "All"}}


def first_of(name: str, *alternatives: Json) -> Json:
    """Requests as alternatives; each keeps its own name."""
    return {"name": name, "firstAvailable": [{"name": a["name"], **a["exactly"]} for a in alternatives]}


def _request(expressions: tuple[str, ...], count: int, cls: str, fields: Json) -> Json:
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    return {"deviceClassName": cls, "selectors": selectors, "count": count, **fields}


def claim(name: str, *requests: Json, constraints: list[Json] | None = None, **fields: Any) -> ResourceClaim:
    devices = {"requests": list(requests), "constraints": constraints or []}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
    body = {"metadata": {**metadata, **fields.pop("metadata", {})}, "spec": {"devices": devices}, **fields}
    decoded: ResourceClaim = _decoded("resourceclaims", body)
    return decoded


def allocated(name: str, *devices: str, pool: str = "n", **result: Any) -> ResourceClaim:
    """A claim that has these devices of a pool."""
    results = [{"request": "r0", "driver": DRIVER, "pool": pool, "device": d, **result} for d in devices]
    return claim(name, exactly(), status={"allocation": {"devices": {"results": results}}})


def taint_rule(name: str, effect: str = "NoSchedule", **selector: str) -> DeviceTaintRule:
    body = {"deviceSelector": selector, "taint": {"key": "broken", "effect": effect}}
    decoded: DeviceTaintRule = _decoded("devicetaintrules", {"metadata": {"name": name}, "spec": body})
    return decoded
