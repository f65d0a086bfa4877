"""Answers as a server may send them, byte by byte: whole, in pieces, without a length, not HTTP at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from pilotage.kube.http_transport import HttpSettings, HttpTransport
from pilotage.kube.transport import TransportError

from .loopback import transport_to

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@asynccontextmanager
async def answering(*conversations: Sequence[bytes], idle_seconds: float = 60.0) -> AsyncIterator[HttpTransport]:
    """Each connection in turn answers one request per piece and is then closed; b"" closes without an answer."""
    waiting = list(conversations)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in waiting.pop(0):
            await reader.readuntil(b"\r\n\r\n")
            if not answer:
                break
            for cut in range(0, len(answer), 7):
                writer.write(answer[cut : cut + 7])
                await writer.drain()
                await asyncio.sleep(0)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = HttpSettings(idle_seconds=idle_seconds)
    async with server, transport_to(f"http://127.0.0.1:{port}", settings=settings) as transport:
        yield transport


def plain(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (plain(b"abc" * 100), b"abc" * 100),
        (plain(b""), b""),
        (CHUNKED + b"5\r\nhello\r\n3\r\n, x\r\n0\r\n\r\n", b"hello, x"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nup to the end", b"up to the end"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
    ids=["length", "empty", "chunked", "until the end", "no content"],
)
async def test_every_way_to_send_a_body_is_understood(answer: bytes, body: bytes) -> None:
    async with answering([answer]) as it:
        assert (await it.request("GET", "/")).body == body


async def test_what_is_no_http_is_reported() -> None:
    async with answering([b"SSH-2.0-OpenSSH_9.2\r\n\r\n"]) as it:
        with pytest.raises(TransportError, match="the answer is not HTTP"):
            await it.request("GET", "/")


async def test_a_connection_that_the_server_closed_while_it_idled_does_no_harm() -> None:
    async with answering([plain(b"1")], [plain(b"2")]) as it:
        assert (await it.request("POST", "/", body=b"")).body == b"1"
        await asyncio.sleep(0.05)
        assert (await it.request("POST", "/", body=b"")).body == b"2"


async def test_a_read_on_a_connection_that_closes_at_that_moment_is_repeated() -> None:
    async with answering([plain(b"1"), b""], [plain(b"2")]) as it:
        await it.request("GET", "/")
        assert (await it.request("GET", "/")).body == b"2"


async def test_a_write_on_a_connection_that_closes_at_that_moment_is_not() -> None:
    async with answering([plain(b"1"), b""], [plain(b"2")]) as it:
        await it.request("GET", "/")
        with pytest.raises(TransportError) as caught:
            await it.request("POST", "/", body=b"")
        assert caught.value.sent


async def test_a_connection_that_idled_too_long_is_not_used_again() -> None:
    async with answering([plain(b"1"), plain(b"old")], [plain(b"new")], idle_seconds=0.0) as it:
        await it.request("GET", "/")
        assert (await it.request("GET", "/")).body == b"new"


async def test_a_request_that_was_given_up_does_not_leave_its_answer_to_the_next() -> None:
    async with answering([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"], [plain(b"mine")]) as it:
        with pytest.raises((TransportError, TimeoutError)):
            async with asyncio.timeout(0.05):
                await it.request("GET", "/")
        assert (await it.request("GET", "/")).body == b"mine"


@pytest.mark.parametrize("gathers", [False, True])
async def test_pieces_of_a_stream_that_come_close_together_are_handed_over_together(gathers: bool) -> None:
    pieces = [b"%03d\n" % number for number in range(50)]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED)
        for piece in pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            for _ in range(5):
                await asyncio.sleep(0)
        writer.write(b"0\r\n\r\n")

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = HttpSettings(gather_seconds=0.2 if gathers else 0.0)
    async with server, transport_to(f"http://127.0.0.1:{port}", settings=settings) as it, it.stream("/") as chunks:
        arrived = [chunk async for chunk in chunks]
    assert b"".join(arrived) == b"".join(pieces)
    assert arrived[0] == pieces[0], "the first does not wait for others"
    assert (len(arrived) < 10) is gathers
