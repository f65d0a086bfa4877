"""Writes that only a leader may make.

A process can be stopped for longer than a lease lasts (a paused machine, a debugger, a long collection of garbage) and
go on in the middle of a cycle. Every write asks once more whether we still lead: here, before it is prepared, and in
the transport (`fence`), when it has waited for a connection and its bytes go out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, cast

from pilotage.api.calls import ApiWriter
from pilotage.model.kinds import KindInfo


class NotLeading(Exception):
    """The lease has run out: another scheduler may be at work."""


def fence(is_leading: Callable[[], bool]) -> Callable[[], None]:
    """Raises NotLeading unless we lead."""

    def check() -> None:
        if not is_leading():
            raise NotLeading("not the leader any more: nothing is written")

    return check


class BundlingWriter(ApiWriter, Protocol):
    """A writer that can create several objects in one piece."""

    async def create_all(self, objects: Sequence[tuple[KindInfo, str, bytes]]) -> Sequence[Exception | None]:
        """Create objects (kind, namespace, body) that can wait for each other; returns what went wrong with each."""


def bundling_writer(writer: ApiWriter) -> BundlingWriter | None:
    """The writer, if it is one that `creates_together`."""
    return cast("BundlingWriter", writer) if getattr(writer, "creates_together", False) else None


class FencedWriter:
    """An `ApiWriter` that rejects everything while `is_leading` says no."""

    def __init__(self, writer: ApiWriter, is_leading: Callable[[], bool]) -> None:
        self._writer = writer
        self._check = fence(is_leading)

    async def get(self, kind: KindInfo, namespace: str, name: str) -> bytes:
        """Reading is always allowed."""
        return await self._writer.get(kind, namespace, name)

    async def bind(self, namespace: str, pod: str, uid: str, node: str) -> None:
        self._check()
        await self._writer.bind(namespace, pod, uid, node)

    async def create(self, kind: KindInfo, namespace: str, body: bytes) -> bytes:
        self._check()
        return await self._writer.create(kind, namespace, body)

    @property
    def creates_together(self) -> bool:
        return bundling_writer(self._writer) is not None

    async def create_all(self, objects: Sequence[tuple[KindInfo, str, bytes]]) -> Sequence[Exception | None]:
        """In one piece: it is asked once whether we lead."""
        self._check()
        writer = bundling_writer(self._writer)
        assert writer is not None, "it is asked beforehand"
        return await writer.create_all(objects)

    async def update(self, kind: KindInfo, namespace: str, name: str, body: bytes, *, subresource: str = "") -> bytes:
        self._check()
        return await self._writer.update(kind, namespace, name, body, subresource=subresource)

    async def patch(
        self,
        kind: KindInfo,
        namespace: str,
        name: str,
        body: bytes,
        *,
        content_type: str = "application/merge-patch+json",
        subresource: str = "",
    ) -> bytes:
        self._check()
        return await self._writer.patch(kind, namespace, name, body, content_type=content_type, subresource=subresource)

    async def delete(self, kind: KindInfo, namespace: str, name: str, options: bytes | None = None) -> bytes:
        self._check()
        return await self._writer.delete(kind, namespace, name, options)
