"""What a node offers, as integers: cpu in milli-cores, everything else in units, rounded up."""

from __future__ import annotations

from functools import lru_cache

from pilotage.model import Node
from pilotage.model.quantity import quantity_milli, quantity_value


def node_allocatable(node: Node) -> dict[str, int]:
    """Allocatable amounts by resource name."""
    return {name: _amount(name, text) for name, text in node.status.allocatable.items()}


@lru_cache(maxsize=65_536)
def _amount(name: str, text: str | int | float) -> int:
    return quantity_milli(text) if name == "cpu" else quantity_value(text)
