"""CheapRacks: of the racks in which a pod group fits, prefer the one whose nodes cost least.

Nodes say what they cost per hour, in cents: `example.com/price: "40"`. The group says that it must stay in one rack by
`schedulingConstraints.topology`; without that there is nothing to choose between.

Try it:

    pilotage scenario examples/plugins/cheap_racks.yaml --plugin examples/plugins/cheap_racks.py
"""

from __future__ import annotations

from pilotage.api import CycleState, NodeTable, PlacementScore, Plugin, PodGroup, ProposedPlacement

PRICE = "example.com/price"
DEAREST = 100
"""Whatever costs more is as bad as this."""


class CheapRacks(Plugin, PlacementScore):
    name = "CheapRacks"

    def score_placement(self, state: CycleState, group: PodGroup, proposed: ProposedPlacement, nodes: NodeTable) -> int:
        """The nodes that the members would take, by what they cost on average; nodes without a price cost nothing."""
        rows = [row for row, name in enumerate(nodes.names) if name in proposed.members]
        prices = [price_of(nodes.node(row).labels.get(PRICE, "")) for row in rows]
        return DEAREST - sum(prices) // max(len(prices), 1)


def price_of(text: str) -> int:
    return min(int(text), DEAREST) if text.isascii() and text.isdigit() else 0
