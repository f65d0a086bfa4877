"""What clusters publish about their front proxies, and what is made of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilotage.kube.transport import Response
from pilotage.serve.authorities import Authorities, LookupFailed, cluster_authorities
from pilotage.serve.front_proxy import FrontProxy
from pilotage.serve.identity import User

PUBLISHED = {
    "client-ca-file": "CA of users",
    "requestheader-client-ca-file": "CA of proxies",
    "requestheader-allowed-names": '["front-proxy-client"]',
    "requestheader-username-headers": '["X-Remote-User","X-Other-User"]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
}
PROXY = FrontProxy(
    b"CA of proxies", ("front-proxy-client",), ("x-remote-user", "x-other-user"), ("x-remote-uid",), ("x-remote-group",)
)


async def looked_up(status: int, body: object) -> Authorities:
    class Server:
        async def request(self, method: str, path: str, **_: object) -> Response:
            assert path.endswith("/kube-system/configmaps/extension-apiserver-authentication")
            return Response(status, {}, body if isinstance(body, bytes) else json.dumps(body).encode())

    transport: Any = Server()
    return await cluster_authorities(transport)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (PUBLISHED, Authorities(b"CA of users", PROXY)),
        ({"client-ca-file": "CA of users"}, Authorities(b"CA of users")),
        ({}, Authorities()),
        (None, Authorities()),
    ],
    ids=["all", "no proxy", "nothing", "null"],
)
async def test_published_authorities(data: object, expected: Authorities) -> None:
    assert await looked_up(200, {"data": data}) == expected


async def test_cluster_that_publishes_nothing_is_no_mistake() -> None:
    assert await looked_up(404, {}) == Authorities()


@pytest.mark.parametrize(
    ("status", "body"),
    [(403, {}), (200, b"<html>"), (200, {"data": {**PUBLISHED, "requestheader-allowed-names": "front-proxy-client"}})],
)
async def test_what_cannot_be_read_is_reported(status: int, body: object) -> None:
    with pytest.raises(LookupFailed):
        await looked_up(status, body)


def test_second_header_counts_if_the_first_is_missing() -> None:
    assert PROXY.user("front-proxy-client", [("x-other-user", "eve")]) == User("eve", ("system:authenticated",))


def test_anonymous_visitors_of_a_proxy_stay_anonymous() -> None:
    lines = [("x-remote-user", "system:anonymous"), ("x-remote-group", "system:unauthenticated")]
    assert PROXY.user("front-proxy-client", lines) == User("system:anonymous", ("system:unauthenticated",))


def test_without_allowed_names_every_name_is() -> None:
    assert FrontProxy(b"").user("whoever", [("x-remote-user", "eve")]) is not None
    assert PROXY.user("whoever", [("x-remote-user", "eve")]) is None
