"""Visitors who are slow, many, or send what they should not: everything that they decide about has a bound."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trustme

from pilotage.clock import SystemClock
from pilotage.kube.transport import Response
from pilotage.observe.instruments import Counter
from pilotage.serve.access import DelegatedAuthorizer
from pilotage.serve.client_certificates import ClientCertificates
from pilotage.serve.front_proxy import FrontProxy
from pilotage.serve.identity import ClientCertificate, DelegatedAuthenticator
from pilotage.serve.listening import Doors, https, loopback_http
from pilotage.serve.page import PageRequest, text_answer
from pilotage.serve.review_limits import AT_ONCE, MOST_WAITING, REFUSALS_AT_ONCE, LimitedReviews, TooManyReviews
from pilotage.serve.site import GuardedSite, Site
from pilotage.serve.tls import ServerTls, TlsOptions
from pilotage.serve.visitors import ServerLimits, Visitor, Visitors

from .test_site import Visit
from .test_tls import guarded, unchecking

LINE = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"
SITE = Site(
    {
        "/livez": lambda request: text_answer("ok"),
        "/echo": lambda request: text_answer(f"{request.method} {request.query} {request.body!r}"),
    }
)


@asynccontextmanager
async def serving(**limits: Any) -> AsyncIterator[tuple[int, Counter]]:
    closed = Counter("reason")
    async with loopback_http(SITE, 0, Doors(SystemClock(), ServerLimits(**limits), closed)) as port:
        yield port, closed


async def said(port: int, sent: bytes) -> bytes:
    """Everything that comes back until the connection is closed from there."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    try:
        async with asyncio.timeout(60):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def is_well(port: int) -> bool:
    return (await said(port, LINE + b"Connection: close\r\n\r\n")).endswith(b"ok")


@pytest.mark.parametrize("sent", [b"", b"GET /li", LINE, LINE + b"Content-Length: 5\r\n\r\nab"])
async def test_request_that_does_not_come_to_its_end_is_not_waited_for(sent: bytes) -> None:
    async with serving(request_seconds=0.2) as (port, _):
        assert await said(port, sent) == b""
        assert await is_well(port)


async def test_header_that_comes_drop_by_drop_has_the_time_of_one_request() -> None:
    async with serving(request_seconds=0.3) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            dripping = tasks.create_task(drip(writer))
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            dripping.cancel()
        writer.close()


async def drip(writer: asyncio.StreamWriter) -> None:
    writer.write(LINE)
    number = 0
    while True:
        number += 1
        writer.write(f"X-{number}: y\r\n".encode())
        await asyncio.sleep(0.02)


async def test_connection_that_waits_for_its_next_request_is_closed_after_a_while() -> None:
    async with serving(idle_seconds=0.2) as (port, _):
        assert (await said(port, LINE + b"\r\n")).endswith(b"ok")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (LINE + b"X: " + b"y" * 40_000 + b"\r\n\r\n", 431),
        (LINE + b"".join(b"X-%d: %s\r\n" % (n, b"y" * 100) for n in range(400)) + b"\r\n", 431),
        (LINE + b"Content-Length: 70000\r\n\r\n" + b"z" * 70_000, 413),
        (LINE + b"Transfer-Encoding: chunked\r\n\r\n" + b"4000\r\n" + b"z" * 0x4000 + b"\r\n" * 1, 0),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500, 400),
        (b"GET /livez?" + b"a=1&" * 200 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    ],
    ids=["long header", "many headers", "long body", "endless body", "no http", "many fields"],
)
async def test_request_that_is_too_much_is_refused(sent: bytes, status: int) -> None:
    async with serving(request_seconds=0.5) as (port, _):
        answer = await said(port, sent)
        assert answer.startswith(f"HTTP/1.1 {status} ".encode()) if status else answer == b""
        assert await is_well(port)


async def test_requests_on_one_connection_are_answered_in_turn() -> None:
    async with serving() as (port, _):
        first = b"GET /echo?a=1&a=2&v HTTP/1.1\r\nHost: localhost:1\r\n\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3):
            writer.write(first)
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"200 OK" in head and b"Connection: close" not in head
            assert await reader.readexactly(35) == b"GET {'a': ['1', '2'], 'v': ['']} b''"[:35]
            await reader.readexactly(1)
        writer.close()
        put = b"PUT /echo HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n"
        put += b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(put)
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"abc")
        assert (await reader.read()).endswith(b"PUT {} b'abc'")
        writer.close()
        head_only = await said(port, b"HEAD /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert b"Content-Length: 2" in head_only and head_only.endswith(b"\r\n\r\n")


async def test_second_request_before_the_first_answer_is_not_answered() -> None:
    async with serving() as (port, _):
        assert (await said(port, (LINE + b"\r\n") * 2)).count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize(
    ("host", "is_let_in"),
    [
        ("localhost", True),
        ("LOCALHOST.:8080", True),
        ("127.0.0.1:1", True),
        ("[::1]:1", True),
        ("[::1]", True),
        ("evil.example", False),
        ("localhost.evil.example:80", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
async def test_plain_port_answers_for_this_machine_only(host: str, is_let_in: bool) -> None:
    async with serving() as (port, _):
        answer = await said(port, f"GET /livez HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 200" if is_let_in else b"HTTP/1.1 403")


async def test_idle_connections_make_way_for_those_who_ask() -> None:
    async with serving(per_address=4, connections=8) as (port, closed):
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
        assert await is_well(port)
        assert closed.value("address") == 27
        for _, writer in idle:
            writer.close()


def visitor(address: str, closed: list[str]) -> Visitor:
    return Visitor(address, lambda: closed.append(address))


def test_longest_idle_connection_goes_first_and_busy_ones_stay() -> None:
    closed: list[str] = []
    visitors = Visitors(ServerLimits(connections=3, per_address=2), Counter("reason"))
    first, second, third = (visitor(address, closed) for address in ("a", "b", "c"))
    assert all(visitors.admit(one) for one in (first, second, third))
    first.is_busy = True
    visitors.waits(second)
    assert visitors.admit(visitor("d", closed)) and closed == ["c"], "b has just been answered, a is being answered"
    assert visitors.admit(visitor("e", closed)) and closed == ["c", "b"]
    assert len(visitors) == 3


def test_no_one_is_let_in_while_all_are_being_answered() -> None:
    closed, refused = [], Counter("reason")
    visitors = Visitors(ServerLimits(connections=2, per_address=1), refused)
    for address in ("a", "b"):
        one = visitor(address, closed)
        assert visitors.admit(one)
        one.is_busy = True
    assert not visitors.admit(visitor("a", closed)) and not visitors.admit(visitor("c", closed))
    assert closed == [] and (refused.value("address"), refused.value("total")) == (1, 1)


async def test_handshake_that_does_not_come_is_not_waited_for() -> None:
    site, _ = guarded()
    doors = Doors(SystemClock(), ServerLimits(request_seconds=0.2))
    async with https(site, "127.0.0.1", 0, ServerTls(TlsOptions()), doors) as port:
        assert await said(port, b"") == b""


async def test_client_authority_that_was_replaced_is_trusted_no_more() -> None:
    old, new = trustme.CA(), trustme.CA()
    tls = ServerTls(TlsOptions())
    site, everybody = guarded(tls)
    certificates: ClientCertificates = everybody.certificates
    certificates.trust_users(old.cert_pem.bytes())
    async with https(site, "127.0.0.1", 0, tls, Doors(SystemClock())) as port:
        reader, writer = await connected(port, old)
        assert await answered(reader, writer)
        certificates.trust_users(new.cert_pem.bytes())
        assert not await answered(reader, writer), "also on a connection that was made before"
        writer.close()
        assert not await lets_in(port, old)
        assert await lets_in(port, new)
        certificates.trust_users(b"")
        assert await lets_in(port, new) and everybody.seen[-1].name == "system:anonymous", (
            "it is not asked for any more"
        )


async def test_who_has_shown_no_certificate_is_answered_once_more_when_authorities_change() -> None:
    tls = ServerTls(TlsOptions())
    site, everybody = guarded(tls)
    async with https(site, "127.0.0.1", 0, tls, Doors(SystemClock())) as port:
        reader, writer = await connected(port, None)
        assert await answered(reader, writer)
        everybody.certificates.trust_users(trustme.CA().cert_pem.bytes())
        assert await answered(reader, writer), "an API server that asks about an object is not cut off"
        async with asyncio.timeout(30):  # well below the time for which an idle connection is kept
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                assert await reader.read() == b"", "on its next connection it may show a certificate"
        writer.close()


async def connected(port: int, authority: trustme.CA | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = unchecking()
    if authority is not None:
        authority.issue_cert(common_name="bob").configure_cert(context)
    return await asyncio.open_connection("127.0.0.1", port, ssl=context)


async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    writer.write(LINE + b"\r\n")
    try:
        return b"200 OK" in await reader.readuntil(b"ok")
    except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
        return False


async def lets_in(port: int, authority: trustme.CA) -> bool:
    try:
        reader, writer = await connected(port, authority)
    except (ConnectionError, ssl.SSLError):
        return False
    try:
        return await answered(reader, writer)
    finally:
        writer.close()


async def test_visitor_who_was_refused_too_often_is_not_asked_about_for_a_while() -> None:
    visit = Visit()

    async def status(address: str, token: str) -> int:
        headers = {"authorization": f"Bearer {token}"}
        return (await visit.site.answer(PageRequest("/metrics", headers=headers, address=address), None)).status

    codes = [await status("1.1.1.1", f"guess-{number}") for number in range(REFUSALS_AT_ONCE + 10)]
    assert codes == [401] * REFUSALS_AT_ONCE + [429] * 10
    assert len(visit.reviewer.asked) == REFUSALS_AT_ONCE
    assert await status("2.2.2.2", "p") == 200, "others are not concerned"
    visit.clock.now += 2.0
    assert await status("1.1.1.1", "p") == 200


async def test_tenant_who_is_refused_through_the_api_server_shuts_out_no_one_else() -> None:
    """All users of an aggregated API come from one address, with one certificate."""
    visit, everybody = Visit(), ClientCertificates(ServerTls(TlsOptions()))
    authority = trustme.CA()
    everybody.trust_proxy(FrontProxy(authority.cert_pem.bytes()))
    transport: Any = visit.reviewer
    site = GuardedSite(
        Site({"/metrics": lambda _: text_answer("this is it")}),
        DelegatedAuthenticator(transport, visit.clock, everybody),
        DelegatedAuthorizer(transport, visit.clock),
        visit.clock,
    )
    issued = authority.issue_cert(common_name="front-proxy-client")
    der = ssl.PEM_cert_to_DER_cert(issued.cert_chain_pems[0].bytes().decode())
    proxy = ClientCertificate({"subject": ((("commonName", "front-proxy-client"),),)}, der)

    async def status(user: str, path: str) -> int:
        request = PageRequest(path, address="1.1.1.1", lines=[("x-remote-user", user)] if user else [])
        return (await site.answer(request, proxy)).status

    codes = [await status("alice", f"/{number}") for number in range(REFUSALS_AT_ONCE + 10)]
    assert codes == [403] * REFUSALS_AT_ONCE + [429] * 10
    assert len(visit.reviewer.asked) == REFUSALS_AT_ONCE
    assert await status("prometheus", "/metrics") == 200
    assert await status("bob", "/metrics") == 403
    assert [await status("", "/metrics") for _ in range(REFUSALS_AT_ONCE + 1)] == [401] * (REFUSALS_AT_ONCE + 1)
    assert await status("prometheus", "/metrics") == 200


async def test_only_so_many_reviews_are_under_way_or_wait() -> None:
    may_answer, under_way = asyncio.Event(), []

    class Slow:
        async def request(self, method: str, path: str, **_: object) -> Response:
            under_way.append(path)
            await may_answer.wait()
            return Response(201, {}, b"{}")

    transport: Any = Slow()
    reviews = LimitedReviews(transport)
    async with asyncio.TaskGroup() as tasks:
        asking = [tasks.create_task(reviews.review("/r", b"")) for _ in range(AT_ONCE + MOST_WAITING)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(under_way) == AT_ONCE
        with pytest.raises(TooManyReviews):
            await reviews.review("/r", b"")
        may_answer.set()
    assert all(task.result().status == 201 for task in asking)


def test_path_in_a_log_is_one_line_without_control_characters() -> None:
    shown = PageRequest("/a\n\x1b[31mERROR forged" + "x" * 1000).shown_path
    assert shown.startswith("/a\\n\\x1b[31mERROR forged") and "\n" not in shown and len(shown) < 1000
