"""The client's verbs as a server sees them, and how refusals come back."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from pilotage.kube.client import STRATEGIC_MERGE_PATCH, ApiStatusError, KubeClient, ListOptions
from pilotage.model.kinds import KINDS

from .loopback import served, transport_to
from .scripted_server import status

PODS, NODES = KINDS["pods"], KINDS["nodes"]


def replying(code: int, body: bytes, headers: dict[str, str] | None = None) -> Any:
    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(status=code, body=body, headers=headers)

    return handler


async def refusal_of(handler: Any, call: Callable[[KubeClient], Awaitable[object]]) -> ApiStatusError:
    async with served(handler) as url, transport_to(url) as transport:
        with pytest.raises(ApiStatusError) as caught:
            await call(KubeClient(transport))
    return caught.value


async def test_every_verb_reaches_its_path_with_its_body() -> None:
    seen: list[tuple[str, str, str, bytes]] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append((request.method, request.path_qs, request.headers.get("Content-Type", ""), await request.read()))
        return web.Response(body=b"answer")

    async with served(handler) as url, transport_to(url) as transport:
        client = KubeClient(transport)
        assert await client.get(NODES, "", "n") == b"answer"
        assert await client.create(PODS, "ns", b"1") == b"answer"
        assert await client.update(PODS, "ns", "p", b"2", subresource="status") == b"answer"
        await client.patch(PODS, "ns", "p", b"3", content_type=STRATEGIC_MERGE_PATCH, subresource="status")
        await client.delete(PODS, "ns", "p")
        await client.delete(PODS, "ns", "p", b"4")
    as_json = "application/json"
    assert [entry for entry in seen if entry[0] != "DELETE"] == [
        ("GET", "/api/v1/nodes/n", "", b""),
        ("POST", "/api/v1/namespaces/ns/pods", as_json, b"1"),
        ("PUT", "/api/v1/namespaces/ns/pods/p/status", as_json, b"2"),
        ("PATCH", "/api/v1/namespaces/ns/pods/p/status", STRATEGIC_MERGE_PATCH, b"3"),
    ]
    assert [(path, body) for method, path, _, body in seen if method == "DELETE"] == [
        ("/api/v1/namespaces/ns/pods/p", b""),
        ("/api/v1/namespaces/ns/pods/p", b"4"),
    ]


async def test_bind_names_pod_uid_and_node() -> None:
    bodies: list[tuple[str, Any]] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        bodies.append((f"{request.method} {request.path}", json.loads(await request.read())))
        return web.Response(status=201, body=b"{}")

    async with served(handler) as url, transport_to(url) as transport:
        await KubeClient(transport).bind("ns", "p", "uid-1", "node-1")
    where, body = bodies[0]
    assert where == "POST /api/v1/namespaces/ns/pods/p/binding"
    assert body["metadata"] == {"name": "p", "namespace": "ns", "uid": "uid-1"}
    assert body["target"]["name"] == "node-1"


async def test_list_page_asks_for_what_was_chosen_and_decodes() -> None:
    queries: list[dict[str, str]] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        queries.append(dict(request.query))
        item = {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"containers": []}}
        return web.json_response({"metadata": {"resourceVersion": "5", "continue": "more"}, "items": [item]})

    async with served(handler) as url, transport_to(url) as transport:
        options = ListOptions("ns", "a in (b,c)", "spec.nodeName=", 7, "token==")
        page = await KubeClient(transport).list_page(PODS, options)
    assert queries == [
        {"labelSelector": "a in (b,c)", "fieldSelector": "spec.nodeName=", "limit": "7", "continue": "token=="}
    ]
    assert (page.items[0].key, page.resource_version, page.continue_token) == ("ns/p", "5", "more")


async def test_a_status_object_becomes_the_error() -> None:
    body = json.dumps(status(409, "Conflict", "pod p is bound already", retryAfterSeconds=4)).encode()
    error = await refusal_of(replying(409, body), lambda client: client.get(PODS, "ns", "p"))
    assert (error.code, error.reason, error.message, error.retry_after) == (
        409,
        "Conflict",
        "pod p is bound already",
        4,
    )
    assert str(error) == "pod p is bound already (HTTP 409 Conflict)"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"404 page not found\n", "404 page not found"),
        (b"<html>\n<b>Bad</b>", "<html> <b>Bad</b>"),
        (b"", "the server gave no message"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"[1]", "[1]"),
        (b'{"kind":"Pod","message":5}', '{"kind":"Pod","message":5}'),
    ],
)
async def test_any_other_body_becomes_one_line(body: bytes, message: str) -> None:
    error = await refusal_of(replying(502, body), lambda client: client.get(PODS, "ns", "p"))
    assert (error.code, error.reason, error.message) == (502, "", message)


async def test_the_retry_after_header_wins_over_the_body() -> None:
    body = json.dumps(status(429, "TooManyRequests", retryAfterSeconds=4)).encode()
    busy = replying(429, body, {"Retry-After": "9"})
    assert (await refusal_of(busy, lambda client: client.get(PODS, "ns", "p"))).retry_after == 9
    undated = replying(429, b"", {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"})
    assert (await refusal_of(undated, lambda client: client.get(PODS, "ns", "p"))).retry_after is None


async def test_version_says_what_answers() -> None:
    reply = b'{"major":"1","minor":"33","gitVersion":"v1.33.1"}'
    async with served(replying(200, reply)) as url, transport_to(url) as transport:
        assert (await KubeClient(transport).version()).git_version == "v1.33.1"
    error = await refusal_of(replying(200, b"<html>hello</html>"), lambda client: client.version())
    assert "is not that of a Kubernetes API server; check the server's address" in str(error)


async def test_a_refused_watch_raises_the_servers_error() -> None:
    async def watch(client: KubeClient) -> None:
        async with client.watch(PODS, ListOptions(), resource_version="5", timeout_seconds=60):
            pass

    error = await refusal_of(replying(410, json.dumps(status(410, "Expired")).encode()), watch)
    assert error.is_gone and error.reason == "Expired"


@pytest.mark.parametrize(
    ("served", "code"), [(["resourceslices"], 404), (["resourceslices", "devicetaintrules"], 403), (None, 404)]
)
async def test_a_kind_that_the_server_does_not_have_is_absent_not_forbidden(
    served: list[str] | None, code: int
) -> None:
    """An API server asks for permission first, so that a role without a rule for an unknown kind gets 403."""

    async def handler(request: web.BaseRequest) -> web.Response:
        if request.path.endswith("/devicetaintrules"):
            return web.json_response({"kind": "Status", "reason": "Forbidden", "message": "no"}, status=403)
        if served is None:
            return web.Response(status=404)
        return web.json_response({"kind": "APIResourceList", "resources": [{"name": name} for name in served]})

    error = await refusal_of(handler, lambda client: client.list_page(KINDS["devicetaintrules"]))
    assert error.code == code
