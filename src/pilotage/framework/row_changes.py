"""Which rows may look different to a pod than they did: what makes remembered verdicts void.

A verdict about a node follows from the node, the pods on it and the pods that are promised it. Whoever remembers
verdicts of a class of pods asks here what to forget.
"""

from __future__ import annotations

from pilotage.cluster.node_table import NodeTable
from pilotage.cluster.nominations import Nominations


class RowChanges:
    """What happened since it was last asked."""

    __slots__ = ("_nodes", "_nominations", "_seen")

    def __init__(self, nodes: NodeTable, nominations: Nominations) -> None:
        self._nodes = nodes
        self._nominations = nominations
        self._seen = self._look()

    def since_last(self) -> list[int] | None:
        """Rows to be looked at again; None if that is all of them."""
        nodes, before = self._nodes, self._seen
        self._seen = now = self._look()
        if now == before:
            return []
        structure, touched_before, renewed_before, promised_before = before
        if nodes.structure != structure:
            return None
        touched = nodes.changed_since(touched_before)
        renewed = nodes.renewals.changed_since(renewed_before)
        promised = self._nominations.log.changed_since(promised_before)
        if touched is None or renewed is None or promised is None:
            return None
        named = [row for row in map(nodes.row, promised) if row is not None]
        return list(dict.fromkeys([*touched, *renewed, *named]))

    def _look(self) -> tuple[int, int, int, int]:
        nodes = self._nodes
        return nodes.structure, nodes.mark, nodes.renewals.mark, self._nominations.log.mark
