"""Writes that only a leader may make.

A process can be stopped for longer than a lease lasts (a paused machine, a debugger, a long collection of garbage) and
go on in the middle of a cycle. Every write asks once more whether we still lead: here, before it is prepared, and in
the transport (`fence`), when it has waited for a connection and its bytes go out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pilotage.api.calls import ApiWriter
from pilotage.calls.creating import create_all
from pilotage.model.kinds import KindInfo


class NotLeading(Exception):
    """The lease has run out: another scheduler may be at work."""


def fence(is_leading: Callable[[], bool]) -> Callable[[], None]:
    """Raises NotLeading unless we lead."""

    def check() -> None:
        if not is_leading():
            raise NotLeading("not the leader any more: nothing is written")

    return check


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

    async def create_all(self, objects: Sequence[tuple[KindInfo, str, bytes]]) -> Sequence[Exception | None]:
        self._check()
        return await create_all(self._writer, objects)

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
