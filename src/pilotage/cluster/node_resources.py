"""What a node offers, as integers: cpu in milli-cores, everything else in units, rounded up."""

from __future__ import annotations

from pilotage.model import Node
from pilotage.model.quantity import quantity_nanos, resource_amount


def node_allocatable(node: Node) -> dict[str, int]:
    """Allocatable amounts by resource name."""
    return {name: resource_amount(name, quantity_nanos(text)) for name, text in node.status.allocatable.items()}
