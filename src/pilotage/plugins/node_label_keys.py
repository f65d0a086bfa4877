"""The label keys that nodes have at all: a pod that asks for thousands of others costs no look at a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pilotage.api import ClusterIndex
from pilotage.model import Node

_NO_LABELS: Mapping[str, str] = {}


class NodeLabelKeys(ClusterIndex):
    """Counts the nodes that have a label."""

    def __init__(self) -> None:
        self._nodes_with: Counter[str] = Counter()

    def __contains__(self, key: str) -> bool:
        return key in self._nodes_with

    def node_put(self, old: Node | None, new: Node) -> None:
        if old is None or old.labels != new.labels:
            self._note(_NO_LABELS if old is None else old.labels, new.labels)

    def node_removed(self, node: Node) -> None:
        self._note(node.labels, _NO_LABELS)

    def _note(self, before: Mapping[str, str], now: Mapping[str, str]) -> None:
        self._nodes_with.update(now.keys() - before.keys())
        for key in before.keys() - now.keys():
            self._nodes_with[key] -= 1
            if not self._nodes_with[key]:
                del self._nodes_with[key]
