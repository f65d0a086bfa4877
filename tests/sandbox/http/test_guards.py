"""What a client may cost before anybody knows who it is, and what nobody may ask for."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from pilotage.sandbox.http import guarded_protocol
from pilotage.sandbox.http.asgi import Serving, serve
from pilotage.sandbox.http.server import ApiServer
from pilotage.sandbox.http.tls import make_tls

from .test_asgi import MAPS, TOKEN, server

__all__ = ["server"]

Answer = tuple[int, dict[str, str], Any]


async def connected(serving: Serving) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", serving.port)


async def answered(reader: asyncio.StreamReader) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    return int(head[0].split()[1]), headers, json.loads(await reader.readexactly(int(headers["content-length"])))


async def asked(serving: Serving, *pieces: bytes) -> Answer:
    reader, writer = await connected(serving)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        return await answered(reader)
    finally:
        writer.close()


def head(*headers: str, path: str = MAPS) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


# --- impersonation and names ------------------------------------------------------------------------------------------


async def test_who_acts_as_another_is_warned_that_nobody_asks_what_that_one_may_do(server: ApiServer) -> None:
    reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    async with serve(server) as serving, aiohttp.ClientSession(serving.url, headers=TOKEN) as client:
        another = {"Impersonate-User": "ann", "Impersonate-Group": "staff"}
        async with client.post(reviews, json={}, headers=another) as answer:
            user = (await answer.json())["status"]["userInfo"]
            assert (user["username"], user["groups"]) == ("ann", ["staff", "system:authenticated"])
            assert "everybody may do everything" in answer.headers["warning"]
        async with client.post(reviews, json={}) as answer:
            assert (await answer.json())["status"]["userInfo"]["username"] == "sandbox-admin"
            assert "warning" not in answer.headers


@pytest.mark.parametrize("header", ["impersonate-group", "Impersonate-Uid", "Impersonate-Extra-x"])
async def test_nobody_in_particular_cannot_be_impersonated(server: ApiServer, header: str) -> None:
    headers = {**TOKEN, header: "system:masters"}
    async with serve(server) as serving, aiohttp.ClientSession(serving.url, headers=headers) as client:
        answer = await client.get(MAPS)
        status = await answer.json()
        assert (answer.status, status["kind"]) == (400, "Status") and "without a user" in status["message"]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:1", 200),
        ("localhost", 200),
        ("LOCALHOST:8080", 200),
        ("[::1]:5", 200),
        ("127.1.2.3", 200),
        ("evil.example.com", 403),
        ("evil.example.com:8080", 403),
        ("127.0.0.1.evil.example.com", 403),
        ("10.0.0.1", 403),
        ("0.0.0.0", 403),
        ("", 403),
    ],
)
async def test_a_foreign_name_is_not_ours(server: ApiServer, host: str, status: int) -> None:
    request = f"GET /t/secret{MAPS} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    async with serve(server) as serving:
        code, _, told = await asked(serving, request)
        assert code == status
        assert status == 200 or "127.0.0.1" in told["message"]


async def test_with_a_certificate_the_name_is_the_clients_business(server: ApiServer, tmp_path: Any) -> None:
    tls = make_tls(tmp_path)
    async with serve(server, tls=tls) as serving, aiohttp.ClientSession(headers=TOKEN) as client:
        url = f"https://127.0.0.1:{serving.port}{MAPS}"
        async with client.get(url, headers={"Host": "sandbox.example.com"}, ssl=False) as answer:
            assert answer.status == 200


# --- heads ------------------------------------------------------------------------------------------------------------


async def test_a_head_may_be_as_large_as_a_client_needs(server: ApiServer) -> None:
    async with serve(server) as serving:
        code, _, _ = await asked(serving, head(*(f"X-{at}: y" for at in range(90)), path=f"/t/secret{MAPS}"))
        assert code == 200
        code, _, _ = await asked(serving, head(f"X: {'y' * 100_000}", path=f"/t/secret{MAPS}"))
        assert code == 200


@pytest.mark.parametrize(
    "request_head",
    [
        pytest.param(head(*(f"X-{at}: y" for at in range(101))), id="many"),
        pytest.param(head(f"X: {'y' * 140_000}"), id="long"),
        pytest.param(head(path="/" + "a" * 140_000), id="path"),
    ],
)
async def test_a_head_that_is_too_large_is_rejected_before_the_token_is_looked_at(
    server: ApiServer, request_head: bytes
) -> None:
    async with serve(server) as serving:
        code, headers, told = await asked(serving, request_head)
        assert (code, headers["connection"], told["kind"]) == (431, "close", "Status")
        assert "at most 100 headers and 131072 bytes" in told["message"]


async def test_a_second_request_on_a_connection_has_the_same_limits(server: ApiServer) -> None:
    async with serve(server) as serving:
        reader, writer = await connected(serving)
        for expected in (200, 200, 431):
            more = [f"X-{at}: y" for at in range(101)] if expected == 431 else []
            writer.write(head(*more, path=f"/t/secret{MAPS}"))
            assert (await answered(reader))[0] == expected
        assert await reader.read() == b""
        writer.close()


async def test_a_head_that_never_ends_is_not_kept(server: ApiServer) -> None:
    """One header that grows piece by piece: the parser itself would collect it without limit."""
    async with serve(server) as serving:
        reader, writer = await connected(serving)
        writer.write(b"GET / HTTP/1.1\r\nX: ")
        sent = 0
        try:
            while sent < 4_000_000:
                writer.write(b"y" * 10_000)
                await writer.drain()
                sent += 10_000
        except ConnectionError:
            pass
        assert sent < 4_000_000 or (await answered(reader))[0] == 431
        writer.close()


async def test_what_is_not_http_is_answered_with_400(server: ApiServer) -> None:
    async with serve(server) as serving:
        code, _, told = await asked(serving, b"\x16\x03\x01 nonsense\r\n\r\n")
        assert (code, told["status"]) == (400, "Failure")


async def test_a_body_beyond_the_limit_of_the_api_server_is_rejected(server: ApiServer) -> None:
    async with (
        serve(server) as serving,
        aiohttp.ClientSession(serving.url, headers=TOKEN) as client,
        client.post(MAPS, data=b"x" * (3 * 1024 * 1024 + 1)) as answer,
    ):
        assert (answer.status, (await answer.json())["reason"]) == (413, "RequestEntityTooLarge")


# --- time and number --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "beginning",
    [
        pytest.param(b"", id="silent"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: loc", id="head"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc", id="body"),
    ],
)
async def test_a_request_that_does_not_arrive_is_given_up(
    server: ApiServer, beginning: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded_protocol, "REQUEST_SECONDS", 0.1)
    async with serve(server) as serving:
        code, headers, _ = await asked(serving, beginning)
        assert (code, headers["connection"]) == (408, "close")


async def test_a_watch_is_no_request_that_is_late(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_protocol, "REQUEST_SECONDS", 0.1)
    async with serve(server) as serving:
        reader, writer = await connected(serving)
        writer.write(head(path=f"/t/secret{MAPS}?watch=1&timeoutSeconds=3"))
        begun = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in begun
        rest = await reader.readuntil(b"0\r\n\r\n")
        assert b"408" not in rest
        writer.close()


async def test_a_connection_too_many_is_sent_away(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_protocol, "MOST_CONNECTIONS", 3)
    async with serve(server) as serving:
        held = [await connected(serving) for _ in range(3)]
        for _, writer in held:
            writer.write(head(path=f"/t/secret{MAPS}"))
        assert [(await answered(reader))[0] for reader, _ in held] == [200] * 3
        code, headers, told = await asked(serving)
        assert (code, headers["connection"]) == (503, "close") and "3 connections already" in told["message"]
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        code, _, _ = await asked(serving, head(path=f"/t/secret{MAPS}"))
        assert code == 200
