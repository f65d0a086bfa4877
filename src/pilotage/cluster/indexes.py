"""The indexes of plugins: made on first use, kept up to date from then on, and none of them can stop the others.

An index is code of a plugin that runs whenever an object comes or goes. If it raises, the object is *left out* of that
index: the index is emptied and filled again without it (or, if it keeps more than it was given, the object is taken out
of it), and hears of the object again when that changes. The object is in the table of skipped objects meanwhile.
Emptied indexes are filled together in `settle`, before the next cycle, however many objects they raised for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar, cast

from pilotage.api.indexes import ClusterIndex
from pilotage.api.kinds import Kind, WatchedKinds
from pilotage.model import Node, Pod
from pilotage.observe.skipped_objects import SkippedObjects

log = logging.getLogger(__name__)

IndexT = TypeVar("IndexT", bound=ClusterIndex)
Content = Iterator[tuple[str, Any]]
POD: Final = "Pod on a node"
NODE: Final = "Node of the table"
"""What an index gets by methods of their own; everything else it gets by kind."""
_SHOWN: Final = {POD: "Pod", NODE: "Node"}


class Indexes:
    """All indexes that were asked for. Pods in here are those on nodes."""

    def __init__(
        self, content: Callable[[Mapping[str, str]], Content], skipped: SkippedObjects, kinds: WatchedKinds
    ) -> None:
        """`content` gives what there is: nodes as NODE, pods on nodes as POD, and the objects of some kinds, which it
        is given by the index's name for the kind and the cluster's key of it."""
        self._content = content
        self._kinds = kinds
        self._skipped = skipped
        self._all: dict[type[ClusterIndex], ClusterIndex] = {}
        """Each is an object of the class that is its key."""
        self._counting: list[ClusterIndex] = []
        """Those that want to hear of pods."""
        self._listening: dict[str, list[tuple[ClusterIndex, str]]] = {}
        """Those that want to hear of other objects, by the key of the kind, with their name for it."""
        self._left_out: dict[tuple[ClusterIndex, str], dict[str, None]] = {}
        """Index and kind -> identities of the objects that the index does not know because it raised for them."""
        self._emptied: dict[ClusterIndex, None] = {}
        """To be filled before they are asked."""

    def __len__(self) -> int:
        return len(self._all)

    def get(self, cls: type[IndexT]) -> IndexT:
        """The index of this class; made and filled on first use."""
        known: Any = self._all.get(cls)
        if known is None:
            kinds = self._keys_of(cls)
            known = self._all[cls] = cls()
            if cls.pod_added is not ClusterIndex.pod_added or cls.pod_removed is not ClusterIndex.pod_removed:
                self._counting.append(known)
            for name, key in kinds.items():
                self._listening.setdefault(key, []).append((known, name))
            # A cycle may be interrupted anywhere: until it is filled it counts as emptied.
            self._emptied[known] = None
            self._fill(known)
        elif self._emptied:
            self.settle()
        index: IndexT = known
        return index

    def _keys_of(self, cls: type[ClusterIndex]) -> dict[str, str]:
        """The index's names of its kinds, each with the key of the kind; UnknownKind if one is not watched."""
        named = {kind.name if isinstance(kind, Kind) else kind: self._kinds.key(kind) for kind in cls.kinds}
        return dict(sorted(named.items()))

    def settle(self) -> None:
        """Fill what was emptied."""
        while self._emptied:
            index = next(iter(self._emptied))
            version = getattr(index, "version", None)
            self._fill(index)
            after = getattr(index, "version", None)
            if isinstance(version, int) and isinstance(after, int) and after <= version:
                # Memories that hold until the version changes must see that it did.
                object.__setattr__(index, "version", version + 1)

    # --- what happens ------------------------------------------------------------------------------------------

    def pod_added(self, pod: Pod) -> None:
        for index in self._counting:
            if self._emptied and index in self._emptied:
                continue
            try:
                index.pod_added(pod, pod.node_name)
            except Exception as error:
                self._leave_out(index, POD, pod, error)

    def pod_removed(self, pod: Pod) -> None:
        for index in self._counting:
            if (self._left_out and self._let_in(index, POD, pod)) or (self._emptied and index in self._emptied):
                continue
            try:
                index.pod_removed(pod, pod.node_name)
            except Exception as error:
                self._leave_out(index, POD, pod, error, is_gone=True)

    def node_put(self, old: Node | None, new: Node) -> None:
        for index in self._all.values():
            self._put(index, NODE, old, new)

    def node_removed(self, node: Node) -> None:
        for index in self._all.values():
            self._removed(index, NODE, node)

    def object_put(self, kind: str, old: Any | None, new: Any) -> None:
        for index, name in self._listening.get(kind, ()):
            if self._left_out or self._emptied:
                self._put(index, name, old, new)
                continue
            # As `_put` does it: asked several times for every pod.
            try:
                index.object_put(name, old, new)
            except Exception as error:
                self._leave_out(index, name, new, error)

    def object_removed(self, kind: str, obj: Any) -> None:
        for index, name in self._listening.get(kind, ()):
            if self._left_out or self._emptied:
                self._removed(index, name, obj)
                continue
            try:
                index.object_removed(name, obj)
            except Exception as error:
                self._leave_out(index, name, obj, error, is_gone=True)

    def _put(self, index: ClusterIndex, kind: str, old: Any | None, new: Any) -> None:
        if self._left_out and self._let_in(index, kind, new):
            old = None
        if self._emptied and index in self._emptied:
            return
        try:
            if kind is NODE:
                index.node_put(old, new)
            else:
                index.object_put(kind, old, new)
        except Exception as error:
            self._leave_out(index, kind, new, error)

    def _removed(self, index: ClusterIndex, kind: str, obj: Any) -> None:
        if (self._left_out and self._let_in(index, kind, obj)) or (self._emptied and index in self._emptied):
            return
        try:
            if kind is NODE:
                index.node_removed(obj)
            else:
                index.object_removed(kind, obj)
        except Exception as error:
            self._leave_out(index, kind, obj, error, is_gone=True)

    # --- what an index raises for ------------------------------------------------------------------------------

    def _lacks(self, index: ClusterIndex, kind: str, obj: Any) -> bool:
        return _identity(obj) in self._left_out.get((index, kind), ())

    def _let_in(self, index: ClusterIndex, kind: str, obj: Any) -> bool:
        """It has changed, or it is gone; whether it was left out until now."""
        if not self._lacks(index, kind, obj):
            return False
        left_out = self._left_out[index, kind]
        del left_out[_identity(obj)]
        if not left_out:
            del self._left_out[index, kind]
        self._skipped.understood(_SHOWN.get(kind, kind), obj.key)
        return True

    def _leave_out(self, index: ClusterIndex, kind: str, obj: Any, error: Exception, *, is_gone: bool = False) -> None:
        shown = _SHOWN.get(kind, kind)
        log.debug("left out of an index: index=%s kind=%s object=%s", type(index).__name__, shown, obj.key)
        self._skipped.skip(shown, obj.key, "index", error)
        if is_gone:
            self._skipped.understood(shown, obj.key)
        else:
            self._left_out.setdefault((index, kind), {})[_identity(obj)] = None
        if index.keeps_more:
            _take_out(index, kind, obj)
        else:
            self._emptied[index] = None

    def _fill(self, index: ClusterIndex) -> None:
        """Twice if it raises, so that nothing half done stays; what it raises for then is taken out of it."""
        for _ in range(2):
            if not index.keeps_more:
                type(index).__init__(index)
            failures = [(kind, obj, error) for kind, obj in self._content(self._keys_of(type(index)))
                        if (error := self._updated(index, kind, obj)) is not None]  # fmt: skip
            for kind, obj, error in failures:
                self._leave_out(index, kind, obj, error)
                _take_out(index, kind, obj)
            if not failures or index.keeps_more:
                break
        self._emptied.pop(index, None)

    def _updated(self, index: ClusterIndex, kind: str, obj: Any) -> Exception | None:
        if self._left_out and self._lacks(index, kind, obj):
            return None
        try:
            if kind is POD:
                index.pod_added(obj, obj.node_name)
            elif kind is NODE:
                index.node_put(None, obj)
            else:
                index.object_put(kind, None, obj)
        except Exception as error:
            return error
        return None


def _identity(obj: Any) -> str:
    return cast(str, obj.uid or obj.key)


def _take_out(index: ClusterIndex, kind: str, obj: Any) -> None:
    with suppress(Exception):
        if kind is POD:
            index.pod_removed(obj, obj.node_name)
        elif kind is NODE:
            index.node_removed(obj)
        else:
            index.object_removed(kind, obj)
