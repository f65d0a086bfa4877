"""What is counted of requests, and what of streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pilotage.kube.measured_transport import MeasuredTransport
from pilotage.kube.transport import Response, StreamRefused, TransportError
from pilotage.observe.metrics import Metrics
from pilotage.testing import VirtualClock

HOST = "api.example:6443"


class Scripted:
    """Answers with what it was given."""

    def __init__(self, outcome: Response | Exception) -> None:
        self.outcome = outcome
        self.is_closed = False

    async def request(self, method: str, path: str, **options: Any) -> Response:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        if isinstance(self.outcome, Exception):
            raise self.outcome

        async def chunks() -> AsyncIterator[bytes]:
            yield b"one"
            raise TransportError("broken", sent=True)

        yield chunks()

    async def close(self) -> None:
        self.is_closed = True


def measured(outcome: Response | Exception) -> tuple[MeasuredTransport, Metrics]:
    metrics = Metrics()
    return MeasuredTransport(Scripted(outcome), f"https://user@{HOST}/k8s", metrics, VirtualClock()), metrics


async def test_request_is_counted_by_answer_and_timed() -> None:
    transport, metrics = measured(Response(409, {}, b""))
    assert (await transport.request("POST", "/api")).status == 409
    assert metrics.rest_client_requests_total.values() == {("409", "POST", HOST): 1}
    assert metrics.rest_client_request_duration_seconds.count("POST", HOST) == 1


async def test_request_without_an_answer_is_an_error() -> None:
    transport, metrics = measured(TransportError("no way", sent=False))
    with pytest.raises(TransportError):
        await transport.request("GET", "/api")
    assert metrics.rest_client_requests_total.values() == {("<error>", "GET", HOST): 1}


async def test_stream_is_counted_once_however_it_ends() -> None:
    transport, metrics = measured(Response(200, {}, b""))
    with pytest.raises(TransportError):
        async with transport.stream("/api") as chunks:
            _ = [chunk async for chunk in chunks]
    assert metrics.rest_client_requests_total.values() == {("200", "GET", HOST): 1}
    assert metrics.rest_client_request_duration_seconds.lines() == {}


@pytest.mark.parametrize(
    ("outcome", "code"),
    [(StreamRefused(Response(410, {}, b"")), "410"), (TransportError("no way", sent=False), "<error>")],
)
async def test_stream_that_is_refused_is_counted_by_its_answer(outcome: Exception, code: str) -> None:
    transport, metrics = measured(outcome)
    with pytest.raises(type(outcome)):
        async with transport.stream("/api"):
            pass
    assert metrics.rest_client_requests_total.values() == {(code, "GET", HOST): 1}


async def test_a_write_that_is_refused_is_counted_by_verb_resource_and_reason() -> None:
    transport, metrics = measured(Response(403, {}, b""))
    await transport.request("DELETE", "/api/v1/namespaces/default/pods/p")
    assert metrics.refused_writes_total.values() == {("delete", "pods", "Forbidden"): 1}
