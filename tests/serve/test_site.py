"""Who may see what, decided by an API server that knows three tokens."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from pilotage.kube.transport import Response, TransportError
from pilotage.serve.access import DelegatedAuthorizer
from pilotage.serve.client_certificates import ClientCertificates
from pilotage.serve.identity import ClientCertificate, DelegatedAuthenticator
from pilotage.serve.page import PageRequest, text_answer
from pilotage.serve.site import GuardedSite, Site
from pilotage.serve.tls import ServerTls, TlsOptions
from tests.kube.manual_clock import ManualClock

CERTIFICATE = ClientCertificate({"subject": ((("organizationName", "monitoring"),), (("commonName", "prometheus"),))})


class Reviewer:
    """An API server that answers reviews: who has which token, and that only `prometheus` may get /metrics."""

    users: ClassVar = {"p": ("prometheus", ["monitoring"]), "s": ("stranger", [])}

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.is_down = False

    async def request(self, method: str, path: str, *, body: bytes, **_: object) -> Response:
        if self.is_down:
            raise TransportError("down", sent=False)
        review = json.loads(body)
        self.asked.append((path.rpartition("/")[2], review["spec"]))
        status = self._token(review) if review["kind"] == "TokenReview" else self._access(review)
        return Response(201, {}, json.dumps({**review, "status": status}).encode())

    def _token(self, review: Any) -> Any:
        known = self.users.get(review["spec"]["token"])
        if known is None:
            return {"authenticated": False, "error": "no"}
        return {"authenticated": True, "user": {"username": known[0], "groups": known[1], "uid": "7"}}

    def _access(self, review: Any) -> Any:
        spec = review["spec"]
        asked = spec["nonResourceAttributes"]
        return {"allowed": spec["user"] == "prometheus" and asked == {"path": "/metrics", "verb": "get"}}


class Visit:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.reviewer = Reviewer()
        pages = {path: lambda request: text_answer(f"this is {request.path}") for path in ("/metrics", "/readyz")}
        transport: Any = self.reviewer
        self.site = GuardedSite(
            Site(pages),
            DelegatedAuthenticator(transport, self.clock, ClientCertificates(ServerTls(TlsOptions())), 10.0),
            DelegatedAuthorizer(transport, self.clock, allowed_seconds=10.0, refused_seconds=5.0),
            self.clock,
        )

    async def status(
        self, path: str, token: str = "", certificate: ClientCertificate | None = None, method: str = "GET"
    ) -> int:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return (await self.site.answer(PageRequest(path, method, headers=headers), certificate)).status


async def test_health_is_open_and_asks_no_one() -> None:
    visit = Visit()
    assert await visit.status("/readyz") == 200
    assert visit.reviewer.asked == []


async def test_everything_else_needs_a_permission() -> None:
    visit = Visit()
    assert await visit.status("/metrics") == 403
    assert await visit.status("/metrics", "nobody's") == 401
    assert await visit.status("/metrics", "s") == 403
    assert await visit.status("/metrics", "p") == 200
    assert await visit.status("/metrics", "p", method="DELETE") == 403


async def test_stranger_is_not_told_which_pages_there_are() -> None:
    visit = Visit()
    assert await visit.status("/nonsense") == 403


async def test_anonymous_is_who_the_api_server_calls_so() -> None:
    visit = Visit()
    await visit.status("/metrics")
    assert visit.reviewer.asked == [
        (
            "subjectaccessreviews",
            {
                "user": "system:anonymous",
                "groups": ["system:unauthenticated"],
                "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
            },
        )
    ]


async def test_client_certificate_names_its_user_and_groups() -> None:
    visit = Visit()
    assert await visit.status("/metrics", certificate=CERTIFICATE) == 200
    (_, spec) = visit.reviewer.asked[0]
    assert (spec["user"], spec["groups"]) == ("prometheus", ["monitoring", "system:authenticated"])


async def test_answers_are_remembered_for_a_while() -> None:
    visit = Visit()
    for _ in range(5):
        assert await visit.status("/metrics", "p") == 200
        assert await visit.status("/metrics", "s") == 403
    assert len(visit.reviewer.asked) == 4
    visit.clock.now += 6.0
    assert await visit.status("/metrics", "p") == 200
    assert len(visit.reviewer.asked) == 4
    assert await visit.status("/metrics", "s") == 403
    assert len(visit.reviewer.asked) == 5, "a no is remembered for 5 s only"
    visit.clock.now += 5.0
    assert await visit.status("/metrics", "p") == 200
    assert len(visit.reviewer.asked) == 7


async def test_no_one_is_let_in_while_the_api_server_cannot_be_asked() -> None:
    visit = Visit()
    visit.reviewer.is_down = True
    assert await visit.status("/metrics", "p") == 401
    assert await visit.status("/metrics") == 500
    assert await visit.status("/readyz") == 200
    visit.reviewer.is_down = False
    assert await visit.status("/metrics", "p") == 200, "the failure is not remembered"


async def test_page_that_fails_is_an_internal_error() -> None:
    def broken(request: PageRequest) -> Any:
        raise ValueError("boom")

    assert Site({"/x": broken}).answer(PageRequest("/x")).status == 500


def test_pages_below_a_path() -> None:
    site = Site({"/healthz/": lambda request: text_answer("below")})
    assert site.answer(PageRequest("/healthz/a/b")).body == b"below"
    assert site.answer(PageRequest("/healthzz/a")).status == 404
