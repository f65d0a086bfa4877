"""What was found out about the nodes for one pod, kept for the next pod of its class.

Pods of one class have the same signature and priority. A verdict about a node follows from the node, the pods on it and
the pods that are nominated to it, so only the rows where one of these changed have to be looked at again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

from msgspec import Struct

from pilotage.api.state import CycleState
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.cluster.state import Nominations
from pilotage.framework.profile import Profile, class_of
from pilotage.model import Pod

T = TypeVar("T")

_KEPT_CLASSES: Final = 64


class RowChanges:
    """Rows that may look different to a pod since it was last asked."""

    __slots__ = ("_nodes", "_nominations", "_seen")

    def __init__(self, nodes: ClusterNodeTable, nominations: Nominations) -> None:
        self._nodes = nodes
        self._nominations = nominations
        self._seen = self._look()

    def since_last(self) -> list[int] | None:
        """Rows to be looked at again; None if that is all of them."""
        nodes, before = self._nodes, self._seen
        self._seen = now = self._look()
        if now == before:
            return []
        structure, touched_before, renewed_before, nominated_before = before
        if nodes.structure != structure:
            return None
        touched = nodes.changed_since(touched_before)
        renewed = nodes.renewals.changed_since(renewed_before)
        nominated = self._nominations.log.changed_since(nominated_before)
        if touched is None or renewed is None or nominated is None:
            return None
        named = [row for row in map(nodes.row, nominated) if row is not None]
        return list(dict.fromkeys([*touched, *renewed, *named]))

    def _look(self) -> tuple[int, int, int, int]:
        nodes = self._nodes
        return nodes.structure, nodes.mark, nodes.renewals.mark, self._nominations.log.mark


class _Entry(Struct, Generic[T], eq=False):
    versions: Hashable
    changes: RowChanges
    content: T


class ClassMemory(Generic[T]):
    """The contents of the classes that were met last.

    `make` makes the content for the class of a pod that knows nothing yet. `update` is given a content, a pod of its
    class and the rows that changed, and forgets what does not hold any more; False if that is everything.
    """

    def __init__(
        self,
        profile: Profile,
        nodes: ClusterNodeTable,
        nominations: Nominations,
        make: Callable[[Pod], T],
        update: Callable[[T, Pod, Sequence[int]], bool],
        kept: int | None = None,
    ) -> None:
        self._profile = profile
        self._nodes = nodes
        self._nominations = nominations
        self._make = make
        self._update = update
        self._kept = _KEPT_CLASSES if kept is None else kept
        self._entries: OrderedDict[Hashable, _Entry[T]] = OrderedDict()

    def get(self, state: CycleState, pod: Pod) -> T | None:
        """The content for the pod's class; None if a filter looks at more than the class and one node."""
        shared = class_of(self._profile, state, pod)
        if shared is None:
            return None
        key = (shared.signature, pod.priority)
        entry = self._entries.get(key)
        if entry is None or entry.versions != shared.versions or not self._is_brought_up_to_date(entry, pod):
            changes = RowChanges(self._nodes, self._nominations)
            entry = self._entries[key] = _Entry(shared.versions, changes, self._make(pod))
            if len(self._entries) > self._kept:
                self._entries.popitem(last=False)
        self._entries.move_to_end(key)
        return entry.content

    def _is_brought_up_to_date(self, entry: _Entry[T], pod: Pod) -> bool:
        changed = entry.changes.since_last()
        return changed is not None and self._update(entry.content, pod, changed)
