"""The HTTP transport over real sockets: what it sends, what it keeps open, and how failures are told apart."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from pilotage.kube.credentials import StaticCredentials
from pilotage.kube.http_transport import HttpSettings
from pilotage.kube.source import WatchedFile
from pilotage.kube.transport import StreamRefused, TransportError

from .loopback import served, transport_to, unused_url
from .manual_clock import ManualClock


async def test_request_carries_everything_and_returns_the_whole_answer() -> None:
    seen: list[tuple[str, str, str, bytes, str | None, str | None]] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        body = await request.read()
        headers = request.headers
        seen.append(
            (
                request.method,
                request.raw_path,
                str(dict(request.query)),
                body,
                headers.get("Authorization"),
                headers.get("Content-Type"),
            )
        )
        return web.Response(status=409, body=b"x" * 3_000_000, headers={"Retry-After": "3"})

    async with served(handler) as url, transport_to(url + "/prefix", credentials=StaticCredentials(token="t")) as it:
        answer = await it.request(
            "PATCH", "/api/v1/a b", query={"s": "a in (b,c)", "é": "&"}, body=b"{}", content_type="x/y"
        )
    assert (answer.status, len(answer.body), answer.headers["retry-after"]) == (409, 3_000_000, "3")
    method, path, query, body, authorization, content_type = seen[0]
    assert (method, body, authorization, content_type) == ("PATCH", b"{}", "Bearer t", "x/y")
    assert path.startswith("/prefix/api/v1/a%20b?")
    assert query == "{'s': 'a in (b,c)', 'é': '&'}"


async def test_a_path_cannot_smuggle_another_request() -> None:
    paths: list[str] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        paths.append(request.path)
        return web.Response()

    async with served(handler) as url, transport_to(url) as it:
        await it.request("GET", "/api/x HTTP/1.1\r\nEvil: yes\r\n\r\nGET /y?a#b")
    assert paths == ["/api/x HTTP/1.1\r\nEvil: yes\r\n\r\nGET /y?a#b"]


async def test_connections_are_reused_and_bounded() -> None:
    ports: set[object] = set()
    together, peak = 0, 0

    async def handler(request: web.BaseRequest) -> web.Response:
        nonlocal together, peak
        assert request.transport is not None
        ports.add(request.transport.get_extra_info("peername"))
        together += 1
        peak = max(peak, together)
        await asyncio.sleep(0.002)
        together -= 1
        return web.Response()

    async with served(handler) as url, transport_to(url, settings=HttpSettings(connections=3)) as it:
        for _ in range(3):
            await asyncio.gather(*(it.request("GET", "/") for _ in range(20)))
    assert len(ports) <= 3
    assert peak == 3


async def test_streams_do_not_use_up_the_pool_of_requests() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if request.path == "/stream":
            await response.write(b"x")
            await asyncio.Event().wait()
        return response

    async def open_and_hold(ready: asyncio.Barrier) -> None:
        async with it.stream("/stream") as chunks:
            async for _ in chunks:
                await ready.wait()

    async with served(handler) as url, transport_to(url, settings=HttpSettings(connections=1)) as it:
        ready = asyncio.Barrier(6)
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            tasks = [group.create_task(open_and_hold(ready)) for _ in range(5)]
            await ready.wait()
            assert (await it.request("GET", "/")).status == 200
            for task in tasks:
                task.cancel()


async def test_redirects_are_not_followed_because_they_would_carry_the_token_away() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(status=302, headers={"Location": "http://example.invalid/"})

    async with served(handler) as url, transport_to(url) as it:
        assert (await it.request("GET", "/")).status == 302


async def test_a_server_that_is_not_there_is_named_with_the_way_out() -> None:
    url = await unused_url()
    async with transport_to(url) as it:
        with pytest.raises(TransportError) as caught:
            await it.request("POST", "/", body=b"{}")
        assert not caught.value.sent
        expected = f"cannot reach the API server {url}: Connection refused; is it running and is the address right?"
        assert str(caught.value) == f"{expected} (kubeconfig /x, context 'y')"
        with pytest.raises(TransportError) as caught:
            async with it.stream("/"):
                pass
        assert not caught.value.sent


async def test_messages_do_not_show_secrets_in_the_address() -> None:
    url = await unused_url()
    async with transport_to(url.replace("//", "//user:hush@") + "/t/secret") as it:
        with pytest.raises(TransportError, match=f"the API server {url}: Connection refused") as caught:
            await it.request("GET", "/")
    assert "hush" not in str(caught.value) and "secret" not in str(caught.value)


async def test_a_host_that_does_not_exist_is_one_line() -> None:
    async with transport_to("http://nowhere.invalid:1") as it:
        with pytest.raises(TransportError, match=r"cannot reach the API server http://nowhere\.invalid:1: ") as caught:
            await it.request("GET", "/")
    assert not caught.value.sent
    assert "\n" not in str(caught.value)


async def test_a_write_without_answer_may_have_been_done() -> None:
    arrived: list[bytes] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        arrived.append(await request.read())
        if request.path == "/cut":
            assert request.transport is not None
            request.transport.abort()
        await asyncio.Event().wait()
        return web.Response()

    async with served(handler) as url, transport_to(url) as it:
        with pytest.raises(TransportError, match=r"the connection to .* broke") as caught:
            await it.request("POST", "/cut", body=b"1")
        assert caught.value.sent
        with pytest.raises(TransportError, match="did not answer in time") as caught:
            await it.request("POST", "/slow", body=b"2", timeout_seconds=0.2)
        assert caught.value.sent
    assert arrived == [b"1", b"2"]


async def test_a_request_that_found_no_free_connection_in_time_was_not_sent() -> None:
    paths: list[str] = []
    arrived = asyncio.Event()

    async def handler(request: web.BaseRequest) -> web.Response:
        paths.append(request.path)
        arrived.set()
        await asyncio.Event().wait()
        return web.Response()

    async with (
        served(handler) as url,
        transport_to(url, settings=HttpSettings(connections=1)) as it,
        asyncio.TaskGroup() as group,
    ):
        first = group.create_task(it.request("GET", "/first"))
        await arrived.wait()
        with pytest.raises(TransportError) as caught:
            await it.request("POST", "/second", body=b"{}", timeout_seconds=0.2)
        first.cancel()
    assert not caught.value.sent
    assert paths == ["/first"]


async def test_a_body_that_breaks_off_is_no_answer() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.close()
        return response

    async with served(handler) as url, transport_to(url) as it:
        with pytest.raises(TransportError) as caught:
            await it.request("GET", "/")
    assert caught.value.sent


async def test_a_stream_yields_what_arrives_and_ends_with_the_servers_end() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in (b"one", b"two\nthr", b"ee\n"):
            await response.write(piece)
        return response

    async with served(handler) as url, transport_to(url) as it, it.stream("/x", {"watch": "1"}) as chunks:
        assert b"".join([chunk async for chunk in chunks]) == b"onetwo\nthree\n"


async def test_a_refused_stream_carries_the_answer() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return web.json_response({"kind": "Status"}, status=410)

    async with served(handler) as url, transport_to(url) as it:
        with pytest.raises(StreamRefused) as caught:
            async with it.stream("/"):
                pass
    assert caught.value.response.status == 410
    assert caught.value.response.body == b'{"kind": "Status"}'


async def test_a_token_that_expired_is_renewed_and_the_request_repeated_once(tmp_path: Path) -> None:
    valid = "new"
    attempts: list[str] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        attempts.append(request.headers["Authorization"])
        return web.Response(status=200 if request.headers["Authorization"] == f"Bearer {valid}" else 401)

    token = tmp_path / "token"
    token.write_text("old")
    credentials = StaticCredentials(token_file=WatchedFile(token, "tokenFile", ManualClock()))
    async with served(handler) as url, transport_to(url, credentials=credentials) as it:
        assert (await it.request("GET", "/")).status == 401
        assert attempts == ["Bearer old"]
        token.write_text("new")
        assert (await it.request("POST", "/", body=b"{}")).status == 200
        assert attempts == ["Bearer old", "Bearer old", "Bearer new"]
        valid = "newer"
        token.write_text("newer")
        async with it.stream("/"):
            pass
        assert attempts[3:] == ["Bearer new", "Bearer newer"]


async def test_without_a_usable_token_nothing_is_sent(tmp_path: Path) -> None:
    credentials = StaticCredentials(token_file=WatchedFile(tmp_path / "none", "user 'u': tokenFile", ManualClock()))
    async with transport_to("http://127.0.0.1:1", credentials=credentials) as it:
        with pytest.raises(TransportError, match=r"user 'u': tokenFile: cannot read .*: No such file") as caught:
            await it.request("GET", "/")
    assert not caught.value.sent


async def test_a_closed_transport_refuses_work() -> None:
    async with transport_to("http://127.0.0.1:1") as it:
        await it.close()
        await it.close()
        with pytest.raises(RuntimeError, match="closed"):
            await it.request("GET", "/")
