"""Who gets to the console and what they may see there, decided by an API server that knows two tokens."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.serve.access import DelegatedAuthorizer
from pilotage.serve.client_certificates import ClientCertificates
from pilotage.serve.console_door import ConsoleDoor, Sight, namespace_asked_for, sight_of
from pilotage.serve.identity import DelegatedAuthenticator
from pilotage.serve.page import PageAnswer, PageRequest
from pilotage.serve.tls import ServerTls, TlsOptions
from tests.kube.manual_clock import ManualClock

from .test_site import Reviewer

ADMIN, TENANT = "p", "s"


class Clusters(Reviewer):
    """`prometheus` may list everything, `stranger` pods of namespace `own`."""

    def _access(self, review: Any) -> Any:
        spec = review["spec"]
        asked = spec["resourceAttributes"]
        own = {"verb": "list", "version": "v1", "resource": "pods", "namespace": "own"}
        return {"allowed": spec["user"] == "prometheus" or asked == own}


class Visit:
    def __init__(self) -> None:
        clock, self.server = ManualClock(), Clusters()
        transport: Any = self.server
        certificates = ClientCertificates(ServerTls(TlsOptions()))
        self.door = ConsoleDoor(
            DelegatedAuthenticator(transport, clock, certificates, 10.0), DelegatedAuthorizer(transport, clock), clock
        )

    async def enter(self, path: str, token: str = "", method: str = "GET", body: bytes = b"", **headers: str) -> Any:
        cookie = {"cookie": f"pilotage-token={token}"} if token else {}
        path, _, text = path.partition("?")
        query = {name: [value] for name, _, value in [pair.partition("=") for pair in text.split("&") if pair]}
        request = PageRequest(path, method, query, {**cookie, **headers}, body, address="192.0.2.1")
        return await self.door.let_in(request, None)

    async def sight(self, path: str, token: str, **headers: str) -> Sight | None:
        entered = await self.enter(path, token, **headers)
        assert isinstance(entered, PageRequest)
        return sight_of(entered)


async def test_whoever_has_no_token_is_led_to_the_form() -> None:
    visit = Visit()
    answer = await visit.enter("/console/waiting")
    assert isinstance(answer, PageAnswer) and answer.status == 303
    assert dict(answer.headers)["Location"] == "/console/login"
    assert (await visit.enter("/console/live")).status == 401
    assert isinstance(await visit.enter("/console/login"), PageRequest)
    assert isinstance(await visit.enter("/console/static/console.css"), PageRequest)


async def test_log_in_keeps_the_token_in_a_cookie_that_scripts_and_other_sites_cannot_use() -> None:
    answer = await Visit().enter("/console/login", method="POST", body=b"token=p")
    headers = dict(answer.headers)
    assert answer.status == 303 and headers["Location"] == "/console/"
    assert headers["Set-Cookie"] == "pilotage-token=p; Path=/console; HttpOnly; Secure; SameSite=Strict"


@pytest.mark.parametrize(
    "body", [b"token=nobody", b"token=", b"", b"\xff\xfe", b"token=a%0d%0aSet-Cookie:%20x", b"token=a;b"]
)
async def test_wrong_token_comes_back_to_the_form(body: bytes) -> None:
    entered = await Visit().enter("/console/login", method="POST", body=body)
    assert isinstance(entered, PageRequest) and entered.first("failed") == "true" and entered.method == "GET"


async def test_guessing_is_slowed_down_and_forms_of_other_sites_are_refused() -> None:
    visit = Visit()
    for number in range(40):
        answer = await visit.enter("/console/login", method="POST", body=f"token=guess{number}".encode())
    assert answer.status == 429
    crossed = await Visit().enter(
        "/console/login", method="POST", body=b"token=p", origin="https://evil.example", host="pilotage:10259"
    )
    assert crossed.status == 403


async def test_everything_is_seen_by_whoever_may_list_everything() -> None:
    assert await Visit().sight("/console/", ADMIN) == Sight(None, True)


@pytest.mark.parametrize(
    ("path", "namespaces"),
    [
        ("/console/", []),
        ("/console/waiting?namespace=own", ["own"]),
        ("/console/waiting?namespace=other", []),
        ("/console/pods/own/x", ["own"]),
        ("/console/pods/other/x", []),
        ("/console/live?view=/console/pods/own/x", ["own"]),
        ("/console/live?view=/console/pods/other/x", []),
    ],
)
async def test_tenant_sees_the_namespace_that_is_asked_for_if_allowed(path: str, namespaces: list[str]) -> None:
    assert await Visit().sight(path, TENANT) == Sight(frozenset(namespaces), False)


async def test_what_a_visitor_claims_about_their_rights_does_not_count() -> None:
    visit = Visit()
    claim = {"pilotage-sight": '{"namespaces":null,"nodes":true}'}
    assert await visit.sight("/console/", TENANT, **claim) == Sight(frozenset(), False)
    assert await visit.sight("/console/login", "", **claim) == Sight(frozenset(), False)
    assert await visit.sight("/console/static/console.js", "", **claim) == Sight(frozenset(), False)


async def test_log_out_forgets_the_token() -> None:
    answer = await Visit().enter("/console/logout", ADMIN)
    assert answer.status == 303 and "Max-Age=0" in dict(answer.headers)["Set-Cookie"]


async def test_if_the_api_server_does_not_answer_nobody_gets_in() -> None:
    visit = Visit()
    await visit.sight("/console/", TENANT)
    visit.server.is_down = True
    assert isinstance(await visit.enter("/console/", ADMIN), PageAnswer)
    assert (await visit.enter("/console/waiting?namespace=unasked", TENANT)).status == 503


def test_namespace_of_a_page_is_in_its_path_or_its_query() -> None:
    assert namespace_asked_for(PageRequest("/console/pods/a/b", query={"namespace": ["c"]})) == "a"
    assert namespace_asked_for(PageRequest("/console/queues/a")) == ""


async def test_without_an_api_server_nobody_is_logged_out() -> None:
    visit = Visit()
    visit.server.is_down = True
    for path in ("/console/", "/console/live"):
        answer = await visit.enter(path, ADMIN)
        assert answer.status == 503 and b"API server cannot be asked" in answer.body
    answer = await visit.enter("/console/login", method="POST", body=b"token=p")
    assert answer.status == 503
