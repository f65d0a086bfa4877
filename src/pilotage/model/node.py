"""Node: where pods run, as far as scheduling reads it."""

from __future__ import annotations

import msgspec

from pilotage.model.meta import ApiObject, Shape, TimedCondition
from pilotage.model.quantity import Quantity


class Taint(Shape, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(Shape, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = msgspec.field(default="", name="providerID")


class ContainerImage(Shape, frozen=True):
    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeStatus(Shape, frozen=True):
    capacity: dict[str, Quantity] = msgspec.field(default_factory=dict)
    allocatable: dict[str, Quantity] = msgspec.field(default_factory=dict)
    images: tuple[ContainerImage, ...] = ()
    conditions: tuple[TimedCondition, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(ApiObject, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
