"""API groups that other code answers: what an APIService is on a real cluster, without a second server.

The API server of the sandbox has them in its discovery, lets in whom it knows, and hands over everything below
/apis/<group>. They come after its own groups, so that a name that both have means the stored kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pilotage.sandbox.http.exchange import Request, ServerResponse

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExtensionGroup:
    """`answer` also serves the discovery of the group itself: /apis/<name> and /apis/<name>/<version>."""

    name: str
    entry: Document
    """In /apis."""
    aggregated: Document
    """In the aggregated form of /apis."""
    answer: Callable[[Request], ServerResponse]

    @property
    def path(self) -> str:
        return f"/apis/{self.name}"


class Extensions:
    """All groups that others answer."""

    def __init__(self) -> None:
        self._groups: dict[str, ExtensionGroup] = {}
        self.paths: tuple[str, ...] = ()
        """How the paths of all groups begin; other paths need not be looked for."""

    def __iter__(self) -> Iterator[ExtensionGroup]:
        return iter(self._groups.values())

    def add(self, group: ExtensionGroup) -> None:
        self._groups[group.path] = group
        self.paths = tuple(self._groups)

    def find(self, path: str) -> ExtensionGroup | None:
        """Who answers this path."""
        return self._groups.get("/".join(path.split("/", 3)[:3]))
