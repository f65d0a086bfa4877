"""A transport into the server in the same process: the client's own code, without sockets and tokens.

The scheduler in the sandbox, the simulator and the benchmarks use it; a real cluster is reached through the same
protocol (`kube.transport`), so that everything above cannot see the difference.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from pilotage.kube.transport import Response, StreamRefused, TransportError
from pilotage.sandbox.faults import ConnectionReset, Faults
from pilotage.sandbox.http.exchange import JSON, Request, ServerResponse
from pilotage.sandbox.http.server import ApiServer, Watch

_NO_QUERY: Final[Mapping[str, str]] = {}
_PLAIN_JSON: Final[Mapping[str, str]] = {"content-type": JSON}


class InProcessTransport:
    """Calls an `ApiServer` directly."""

    def __init__(self, server: ApiServer, faults: Faults | None = None) -> None:
        self._server = server
        self._faults = faults
        self._is_closed = False

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
        """Answered at once; only a durable store makes a write wait, so that no time limit is needed."""
        self._check_open()
        request = Request(method, path, query or _NO_QUERY, {"content-type": content_type}, body or b"")
        if self._faults is None:
            answer = await self._server.respond_trusted(request)
        else:
            answer = await self._answer(request)
        if isinstance(answer, Watch):
            answer.close()
            raise TransportError("a watch must be opened with stream()", sent=False)
        return _transported(answer)

    def stream(
        self, path: str, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._stream(path, query or _NO_QUERY)

    async def close(self) -> None:
        self._is_closed = True

    @asynccontextmanager
    async def _stream(self, path: str, query: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        self._check_open()
        answer = await self._answer(Request("GET", path, query))
        if isinstance(answer, ServerResponse):
            if answer.status >= 300:
                raise StreamRefused(_transported(answer))
            yield _single(answer.body)
            return
        try:
            yield aiter(answer)
        finally:
            answer.close()

    async def _answer(self, request: Request) -> ServerResponse | Watch:
        if self._faults is None:
            return await self._server.respond_trusted(request)
        try:
            return await self._faults.around(request, self._server.respond_trusted)
        except ConnectionReset as error:
            raise TransportError("the connection was reset", sent=True) from error

    def _check_open(self) -> None:
        if self._is_closed:
            raise TransportError("the transport is closed", sent=False)


def _transported(answer: ServerResponse) -> Response:
    if not answer.headers and answer.content_type == JSON:
        return Response(answer.status, _PLAIN_JSON, answer.body)
    headers = {"content-type": answer.content_type}
    headers.update(answer.headers)
    return Response(answer.status, headers, answer.body)


async def _single(body: bytes) -> AsyncIterator[bytes]:
    yield body
