"""How an extender is reached: real servers on loopback, with real certificates, that answer well, badly or never."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web

from pilotage.config.kinds import ExtenderConfiguration, ExtenderTLSConfig
from pilotage.extenders.extender import ExtenderError, ExtenderTimeout
from pilotage.extenders.http_transport import HttpExtender
from pilotage.kube.errors import CredentialsError, KubeconfigError
from pilotage.testing import VirtualClock
from tests.kube.loopback import Handler, served, unused_url


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_context(authority: trustme.CA, *names: str, clients: trustme.CA | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*names).configure_cert(context)
    if clients is not None:
        clients.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def data(blob: trustme.Blob) -> str:
    return base64.b64encode(blob.bytes()).decode()


async def who(request: web.BaseRequest) -> web.StreamResponse:
    """Answers with path, type, body and the common name of the client's certificate."""
    assert request.transport is not None
    certificate = request.transport.get_extra_info("peercert") or {}
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    content = {"path": request.path, "type": request.content_type, "body": await request.text(), "client": names}
    return web.json_response({**content, "authorization": request.headers.get("Authorization")})


@asynccontextmanager
async def reached(
    handler: Handler, tls: ssl.SSLContext | None = None, path: str = "", **fields: Any
) -> AsyncIterator[HttpExtender]:
    async with served(handler, tls) as url:
        extender = HttpExtender(ExtenderConfiguration(f"{url}{path}", **fields), VirtualClock())
        try:
            yield extender
        finally:
            await extender.close()


async def test_a_question_is_a_post_of_json_below_the_prefix() -> None:
    async with reached(who, path="/scheduler/") as extender:
        status, body = await extender.post("filter", b'{"Pod": null}')
    assert status == 200
    assert b'"path": "/scheduler/filter"' in body and b'"type": "application/json"' in body
    assert b'{\\"Pod\\": null}' in body


# --- trust ------------------------------------------------------------------------------------------------------------


async def test_the_authority_of_caData_is_trusted_and_no_other(authority: trustme.CA) -> None:
    tls = server_context(authority, "localhost")
    known = ExtenderTLSConfig(ca_data=data(authority.cert_pem))
    async with reached(who, tls, enable_https=True, tls_config=known) as extender:
        assert (await extender.post("filter", b"{}"))[0] == 200
    other = ExtenderTLSConfig(ca_data=data(trustme.CA().cert_pem))
    async with reached(who, tls, enable_https=True, tls_config=other) as extender:
        with pytest.raises(ExtenderError, match="its certificate is not trusted"):
            await extender.post("filter", b"{}")


async def test_a_caFile_is_read_and_data_goes_before_it(authority: trustme.CA, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(trustme.CA().cert_pem.bytes())
    tls = server_context(authority, "localhost")
    given = ExtenderTLSConfig(ca_file=str(tmp_path / "ca.pem"))
    async with reached(who, tls, tls_config=given) as extender:
        with pytest.raises(ExtenderError, match="not trusted"):
            await extender.post("filter", b"{}")
    async with reached(who, tls, tls_config=replace(given, ca_data=data(authority.cert_pem))) as extender:
        assert (await extender.post("filter", b"{}"))[0] == 200


async def test_a_server_under_another_name_needs_serverName(authority: trustme.CA) -> None:
    tls = server_context(authority, "extender.example")
    given = ExtenderTLSConfig(ca_data=data(authority.cert_pem))
    async with reached(who, tls, tls_config=given) as extender:
        with pytest.raises(ExtenderError, match="not trusted"):
            await extender.post("filter", b"{}")
    async with reached(who, tls, tls_config=replace(given, server_name="extender.example")) as extender:
        assert (await extender.post("filter", b"{}"))[0] == 200


@pytest.mark.parametrize(
    ("fields", "is_reached"),
    [
        ({"tls_config": ExtenderTLSConfig(insecure=True)}, True),
        ({"enable_https": True}, True),
        ({"enable_https": True, "tls_config": ExtenderTLSConfig()}, True),
        ({}, False),
    ],
    ids=["insecure", "enableHTTPS without a CA", "enableHTTPS with an empty tlsConfig", "neither"],
)
async def test_who_verifies_and_who_does_not(authority: trustme.CA, fields: dict[str, Any], is_reached: bool) -> None:
    async with reached(who, server_context(authority, "other.example"), **fields) as extender:
        if is_reached:
            assert (await extender.post("filter", b"{}"))[0] == 200
        else:
            with pytest.raises(ExtenderError, match="not trusted"):
                await extender.post("filter", b"{}")


async def test_that_no_one_verifies_is_said_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    HttpExtender(ExtenderConfiguration("https://x.example/f", enable_https=True), VirtualClock())
    assert "the certificate of an extender is not verified, give tlsConfig a caFile" in caplog.text


async def test_a_client_certificate_is_shown_from_data_and_from_files(authority: trustme.CA, tmp_path: Path) -> None:
    client = authority.issue_cert("pilotage@example.org", common_name="pilotage")
    chain = b"".join(blob.bytes() for blob in client.cert_chain_pems)
    (tmp_path / "tls.crt").write_bytes(chain)
    (tmp_path / "tls.key").write_bytes(client.private_key_pem.bytes())
    tls = server_context(authority, "localhost", clients=authority)
    trusted = ExtenderTLSConfig(ca_data=data(authority.cert_pem))
    in_data = replace(trusted, cert_data=base64.b64encode(chain).decode(), key_data=data(client.private_key_pem))
    in_files = replace(trusted, cert_file=str(tmp_path / "tls.crt"), key_file=str(tmp_path / "tls.key"))
    for given in (in_data, in_files):
        async with reached(who, tls, tls_config=given) as extender:
            assert b'"client": ["pilotage"]' in (await extender.post("filter", b"{}"))[1]
    async with reached(who, tls, tls_config=trusted) as extender:
        with pytest.raises(ExtenderError, match="POST https://localhost"):
            await extender.post("filter", b"{}")


@pytest.mark.parametrize(
    "given",
    [
        ExtenderTLSConfig(ca_file="/nowhere/ca.pem"),
        ExtenderTLSConfig(ca_data=base64.b64encode(b"no certificate").decode()),
        ExtenderTLSConfig(cert_file="/nowhere/tls.crt", key_file="/nowhere/tls.key"),
    ],
    ids=["no file", "no certificate", "no client certificate"],
)
async def test_what_cannot_be_read_is_said_at_the_start(given: ExtenderTLSConfig) -> None:
    with pytest.raises((KubeconfigError, CredentialsError)) as caught:
        HttpExtender(ExtenderConfiguration("https://x.example", tls_config=given), VirtualClock())
    assert "extender https://x.example" in str(caught.value)


async def test_a_password_in_the_prefix_is_sent_and_never_shown() -> None:
    async with served(who) as url:
        configuration = ExtenderConfiguration(url.replace("http://", "http://me:secret@"))
        extender = HttpExtender(configuration, VirtualClock())
        assert b'"authorization": "Basic ' in (await extender.post("filter", b"{}"))[1]
        await extender.close()
    down = (await unused_url()).replace("http://", "http://me:secret@")
    extender = HttpExtender(ExtenderConfiguration(down), VirtualClock())
    with pytest.raises(ExtenderError) as caught:
        await extender.post("filter", b"{}")
    assert "secret" not in str(caught.value)
    await extender.close()


# --- answers that do not come, or should not --------------------------------------------------------------------------


async def test_no_one_there_is_said_with_the_address() -> None:
    url = await unused_url()
    extender = HttpExtender(ExtenderConfiguration(url), VirtualClock())
    with pytest.raises(ExtenderError) as caught:
        await extender.post("filter", b"{}")
    assert f"POST {url}/filter: cannot reach the extender" in str(caught.value)
    assert "refused" in str(caught.value).lower()
    await extender.close()


@pytest.mark.parametrize("begins", [False, True], ids=["no answer", "a body without an end"])
async def test_httpTimeout_is_for_the_whole_answer(begins: bool) -> None:
    over = asyncio.Event()

    async def hold(request: web.BaseRequest) -> web.StreamResponse:
        answer = web.StreamResponse()
        if begins:
            await answer.prepare(request)
            await answer.write(b'{"NodeNames": [')
        await over.wait()
        return answer

    async with reached(hold, http_timeout=0.05) as extender:
        with pytest.raises(
            ExtenderTimeout, match=r"POST http://localhost:\d+/filter: timeout: no answer within 0.05 s"
        ):
            await extender.post("filter", b"{}")
        over.set()


async def test_an_answer_without_an_end_is_cut_off() -> None:
    sent = 0

    async def flood(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal sent
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b" " * 65536)
            sent += 65536

    async with reached(flood, http_timeout=60.0) as extender:
        with pytest.raises(ExtenderError, match=r"in the middle of an answer: the answer is longer than \d+ bytes"):
            await extender.post("filter", b"{}")
    assert sent < 64 << 20


async def test_headers_without_an_end_are_cut_off() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        try:
            while True:
                writer.write(b"X-More: " + b"x" * 8000 + b"\r\n")
                await writer.drain()
        except ConnectionError:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    extender = HttpExtender(ExtenderConfiguration(f"http://127.0.0.1:{port}", http_timeout=60.0), VirtualClock())
    with pytest.raises(ExtenderError):
        await extender.post("filter", b"{}")
    await extender.close()
    server.close()


async def test_a_redirect_is_an_answer_like_any_other() -> None:
    asked: list[str] = []

    async def elsewhere(request: web.BaseRequest) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response(status=307, headers={"Location": "/other"})

    async with reached(elsewhere) as extender:
        assert (await extender.post("filter", b"{}"))[0] == 307
    assert asked == ["/filter"]


async def test_the_fence_is_asked_before_each_question() -> None:
    def fence() -> None:
        raise RuntimeError("the lease is lost")

    async with served(who) as url:
        extender = HttpExtender(ExtenderConfiguration(url), VirtualClock(), fence)
        with pytest.raises(ExtenderError, match="the lease is lost"):
            await extender.post("bind", b"{}")
        await extender.close()
