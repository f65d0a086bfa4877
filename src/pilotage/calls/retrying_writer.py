"""A writer that does not let go at the first hiccup of the API server.

An internal error, an overloaded server or a connection that could not be made says nothing about the call: it is tried
again, a few times and soon. Everything else (a conflict, a pod that is gone) is an answer, and is the caller's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from pilotage.api.calls import ApiWriter
from pilotage.clock import Clock
from pilotage.model.kinds import KindInfo

T = TypeVar("T")

_PAUSES: Final = (0.01, 0.05, 0.25)
_PASSING: Final = frozenset({500, 503})


class RetryingWriter:
    """Tries bindings and status patches up to four times."""

    def __init__(self, writer: ApiWriter, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock

    async def bind(self, namespace: str, pod: str, uid: str, node: str) -> None:
        await self._persistent(lambda: self._writer.bind(namespace, pod, uid, node))

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
        return await self._persistent(
            lambda: self._writer.patch(kind, namespace, name, body, content_type=content_type, subresource=subresource)
        )

    async def create(self, kind: KindInfo, namespace: str, body: bytes) -> bytes:
        return await self._writer.create(kind, namespace, body)

    async def update(self, kind: KindInfo, namespace: str, name: str, body: bytes, *, subresource: str = "") -> bytes:
        return await self._writer.update(kind, namespace, name, body, subresource=subresource)

    async def delete(self, kind: KindInfo, namespace: str, name: str, options: bytes | None = None) -> bytes:
        return await self._writer.delete(kind, namespace, name, options)

    async def _persistent(self, call: Callable[[], Awaitable[T]]) -> T:
        for pause in _PAUSES:
            try:
                return await call()
            except Exception as error:
                if not _is_passing(error):
                    raise
            await self._clock.sleep(pause)
        return await call()


def _is_passing(error: Exception) -> bool:
    was_never_sent = getattr(error, "sent", None) is False
    return was_never_sent or getattr(error, "code", None) in _PASSING
