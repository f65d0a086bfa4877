"""What nodes answered to claims that ask for the same: asked once, and again only where something changed.

Claims made from one template differ in nothing but their names, so what a node can give them is the same. The answers
are kept as a column over all nodes. An allocation concerns the nodes of one pool, usually a single one; only these are
searched again for the next pod.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pilotage.api import ClusterIndex, Handle, NodeTable, Reject
from pilotage.change_log import ChangeLog
from pilotage.model import Node
from pilotage.plugins.dynamic_resources.claim_book import ClaimBook
from pilotage.plugins.dynamic_resources.requests import ClaimRequests, PreparedClaim
from pilotage.plugins.dynamic_resources.search import Picks
from pilotage.plugins.dynamic_resources.slices import SliceIndex

SearchNode = Callable[[Node], Picks | Reject]

_UNKNOWN, _FITS = -1, 0
_KEPT_COLUMNS = 64


class NodeRoster(ClusterIndex):
    """Which nodes there are, and which of them changed in a way that matters to devices."""

    keeps_more = True

    def __init__(self) -> None:
        self.version = 0
        self.relabelled: ChangeLog[str] = ChangeLog()

    def node_put(self, old: Node | None, new: Node) -> None:
        if old is None:
            self.version += 1
        elif old.labels != new.labels:
            self.relabelled.touch(new.name)

    def node_removed(self, node: Node) -> None:
        self.version += 1


class VerdictColumn:
    """The answers of all nodes to one kind of claims."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._sources = handle.index(SliceIndex), handle.index(NodeRoster), handle.index(ClaimBook).ledger
        self._rows: dict[str, int] = {}
        self._codes: NDArray[np.int16] = np.zeros(0, dtype=np.int16)
        self._all_rows: NDArray[np.int64] = np.arange(0)
        self._picks: dict[str, Picks] = {}
        self._version = 0
        self._marks = (0, 0, 0)
        self.rejections: list[Reject] = []
        """Rejection number n has the code n + 1."""
        self._forget_all()

    def codes(self, nodes: NodeTable, search: SearchNode) -> NDArray[np.int16]:
        """0 where the claims can be served, n + 1 for rejection number n; not to be written to.

        A search that does not come to an end leaves what the nodes before it have answered.
        """
        self._catch_up()
        codes = nodes.pick(self._codes)
        unknown = np.flatnonzero(codes == _UNKNOWN)
        if len(unknown):
            for row in nodes.pick(self._all_rows)[unknown].tolist():
                self._codes[row] = self._ask(search, row)
            codes = nodes.pick(self._codes)
        return codes

    def picks(self, node_name: str) -> Picks | None:
        return self._picks.get(node_name)

    def _ask(self, search: SearchNode, row: int) -> int:
        node = self._handle.nodes.node(row)
        found = search(node)
        if not isinstance(found, Reject):
            self._picks[node.name] = found
            return _FITS
        if found not in self.rejections:
            self.rejections.append(found)
        return self.rejections.index(found) + 1

    # --- keeping up --------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        index, roster, ledger = self._sources
        relabelled = roster.relabelled.changed_since(self._marks[0])
        republished = index.log.changed_since(self._marks[1])
        taken = ledger.log.changed_since(self._marks[2])
        if roster.version != self._version or relabelled is None or republished is None or taken is None:
            self._forget_all()
            return
        stale: set[str | None] = {*relabelled, *republished}
        for pool in taken:
            stale.update(index.nodes_of(pool) or (None,))
        if None in stale:
            self._forget_all()
            return
        for name in stale:
            self._picks.pop(name or "", None)
            if name in self._rows:
                self._codes[self._rows[name]] = _UNKNOWN
        self._marks = (roster.relabelled.mark, index.log.mark, ledger.log.mark)

    def _forget_all(self) -> None:
        index, roster, ledger = self._sources
        self._version = roster.version
        self._marks = (roster.relabelled.mark, index.log.mark, ledger.log.mark)
        self._rows = {name: row for row, name in enumerate(self._handle.nodes.names)}
        self._codes = np.full(len(self._rows), _UNKNOWN, dtype=np.int16)
        self._all_rows = np.arange(len(self._rows))
        self._picks.clear()


class Columns:
    """The columns of the kinds of claims that were asked for lately."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._columns: OrderedDict[tuple[ClaimRequests, ...], VerdictColumn] = OrderedDict()

    def of(self, claims: Sequence[PreparedClaim]) -> VerdictColumn:
        key = tuple([claim.claim_requests for claim in claims])
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = VerdictColumn(self._handle)
            if len(self._columns) > _KEPT_COLUMNS:
                self._columns.popitem(last=False)
        else:
            self._columns.move_to_end(key)
        return column
