"""Create several objects, in one piece if the writer can do that."""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.api.calls import ApiWriter
from pilotage.model.kinds import KindInfo


async def create_all(writer: ApiWriter, objects: Sequence[tuple[KindInfo, str, bytes]]) -> Sequence[Exception | None]:
    """Create objects (kind, namespace, body) that can wait for each other; returns what went wrong with each."""
    together = getattr(writer, "create_all", None)
    if together is not None:
        errors: Sequence[Exception | None] = await together(objects)
        return errors
    return [await _error_of(writer, *one) for one in objects]


async def _error_of(writer: ApiWriter, kind: KindInfo, namespace: str, body: bytes) -> Exception | None:
    try:
        await writer.create(kind, namespace, body)
    except Exception as error:
        return error
    return None
