"""The namespaces and their labels, which the namespace selectors of terms refer to."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any, ClassVar

from pilotage.api import ClusterIndex
from pilotage.model.label_matcher import LabelMatcher

_versions = count(1)
_NO_LABELS: Mapping[str, str] = {}


class Namespaces(ClusterIndex):
    """Labels of all namespaces, by name."""

    kinds: ClassVar[frozenset[str]] = frozenset({"Namespace"})

    def __init__(self) -> None:
        self._labels: dict[str, Mapping[str, str]] = {}
        self.version = next(_versions)
        """Changes whenever a selector may select other namespaces; never the same in two clusters."""

    def object_put(self, kind: str, old: Any | None, new: Any) -> None:
        if old is None or old.labels != new.labels:
            self._labels[new.name] = new.labels
            self.version = next(_versions)

    def object_removed(self, kind: str, obj: Any) -> None:
        if self._labels.pop(obj.name, None) is not None:
            self.version = next(_versions)

    def labels_of(self, name: str) -> Mapping[str, str]:
        """The labels of a namespace; the same object until they change."""
        return self._labels.get(name, _NO_LABELS)

    def __len__(self) -> int:
        return len(self._labels)

    def selected_by(self, selector: LabelMatcher) -> frozenset[str]:
        return frozenset(name for name, labels in self._labels.items() if selector.matches(labels))
