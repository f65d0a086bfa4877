"""An API writer that keeps what it was asked to write."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from pilotage.model.kinds import KindInfo


@dataclass(frozen=True)
class Write:
    verb: str
    kind: str
    key: str
    body: Any = None
    options: dict[str, str] = field(default_factory=dict)


class CapturedWrites:
    def __init__(self) -> None:
        self.writes: list[Write] = []

    async def get(self, kind: KindInfo, namespace: str, name: str) -> bytes:
        raise AssertionError("no call looks")

    async def bind(self, namespace: str, pod: str, uid: str, node: str) -> None:
        self.writes.append(Write("bind", "Pod", f"{namespace}/{pod}", {"uid": uid, "node": node}))

    async def create(self, kind: KindInfo, namespace: str, body: bytes) -> bytes:
        self.writes.append(Write("create", kind.kind, namespace, msgspec.json.decode(body)))
        return body

    async def patch(
        self, kind: KindInfo, namespace: str, name: str, body: bytes, *, content_type: str = "", subresource: str = ""
    ) -> bytes:
        options = {"content_type": content_type, "subresource": subresource}
        self.writes.append(Write("patch", kind.kind, f"{namespace}/{name}", msgspec.json.decode(body), options))
        return body

    async def update(self, kind: KindInfo, namespace: str, name: str, body: bytes, *, subresource: str = "") -> bytes:
        raise AssertionError("no call updates")

    async def delete(self, kind: KindInfo, namespace: str, name: str, options: bytes | None = None) -> bytes:
        raise AssertionError("no call deletes")
