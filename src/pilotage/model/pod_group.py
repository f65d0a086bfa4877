"""PodGroup (scheduling.k8s.io): pods that are scheduled together, and what is asked of their places."""

from __future__ import annotations

import msgspec

from pilotage.model.meta import ApiObject, Shape, TimedCondition
from pilotage.model.pod_spec import PodResourceClaim

POD_GROUP_SCHEDULED = "PodGroupInitiallyScheduled"
"""The condition that says whether a group has started."""


class GangPolicy(Shape, frozen=True):
    min_count: int = 1


class Chosen(Shape, frozen=True):
    """A member of a union that has no fields of its own."""


class SchedulingPolicy(Shape, frozen=True):
    basic: Chosen | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(Shape, frozen=True):
    key: str = ""


class SchedulingConstraints(Shape, frozen=True):
    topology: tuple[TopologyConstraint, ...] = ()


class DisruptionMode(Shape, frozen=True):
    single: Chosen | None = None
    all: Chosen | None = None


class PodGroupSpec(Shape, frozen=True):
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | str | None = None
    """A word in v1alpha2."""
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    parent_composite_pod_group_name: str | None = None
    """The group of groups that it belongs to: not served."""


class PodGroupStatus(Shape, frozen=True):
    conditions: tuple[TimedCondition, ...] = ()


class PodGroup(ApiObject, frozen=True):
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = msgspec.field(default_factory=PodGroupStatus)

    @property
    def is_gang(self) -> bool:
        """Is there a number of members that must be placed together?"""
        return self.spec.scheduling_policy.gang is not None

    @property
    def min_count(self) -> int:
        """How many members must have a place before any of them may start."""
        gang = self.spec.scheduling_policy.gang
        return 1 if gang is None else gang.min_count

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def topology_key(self) -> str:
        """The label of whose values all members must share one; "" if they may be anywhere."""
        constraints = self.spec.scheduling_constraints
        return constraints.topology[0].key if constraints is not None and constraints.topology else ""

    @property
    def is_disrupted_as_one(self) -> bool:
        """If one of its pods is preempted, so are all."""
        mode = self.spec.disruption_mode
        return mode == "PodGroup" if isinstance(mode, str) else mode is not None and mode.all is not None

    @property
    def has_started(self) -> bool:
        return any(c.type == POD_GROUP_SCHEDULED and c.status == "True" for c in self.status.conditions)
