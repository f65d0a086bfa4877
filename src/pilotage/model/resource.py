"""Dynamic resource allocation (resource.k8s.io/v1): devices, who offers them, who claims them, who got them."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotage.model.meta import ApiObject, ObjectMeta, Shape, TimedCondition
from pilotage.model.quantity import Quantity
from pilotage.model.selectors import NodeSelector

# --- what drivers offer -----------------------------------------------------------------------------------------------


class DeviceAttribute(Shape, frozen=True):
    """Exactly one of the values is set."""

    int_value: int | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    string_value: str | None = msgspec.field(default=None, name="string")
    version_value: str | None = msgspec.field(default=None, name="version")


class CapacityRange(Shape, frozen=True):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Shape, frozen=True):
    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(Shape, frozen=True):
    value: Quantity = "0"
    request_policy: CapacityRequestPolicy | None = None


class Counter(Shape, frozen=True):
    value: Quantity = "0"


class CounterSet(Shape, frozen=True):
    name: str = ""
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)


class CounterConsumption(Shape, frozen=True):
    counter_set: str = ""
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)


class DeviceTaint(Shape, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Device(Shape, frozen=True):
    name: str = ""
    attributes: dict[str, DeviceAttribute] = msgspec.field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = msgspec.field(default_factory=dict)
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None


class ResourcePool(Shape, frozen=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Shape, frozen=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(ApiObject, frozen=True):
    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(Shape, frozen=True):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Shape, frozen=True):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(ApiObject, frozen=True):
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()

    def selects(self, driver: str, pool: str, device: str) -> bool:
        """Does the rule put its taint on this device?"""
        selector = self.spec.device_selector
        if selector is None:
            return False
        wanted = (selector.driver, selector.pool, selector.device)
        return all(want is None or want == have for want, have in zip(wanted, (driver, pool, device), strict=True))


# --- what users ask for -----------------------------------------------------------------------------------------------


class CELSelector(Shape, frozen=True):
    expression: str = ""


class DeviceSelector(Shape, frozen=True):
    cel: CELSelector | None = None


class OpaqueConfiguration(Shape, frozen=True):
    """The driver's own document; passed on unread."""

    driver: str = ""
    parameters: Any = None


class DeviceClassConfiguration(Shape, frozen=True):
    opaque: OpaqueConfiguration | None = None


class DeviceClassSpec(Shape, frozen=True):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(ApiObject, frozen=True):
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceToleration(Shape, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(Shape, frozen=True):
    requests: dict[str, Quantity] = msgspec.field(default_factory=dict)


class DeviceSubRequest(Shape, frozen=True):
    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class ExactDeviceRequest(Shape, frozen=True):
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(Shape, frozen=True):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Shape, frozen=True):
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Shape, frozen=True):
    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceClaim(Shape, frozen=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Shape, frozen=True):
    devices: DeviceClaim = DeviceClaim()


# --- what was allocated -----------------------------------------------------------------------------------------------


class DeviceAllocationResult(Shape, frozen=True):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] = msgspec.field(default_factory=dict)


class DeviceAllocationConfiguration(Shape, frozen=True):
    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceAllocation(Shape, frozen=True):
    results: tuple[DeviceAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Shape, frozen=True):
    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ClaimConsumer(Shape, frozen=True):
    """Who may use the claim, usually a pod."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Shape, frozen=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[TimedCondition, ...] = ()
    data: Any = None
    network_data: Any = None


class ResourceClaimStatus(Shape, frozen=True):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ClaimConsumer, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(ApiObject, frozen=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Shape, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(ApiObject, frozen=True):
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
