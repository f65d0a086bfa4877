"""The visibility API as an aggregated API server: which permission is asked for, how refusals look, and discovery."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilotage.jobs.visibility import VisibilityApi
from pilotage.serve.access import DelegatedAuthorizer
from pilotage.serve.client_certificates import ClientCertificates
from pilotage.serve.identity import DelegatedAuthenticator
from pilotage.serve.page import PageAnswer, PageRequest
from pilotage.serve.request_access import PathAccess, ResourceAccess, access_of
from pilotage.serve.site import GuardedSite, Site
from pilotage.serve.tls import ServerTls, TlsOptions
from pilotage.serve.visibility_pages import visibility_pages
from tests.jobs.test_visibility import Visible
from tests.kube.manual_clock import ManualClock

from .test_site import Reviewer

GROUP = "visibility.kueue.x-k8s.io"
BASE = f"/apis/{GROUP}/v1beta2"
OF_MAIN = f"{BASE}/clusterqueues/main/pendingworkloads"
OF_TEAM = f"{BASE}/namespaces/ns/localqueues/lq-main/pendingworkloads"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Namespaced(Reviewer):
    """`prometheus` may see the LocalQueues of one namespace."""

    def _access(self, review: Any) -> Any:
        asked = review["spec"].get("resourceAttributes", {})
        return {"allowed": review["spec"]["user"] == "prometheus" and asked.get("namespace") == "ns"}


class Visit:
    def __init__(self, api: VisibilityApi) -> None:
        clock, self.reviewer = ManualClock(), Namespaced()
        transport: Any = self.reviewer
        certificates = ClientCertificates(ServerTls(TlsOptions()))
        self._site = GuardedSite(
            Site(visibility_pages(api)),
            DelegatedAuthenticator(transport, clock, certificates),
            DelegatedAuthorizer(transport, clock),
            clock,
        )

    async def get(self, path: str, token: str = "p", **query: str) -> PageAnswer:
        asked = {name: [value] for name, value in query.items()}
        headers = {"authorization": f"Bearer {token}"}
        return await self._site.answer(PageRequest(path, query=asked, headers=headers), None)


@pytest.fixture
def visit() -> Visit:
    world = Visible()
    world.fill()
    world.wait("a", "b")
    return Visit(world.api)


async def test_who_may_sees_the_window_that_was_asked_for(visit: Visit) -> None:
    answer = await visit.get(OF_TEAM, offset="1")
    assert answer.status == 200 and answer.content_type == "application/json"
    assert [item["metadata"]["name"] for item in json.loads(answer.body)["items"]] == ["b"]


async def test_permission_is_asked_for_the_subresource(visit: Visit) -> None:
    await visit.get(OF_TEAM)
    (_, spec) = visit.reviewer.asked[-1]
    assert spec["resourceAttributes"] == {
        "verb": "get",
        "group": GROUP,
        "version": "v1beta2",
        "resource": "localqueues",
        "subresource": "pendingworkloads",
        "namespace": "ns",
        "name": "lq-main",
    }
    assert "nonResourceAttributes" not in spec


async def test_refusal_is_403_with_a_status_that_names_what_is_missing(visit: Visit) -> None:
    answer = await visit.get(OF_MAIN)
    status = json.loads(answer.body)
    assert (answer.status, status["kind"], status["code"], status["reason"]) == (403, "Status", 403, "Forbidden")
    assert status["message"] == (
        f'clusterqueues.{GROUP} "main" is forbidden: User "prometheus" cannot get resource '
        f'"clusterqueues/pendingworkloads" in API group "{GROUP}" at the cluster scope'
    )
    assert (await visit.get(OF_TEAM, "s")).status == 403
    assert (await visit.get(OF_TEAM.replace("lq-main", "nope"), "s")).status == 403, "strangers are told nothing"


async def test_queue_that_does_not_exist_is_not_found(visit: Visit) -> None:
    answer = await visit.get(OF_TEAM.replace("lq-main", "nope"))
    assert answer.status == 404 and json.loads(answer.body)["kind"] == "Status"


async def test_process_that_has_not_read_the_cluster_is_unavailable() -> None:
    answer = await Visit(VisibilityApi(lambda: None)).get(OF_TEAM)
    assert answer.status == 503 and json.loads(answer.body)["reason"] == "ServiceUnavailable"


@pytest.mark.parametrize(
    ("path", "accept", "kind"),
    [
        ("/apis", "", "APIGroupList"),
        ("/apis", f"{AGGREGATED},application/json", "APIGroupDiscoveryList"),
        (f"/apis/{GROUP}", "", "APIGroup"),
        (BASE, "", "APIResourceList"),
    ],
)
def test_discovery(path: str, accept: str, kind: str) -> None:
    site = Site(visibility_pages(VisibilityApi(lambda: None)))
    answer = site.answer(PageRequest(path, headers={"accept": accept}))
    assert answer.status == 200 and json.loads(answer.body)["kind"] == kind
    assert answer.content_type == (AGGREGATED if "as=" in accept else "application/json")


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/metrics", PathAccess("get", "/metrics")),
        ("GET", "/apis", PathAccess("get", "/apis")),
        ("GET", "/apis/g/v1", PathAccess("get", "/apis/g/v1")),
        ("GET", "/apis/g/v1/things", ResourceAccess("list", "g", "v1", "things")),
        ("GET", "/apis/g/v1/things/x", ResourceAccess("get", "g", "v1", "things", name="x")),
        ("DELETE", "/apis/g/v1/things/x", ResourceAccess("delete", "g", "v1", "things", name="x")),
        ("POST", "/apis/g/v1/things/x/y", ResourceAccess("create", "g", "v1", "things", "y", name="x")),
        ("GET", "/apis/g/v1/namespaces/n/things/x/y", ResourceAccess("get", "g", "v1", "things", "y", "n", "x")),
        ("GET", "/apis/g/v1/namespaces/n", ResourceAccess("get", "g", "v1", "namespaces", name="n")),
    ],
)
def test_requests_in_the_words_of_permissions(method: str, path: str, expected: object) -> None:
    assert access_of(PageRequest(path, method)) == expected
