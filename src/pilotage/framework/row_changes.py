"""Which rows may look different to a pod than they did: what makes remembered verdicts void.

A verdict about a node follows from the node, the pods on it and the pods that are promised it. Whoever remembers
verdicts of a class of pods asks here what to forget.
"""

from __future__ import annotations

from pilotage.cluster.node_table import NodeTable
from pilotage.cluster.nominations import Nominations


class RowChanges:
    """What happened since it was last asked."""

    __slots__ = ("_nodes", "_nominations", "_promised", "_renewed", "_structure", "_touched")

    def __init__(self, nodes: NodeTable, nominations: Nominations) -> None:
        self._nodes = nodes
        self._nominations = nominations
        self._look()

    def since_last(self) -> list[int] | None:
        """Rows to be looked at again; None if that is all of them."""
        nodes = self._nodes
        if nodes.structure != self._structure:
            self._look()
            return None
        touched = nodes.changed_since(self._touched)
        renewed = nodes.renewals.changed_since(self._renewed)
        promised = self._nominations.log.changed_since(self._promised)
        self._look()
        if touched is None or renewed is None or promised is None:
            return None
        named = [row for row in map(nodes.row, promised) if row is not None]
        return list(dict.fromkeys([*touched, *renewed, *named]))

    def _look(self) -> None:
        self._structure = self._nodes.structure
        self._touched = self._nodes.mark
        self._renewed = self._nodes.renewals.mark
        self._promised = self._nominations.log.mark
