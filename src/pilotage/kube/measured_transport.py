"""A transport that counts and times what goes through it, under client-go's names.

What a stream costs is no duration: it is counted when it is opened. Writes that are refused are counted apart.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

from pilotage.clock import Clock
from pilotage.kube.refused_writes import RefusedWrites
from pilotage.kube.transport import (
    Answered,
    Response,
    StreamRefused,
    Transport,
    TransportError,
    WireRequest,
    bundling,
)
from pilotage.observe.metrics import Metrics

_NO_ANSWER: Final = "<error>"


class MeasuredTransport:
    """Any transport, measured. `server` is the address that the requests go to."""

    def __init__(self, transport: Transport, server: str, metrics: Metrics, clock: Clock) -> None:
        self._transport = transport
        self._host = urlsplit(server).netloc.rpartition("@")[2]
        self._requests = metrics.rest_client_requests_total
        self._durations = metrics.rest_client_request_duration_seconds
        self._refused = RefusedWrites(metrics.refused_writes_total, clock)
        self._clock = clock

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_seconds: float | None = None,
    ) -> Response:
        started = self._clock.monotonic()
        try:
            answer = await self._transport.request(
                method, path, query=query, body=body, content_type=content_type, timeout_seconds=timeout_seconds
            )
        except TransportError:
            self._requests.add(_NO_ANSWER, method, self._host)
            raise
        self._note(method, path, answer, self._clock.monotonic() - started)
        return answer

    @property
    def sends_together(self) -> bool:
        return bundling(self._transport) is not None

    async def send_all(self, requests: Sequence[WireRequest]) -> list[Answered]:
        """Each has taken its part of the whole."""
        started = self._clock.monotonic()
        inner = bundling(self._transport)
        assert inner is not None, "it is asked beforehand"
        answers = await inner.send_all(requests)
        seconds = (self._clock.monotonic() - started) / len(requests)
        for request, answer in zip(requests, answers, strict=True):
            if isinstance(answer, TransportError):
                self._requests.add(_NO_ANSWER, request.method, self._host)
            else:
                self._note(request.method, request.path, answer, seconds)
        return answers

    def _note(self, method: str, path: str, answer: Response, seconds: float) -> None:
        self._requests.add(str(answer.status), method, self._host)
        self._durations.observe(seconds, method, self._host)
        self._refused.note(method, path, answer)

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        code = _NO_ANSWER
        try:
            async with self._transport.stream(path, query) as chunks:
                code = "200"
                self._requests.add(code, "GET", self._host)
                yield chunks
        except StreamRefused as refused:
            code = str(refused.response.status)
            self._requests.add(code, "GET", self._host)
            raise
        except TransportError:
            if code == _NO_ANSWER:
                self._requests.add(code, "GET", self._host)
            raise

    async def close(self) -> None:
        await self._transport.close()
