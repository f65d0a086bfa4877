"""Owners that go once everything in them has gone: namespaces and custom resource definitions.

Deleting one deletes its content first; content may take its time (a pod's grace period, a finalizer). Here is noted who
waits for what, so that the removal of the last thing says whose turn it is. Nothing new may be created in an owner
that is draining, so what it waits for only shrinks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pilotage.sandbox.storage.records import Key


class Terminating:
    """Which owners are draining, and what each still holds."""

    def __init__(self) -> None:
        self._left: dict[Key, set[Key]] = {}
        self._owner_of: dict[Key, list[Key]] = {}

    def is_draining(self, owner: Key) -> bool:
        return bool(self._left) and owner in self._left

    def begin(self, owner: Key, content: Iterable[Key]) -> None:
        """`owner` waits until all of `content` is removed."""
        left = self._left[owner] = set(content)
        for key in left:
            self._owner_of.setdefault(key, []).append(owner)

    def removed(self, key: Key) -> list[Key]:
        """Note that `key` is gone from the store; returns the owners that are empty now."""
        if not self._left:
            return []
        emptied = []
        for owner in self._owner_of.pop(key, ()):
            left = self._left.get(owner)
            if left is not None:
                left.discard(key)
                if not left:
                    emptied.append(owner)
        return emptied

    def is_empty(self, owner: Key) -> bool:
        return not self._left.get(owner)

    def end(self, owner: Key) -> None:
        """The owner itself is gone."""
        for key in self._left.pop(owner, ()):
            others = [other for other in self._owner_of.pop(key, ()) if other != owner]
            if others:
                self._owner_of[key] = others


def remaining_content(remaining: Iterable[Mapping[str, Any]], now: str) -> list[dict[str, str]]:
    """The conditions of a namespace whose content, given as metadata with its resource, is on its way out."""
    listed = list(remaining)
    kinds = Counter(str(metadata["resource"]) for metadata in listed)
    finalizers = Counter(name for metadata in listed for name in metadata.get("finalizers") or ())
    resources = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(kinds.items()))
    holders = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    deleted = "All content successfully deleted, may be waiting on finalization"
    rows = [
        ("NamespaceDeletionDiscoveryFailure", False, "ResourcesDiscovered", "All resources successfully discovered"),
        ("NamespaceDeletionGroupVersionParsingFailure", False, "ParsedGroupVersions",
         "All legacy kube types successfully parsed"),
        ("NamespaceDeletionContentFailure", False, "ContentDeleted", deleted),
        ("NamespaceContentRemaining", bool(kinds), "SomeResourcesRemain" if kinds else "ContentRemoved",
         f"Some resources are remaining: {resources}" if kinds else "All content successfully removed"),
        ("NamespaceFinalizersRemaining", bool(finalizers),
         "SomeFinalizersRemain" if finalizers else "ContentHasNoFinalizers",
         f"Some content in the namespace has finalizers remaining: {holders}" if finalizers
         else "All content-preserving finalizers finished"),
    ]  # fmt: skip
    return [
        {"type": kind, "status": str(truth), "lastTransitionTime": now, "reason": reason, "message": message}
        for kind, truth, reason, message in rows
    ]
