"""What the API server has and the watch has not shown yet.

Between the answer to a write and its watch event the newest object that we have is older than what we know. Until an
object of that version (or a later one) arrives, what we know is laid over every older one: the change of a done call,
or a whole object that was read.
"""

from __future__ import annotations

from collections.abc import Callable, KeysView
from typing import Any


def is_at_least(version: str, other: str) -> bool:
    """Whether `version` is that of `other` or a later one. "" is before everything.

    Kubernetes guarantees (since 1.35 in writing, and always in fact) that the versions of one object are whole numbers
    that grow. A server that breaks this is only trusted about equality.
    """
    if version == other:
        return True
    if version.isdigit() and other.isdigit():
        return int(version) >= int(other)
    return not other


Layer = Callable[[Any], Any]
"""Makes of an older version of the object what is known to be."""


class Unseen:
    """Versions and what they brought, by object, oldest first."""

    def __init__(self) -> None:
        self._by_key: dict[str, list[tuple[str, Layer]]] = {}
        self.keys: KeysView[str] = self._by_key.keys()
        """Of the objects that something is known of; always up to date."""

    def __len__(self) -> int:
        return len(self._by_key)

    def add_change(self, key: str, version: str, layer: Layer) -> None:
        self._by_key.setdefault(key, []).append((version, layer))

    def add_object(self, key: str, obj: Any) -> None:
        """It contains every change up to its version."""
        self._by_key[key] = [(obj.resource_version, lambda older: obj)]

    def arrived(self, key: str, version: str) -> None:
        """The watch shows this version."""
        layers = self._by_key.get(key)
        if layers is None:
            return
        left = [layer for layer in layers if not is_at_least(version, layer[0])]
        if left:
            self._by_key[key] = left
        else:
            del self._by_key[key]

    def forget(self, key: str) -> None:
        self._by_key.pop(key, None)

    def laid_over(self, key: str, obj: Any) -> Any:
        """The object as it is known to be on the server."""
        layers = self._by_key.get(key)
        if layers is None:
            return obj
        version = obj.resource_version
        for at, layer in layers:
            if not is_at_least(version, at):
                obj = layer(obj)
        return obj
