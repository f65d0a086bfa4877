"""Rules for dynamic resource allocation: claims, their templates, device classes and slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pilotage.sandbox.rules.validation.kind_rules import KindRules, ObjectUpdate
from pilotage.sandbox.rules.validation.metadata import AnyObject, Metadata, common_errors
from pilotage.sandbox.rules.validation.names import label_problem, subdomain_problem
from pilotage.sandbox.rules.validation.pod_shapes import Anything, NodeSelector
from pilotage.sandbox.rules.validation.problems import (
    Errors,
    at_least,
    duplicate,
    invalid,
    not_found,
    one_of,
    required,
)
from pilotage.sandbox.rules.validation.selectors import node_selector_errors
from pilotage.sandbox.rules.validation.shapes import Int64, Shape
from pilotage.sandbox.rules.validation.workloads import immutable_errors

_ALLOCATION_MODES: Final = ("All", "ExactCount")


class CelSelector(Shape):
    expression: str | None = None


class DeviceSelector(Shape):
    cel: CelSelector | None = None


class ExactRequest(Shape):
    """What is asked for; a sub-request of a list of alternatives has a name too."""

    name: str | None = None
    device_class_name: str | None = None
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str | None = None
    count: Int64 | None = None
    tolerations: list[Anything] | None = None
    capacity: Anything | None = None


class DeviceRequest(Shape):
    name: str | None = None
    exactly: ExactRequest | None = None
    first_available: list[ExactRequest] | None = None


class DeviceConstraint(Shape):
    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(Shape):
    requests: list[DeviceRequest] | None = None
    constraints: list[DeviceConstraint] | None = None


class ResourceClaimSpec(Shape):
    devices: DeviceClaim | None = None


class ResourceClaim(AnyObject):
    spec: ResourceClaimSpec | None = None


class ClaimTemplateSpec(Shape):
    metadata: Metadata | None = None
    spec: ResourceClaimSpec | None = None


class ResourceClaimTemplate(AnyObject):
    spec: ClaimTemplateSpec | None = None


class DeviceClassSpec(Shape):
    selectors: list[DeviceSelector] | None = None


class DeviceClass(AnyObject):
    spec: DeviceClassSpec | None = None


class ResourcePool(Shape):
    name: str | None = None
    generation: Int64 | None = None
    resource_slice_count: Int64 | None = None


class Device(Shape):
    name: str | None = None
    capacity: Anything | None = None
    taints: list[Anything] | None = None


class ResourceSliceSpec(Shape):
    driver: str | None = None
    pool: ResourcePool | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[Device] | None = None


class ResourceSlice(AnyObject):
    spec: ResourceSliceSpec | None = None


def _claim_errors(claim: ResourceClaim) -> Errors:
    return _claim_spec_errors(claim.spec, "spec")


def _template_errors(template: ResourceClaimTemplate) -> Errors:
    if template.spec is None:
        return [required("spec")]
    errors = common_errors(template.spec.metadata, "spec.metadata") if template.spec.metadata is not None else []
    return errors + _claim_spec_errors(template.spec.spec, "spec.spec")


def _claim_spec_errors(spec: ResourceClaimSpec | None, path: str) -> Errors:
    devices = spec.devices if spec is not None else None
    if devices is None:
        return []
    errors: Errors = []
    names: set[str] = set()
    for index, request in enumerate(devices.requests or ()):
        place = f"{path}.devices.requests[{index}]"
        errors += _name_errors(request.name, f"{place}.name", names)
        errors += _request_errors(request, place, names)
    for index, constraint in enumerate(devices.constraints or ()):
        errors += _constraint_errors(constraint, f"{path}.devices.constraints[{index}]", names)
    return errors


def _name_errors(name: str | None, path: str, seen: set[str]) -> Errors:
    if not name:
        return [required(path)]
    errors: Errors = []
    if problem := label_problem(name):
        errors.append(invalid(path, name, problem))
    if name in seen:
        errors.append(duplicate(path, name))
    seen.add(name)
    return errors


def _request_errors(request: DeviceRequest, path: str, names: set[str]) -> Errors:
    if request.exactly is not None and request.first_available:
        return [
            invalid(path, "", "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set")
        ]
    if request.exactly is not None:
        return _exact_errors(request.exactly, f"{path}.exactly")
    if not request.first_available:
        return [required(path, "exactly one of `exactly` or `firstAvailable` is required")]
    errors: Errors = []
    alternatives: set[str] = set()
    for index, choice in enumerate(request.first_available):
        place = f"{path}.firstAvailable[{index}]"
        errors += _name_errors(choice.name, f"{place}.name", alternatives)
        errors += _exact_errors(choice, place)
        # A constraint may name one alternative.
        names.add(f"{request.name}/{choice.name}")
    return errors


def _exact_errors(request: ExactRequest, path: str) -> Errors:
    errors: Errors = []
    if not request.device_class_name:
        errors.append(required(f"{path}.deviceClassName"))
    elif problem := subdomain_problem(request.device_class_name):
        errors.append(invalid(f"{path}.deviceClassName", request.device_class_name, problem))
    errors += one_of(f"{path}.allocationMode", request.allocation_mode, _ALLOCATION_MODES)
    if request.allocation_mode == "All" and request.count:
        errors.append(invalid(f"{path}.count", request.count, "must not be specified when allocationMode is 'All'"))
    elif request.allocation_mode == "ExactCount":
        errors += at_least(f"{path}.count", request.count, 1, "must be greater than zero")
    return errors + _selector_errors(request.selectors or (), f"{path}.selectors")


def _selector_errors(selectors: Sequence[DeviceSelector], path: str) -> Errors:
    errors: Errors = []
    for index, selector in enumerate(selectors):
        if selector.cel is None:
            errors.append(required(f"{path}[{index}].cel"))
        elif not selector.cel.expression:
            errors.append(required(f"{path}[{index}].cel.expression"))
    return errors


def _constraint_errors(constraint: DeviceConstraint, path: str, names: set[str]) -> Errors:
    errors = [
        not_found(f"{path}.requests[{index}]", name)
        for index, name in enumerate(constraint.requests or ())
        if name not in names
    ]
    if not constraint.match_attribute and not constraint.distinct_attribute:
        errors.append(required(f"{path}.matchAttribute"))
    return errors


def _class_errors(device_class: DeviceClass) -> Errors:
    selectors = device_class.spec.selectors if device_class.spec is not None else None
    return _selector_errors(selectors or (), "spec.selectors")


def _slice_errors(resource_slice: ResourceSlice) -> Errors:
    spec = resource_slice.spec
    if spec is None:
        return [required("spec")]
    errors: Errors = [] if spec.driver else [required("spec.driver")]
    if spec.pool is None or not spec.pool.name:
        errors.append(required("spec.pool.name"))
    choices = [bool(spec.node_name), spec.node_selector is not None, spec.all_nodes, spec.per_device_node_selection]
    if sum(map(bool, choices)) != 1:
        problem = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
        errors.append(required("spec", problem))
    if spec.node_selector is not None:
        errors += node_selector_errors(spec.node_selector, "spec.nodeSelector")
    names: set[str] = set()
    for index, device in enumerate(spec.devices or ()):
        errors += _name_errors(device.name, f"spec.devices[{index}].name", names)
    return errors


def _slice_update_errors(change: ObjectUpdate) -> Errors:
    errors = immutable_errors(change, "driver", "nodeName")
    before, now = (getattr(one.spec, "pool", None) for one in (change.before, change.after))
    if before is not None and now is not None and before.name != now.name:
        errors.append(invalid("spec.pool.name", now.name, "field is immutable"))
    return errors


def _spec_is_immutable(change: ObjectUpdate) -> Errors:
    if change.old.get("spec") == change.new.get("spec"):
        return []
    return [invalid("spec", change.new.get("spec"), "field is immutable")]


DEVICE_RULES: Final[Mapping[str, KindRules]] = {
    "ResourceClaim": KindRules(ResourceClaim, _claim_errors, update=_spec_is_immutable),
    "ResourceClaimTemplate": KindRules(ResourceClaimTemplate, _template_errors, update=_spec_is_immutable),
    "DeviceClass": KindRules(DeviceClass, _class_errors),
    "ResourceSlice": KindRules(ResourceSlice, _slice_errors, update=_slice_update_errors),
}
