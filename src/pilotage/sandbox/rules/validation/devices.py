"""Rules for dynamic resource allocation: claims, their templates, device classes and slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pilotage.sandbox.rules.json_fields import Json, nested
from pilotage.sandbox.rules.validation.field_rules import KindRules, Rule, each, fields, immutable, nothing, one_of
from pilotage.sandbox.rules.validation.metadata import template_metadata
from pilotage.sandbox.rules.validation.names import label, subdomain
from pilotage.sandbox.rules.validation.problems import Errors, duplicate, invalid, not_found, required
from pilotage.sandbox.rules.validation.selectors import node_selector

_ONE_KIND_OF_REQUEST: Final = "exactly one of `exactly` or `firstAvailable` is required"
_NODE_CHOICES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def _devices(devices: Json, path: str) -> Errors:
    errors: Errors = []
    names: set[str] = set()
    for index, request in enumerate(devices.get("requests") or ()):
        place = f"{path}.requests[{index}]"
        errors += _name_errors(request.get("name"), f"{place}.name", names)
        errors += _request_errors(request, place, names)
    for index, constraint in enumerate(devices.get("constraints") or ()):
        errors += _constraint_errors(constraint, f"{path}.constraints[{index}]", names)
    return errors


def _name_errors(name: str | None, path: str, seen: set[str]) -> Errors:
    if not name:
        return [required(path)]
    errors = label(name, path)
    if name in seen:
        errors.append(duplicate(path, name))
    seen.add(name)
    return errors


def _request_errors(request: Json, path: str, names: set[str]) -> Errors:
    exactly, choices = request.get("exactly"), request.get("firstAvailable")
    if exactly is not None and choices:
        return [invalid(path, "", f"{_ONE_KIND_OF_REQUEST}, but multiple fields are set")]
    if exactly is not None:
        return _EXACT(exactly, f"{path}.exactly")
    if not choices:
        return [required(path, _ONE_KIND_OF_REQUEST)]
    errors: Errors = []
    alternatives: set[str] = set()
    for index, choice in enumerate(choices):
        place = f"{path}.firstAvailable[{index}]"
        errors += _name_errors(choice.get("name"), f"{place}.name", alternatives)
        errors += _EXACT(choice, place)
        # A constraint may name one alternative.
        names.add(f"{request.get('name')}/{choice.get('name')}")
    return errors


def _count(request: Json, path: str) -> Errors:
    mode, count = request.get("allocationMode"), request.get("count")
    if mode == "All" and count:
        return [invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")]
    if mode == "ExactCount" and count is not None and count < 1:
        return [invalid(f"{path}.count", count, "must be greater than zero")]
    return []


def _constraint_errors(constraint: Json, path: str, names: set[str]) -> Errors:
    errors = [
        not_found(f"{path}.requests[{index}]", name)
        for index, name in enumerate(constraint.get("requests") or ())
        if name not in names
    ]
    if not constraint.get("matchAttribute") and not constraint.get("distinctAttribute"):
        errors.append(required(f"{path}.matchAttribute"))
    return errors


def _one_choice_of_nodes(spec: Json, path: str) -> Errors:
    given = [
        name for name in _NODE_CHOICES if spec.get(name) or (name == "nodeSelector" and spec.get(name) is not None)
    ]
    if len(given) == 1:
        return []
    return [required(path, f"exactly one of {', '.join(f'`{name}`' for name in _NODE_CHOICES)} is required")]


def _unique_devices(devices: Sequence[Json], path: str) -> Errors:
    names: set[str] = set()
    return [
        error
        for index, device in enumerate(devices)
        for error in _name_errors(device.get("name"), f"{path}[{index}].name", names)
    ]


def _slice_update(old: Json, new: Json) -> Errors:
    before, now = nested(old, "spec", "pool"), nested(new, "spec", "pool")
    return _SLICE_IS_FIXED(old, new) + ([] if before is None or now is None else _POOL_IS_FIXED(old, new))


_SLICE_IS_FIXED: Final = immutable("spec.driver", "spec.nodeName")
_POOL_IS_FIXED: Final = immutable("spec.pool.name")
_SELECTORS: Final = each(fields(("cel!", fields(("expression!", nothing)))))
_EXACT: Final = fields(
    ("deviceClassName!", subdomain),
    ("allocationMode", one_of("All", "ExactCount")),
    ("", _count),
    ("selectors", _SELECTORS),
)
_CLAIM: Final[Rule] = fields(("devices", _devices))
_CLAIM_TEMPLATE: Final = fields(("metadata", template_metadata), ("spec", _CLAIM))
_SLICE: Final = fields(
    ("driver!", nothing),
    ("pool", fields(("name!", nothing)), {}),
    ("", _one_choice_of_nodes),
    ("nodeSelector", node_selector),
    ("devices", _unique_devices),
)

DEVICE_RULES: Final[Mapping[str, KindRules]] = {
    "ResourceClaim": KindRules(fields(("spec", _CLAIM)), update=immutable("spec")),
    "ResourceClaimTemplate": KindRules(fields(("spec!", _CLAIM_TEMPLATE)), update=immutable("spec")),
    "DeviceClass": KindRules(fields(("spec", fields(("selectors", _SELECTORS))))),
    "ResourceSlice": KindRules(fields(("spec!", _SLICE)), update=_slice_update),
}
