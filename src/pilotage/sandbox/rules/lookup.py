"""How admission reads other objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Lookup(Protocol):
    """The namespace of a cluster-scoped resource is ""."""

    def get(self, resource: str, namespace: str, name: str) -> dict[str, Any] | None: ...

    def list(self, resource: str, namespace: str | None = None) -> Sequence[dict[str, Any]]: ...
