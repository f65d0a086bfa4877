"""The part of a pod's status that scheduling reads."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from pilotage.model.meta import Condition, Shape
from pilotage.model.pod_spec import ResourceRequirements
from pilotage.model.quantity import Quantity


class ContainerStatus(Shape, frozen=True):
    """What the kubelet granted (`allocated_resources`) and applied (`resources`), where it reports either."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, Quantity] = msgspec.field(default_factory=dict)


class PodResourceClaimStatus(Shape, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class ExtendedResourceMapping(Shape, frozen=True):
    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class ExtendedResourceClaimStatus(Shape, frozen=True):
    resource_claim_name: str = ""
    request_mappings: tuple[ExtendedResourceMapping, ...] = ()


class PodStatus(Shape, frozen=True):
    phase: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, Quantity] = msgspec.field(default_factory=dict)
    resize: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None
    observed_generation: int = 0

    def condition(self, type_: str) -> Condition | None:
        """The condition of this type, if there is one."""
        for condition in self.conditions:
            if condition.type == type_:
                return condition
        return None

    def started_at(self, start_time: str) -> PodStatus:
        """The same status with another start time; shares everything else."""
        return replace(self, start_time=start_time)
