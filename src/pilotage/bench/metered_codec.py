"""A codec that adds up the CPU time of decoding: taking in a pod's own events is part of the scheduler's share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pilotage.clock import thread_cpu_seconds
from pilotage.model.codec import Codec
from pilotage.model.kinds import KindInfo, ListPage, WatchEvent


class MeteredCodec(Codec[Any]):
    """Decodes like the codec that it wraps, and keeps the time."""

    def __init__(self, inner: Codec[Any]) -> None:
        self._inner = inner
        self.cpu_seconds = 0.0

    def decode(self, data: bytes) -> Any:
        return self._inner.decode(data)

    def decode_list(self, data: bytes) -> ListPage:
        return self._inner.decode_list(data)

    def decode_events(self, data: bytes) -> list[WatchEvent]:
        started = thread_cpu_seconds()
        events = self._inner.decode_events(data)
        self.cpu_seconds += thread_cpu_seconds() - started
        return events


def metered(kind: KindInfo) -> tuple[KindInfo, MeteredCodec]:
    codec = MeteredCodec(kind.codec)
    return replace(kind, codec=codec), codec
