"""An API server that is not there: for engines that decide and never write."""

from __future__ import annotations

from pilotage.model.kinds import KindInfo


class NoApi:
    """Rejects every write."""

    async def get(self, kind: KindInfo, namespace: str, name: str) -> bytes:
        raise RuntimeError("this engine only decides, it does not ask")

    async def bind(self, namespace: str, pod: str, uid: str, node: str) -> None:
        raise RuntimeError("this engine only decides, it does not write")

    async def create(self, kind: KindInfo, namespace: str, body: bytes) -> bytes:
        raise RuntimeError("this engine only decides, it does not write")

    async def update(self, kind: KindInfo, namespace: str, name: str, body: bytes, *, subresource: str = "") -> bytes:
        raise RuntimeError("this engine only decides, it does not write")

    async def patch(
        self,
        kind: KindInfo,
        namespace: str,
        name: str,
        body: bytes,
        *,
        content_type: str = "",
        subresource: str = "",
    ) -> bytes:
        raise RuntimeError("this engine only decides, it does not write")

    async def delete(self, kind: KindInfo, namespace: str, name: str, options: bytes | None = None) -> bytes:
        raise RuntimeError("this engine only decides, it does not write")
