"""Owners that go once everything in them has gone: namespaces and custom resource definitions.

Deleting one deletes its content first; content may take its time (a pod's grace period, a finalizer). Here is noted who
waits for what, so that the removal of the last thing tells whose turn it is. Nothing new may be created in an owner
that is draining, so what it waits for only shrinks.
"""

from __future__ import annotations

from collections.abc import Iterable

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
