"""Admission webhooks are called for real: an HTTPS server on loopback that answers as each test wants."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trustme
from aiohttp import web

from pilotage.clock import SystemClock
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.sandbox.http.exchange import Request, ServerResponse
from tests.kube.loopback import served

ROOT = "/apis/admissionregistration.k8s.io/v1"
MUTATING, VALIDATING = f"{ROOT}/mutatingwebhookconfigurations", f"{ROOT}/validatingwebhookconfigurations"
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE = "application/merge-patch+json"
Json = dict[str, Any]
Answer = Callable[[Json], Json]


class Cluster:
    """A sandbox and a webhook that it may call; what the webhook was asked stands in `asked`."""

    def __init__(self, cluster: EmbeddedCluster, authority: trustme.CA, url: str) -> None:
        self._cluster = cluster
        self._authority = base64.b64encode(authority.cert_pem.bytes()).decode()
        self.url = url
        self.asked: list[Json] = []
        self.answer: Answer = lambda _: {}

    async def send(self, method: str, path: str, body: object = None, **headers: str) -> ServerResponse:
        query = {"dryRun": "All"} if headers.pop("dry_run", "") else {}
        raw = b"" if body is None else json.dumps(body).encode()
        given = {"content-type": headers.pop("content_type", "application/json")}
        answer = await self._cluster.server.respond_trusted(Request(method, path, query, given, raw))
        assert isinstance(answer, ServerResponse)
        return answer

    async def ok(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        answer = await self.send(method, path, body, **headers)
        assert answer.status < 300, answer.body
        return json.loads(answer.body)

    async def rejected(self, method: str, path: str, body: object = None, **headers: str) -> Json:
        answer = await self.send(method, path, body, **headers)
        assert answer.status >= 400, answer.body
        status: Json = json.loads(answer.body)
        return status

    async def until(self, resource: str, path: str, is_so: Callable[[list[Json]], bool]) -> list[Json]:
        """The objects of a collection, when they are as they should be."""
        changed = asyncio.Event()
        unsubscribe = self._cluster.api.store.subscribe(resource, lambda _: changed.set())
        async with asyncio.timeout(60):
            while not is_so(found := (await self.ok("GET", path))["items"]):
                await changed.wait()
                changed.clear()
        unsubscribe()
        return list(found)

    async def configure(self, path: str, name: str = "hook.example.com", **fields: Any) -> None:
        rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": fields.pop("resources")}]
        webhook = {
            "name": name,
            "clientConfig": {"url": f"{self.url}/{name}", "caBundle": self._authority},
            "rules": rules,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **fields,
        }
        await self.ok("POST", path, {"metadata": {"name": name}, "webhooks": [webhook]})


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
async def cluster(authority: trustme.CA) -> AsyncIterator[Cluster]:
    async with running(authority) as one:
        yield one


@asynccontextmanager
async def running(authority: trustme.CA) -> AsyncIterator[Cluster]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost", "hooks.default.svc").configure_cert(context)

    async def hook(request: web.BaseRequest) -> web.StreamResponse:
        review = json.loads(await request.read())["request"]
        one.asked.append(review)
        answer = one.answer(review)
        if "sleep" in answer:
            await asyncio.sleep(answer["sleep"])
        if "status_code" in answer:
            return web.Response(status=answer["status_code"], text="broken")
        return web.json_response({"response": {"uid": review["uid"], "allowed": True, **answer}})

    options = EmbeddedOptions(nodes=1, port=None)
    async with EmbeddedCluster.running(options, SystemClock(), seeded(1)) as sandbox, served(hook, context) as url:
        one = Cluster(sandbox, authority, url)
        yield one


def patched(*operations: Json) -> Json:
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(list(operations)).encode()).decode()}


def labelled(review: Json) -> Json:
    return patched({"op": "add", "path": "/metadata/labels", "value": {"seen": review["operation"]}})


def config(name: str = "c", **data: str) -> Json:
    return {"metadata": {"name": name}, "data": data}


async def test_a_webhook_sees_the_object_as_it_would_be_stored_and_changes_it(cluster: Cluster) -> None:
    await cluster.configure(MUTATING, resources=["configmaps"])
    cluster.answer = labelled
    made = await cluster.ok("POST", MAPS, config(a="b"))
    assert made["metadata"]["labels"] == {"seen": "CREATE"}
    (review,) = cluster.asked
    assert review["object"]["metadata"]["uid"] and review["object"]["data"] == {"a": "b"}
    assert review["oldObject"] is None and review["dryRun"] is False and review["namespace"] == "default"
    assert review["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert review["userInfo"]["username"] == "sandbox-admin"
    stored = await cluster.ok("GET", f"{MAPS}/c")
    assert stored["metadata"]["labels"] == {"seen": "CREATE"} and stored["metadata"]["uid"]


async def test_updates_and_patches_come_with_the_old_object(cluster: Cluster) -> None:
    await cluster.ok("POST", MAPS, config(a="1"))
    await cluster.configure(MUTATING, resources=["configmaps"])
    cluster.answer = labelled
    after = await cluster.ok("PATCH", f"{MAPS}/c", {"data": {"a": "2"}}, content_type=MERGE)
    assert after["data"] == {"a": "2"} and after["metadata"]["labels"] == {"seen": "UPDATE"}
    (review,) = cluster.asked
    assert (review["oldObject"]["data"], review["object"]["data"]) == ({"a": "1"}, {"a": "2"})
    await cluster.ok("PUT", f"{MAPS}/c", config(a="3"))
    assert (await cluster.ok("GET", f"{MAPS}/c"))["data"] == {"a": "3"}


async def test_a_patch_that_somebody_overtakes_while_a_webhook_is_asked_goes_onto_the_newer_object(
    cluster: Cluster,
) -> None:
    await cluster.ok("POST", MAPS, config(n="0"))
    await cluster.configure(MUTATING, resources=["configmaps"], failurePolicy="Fail")

    def overtaking(review: Json) -> Json:
        if len(cluster.asked) == 1:
            cluster._cluster.api.patch("configmaps", "default", "c", b'{"data": {"other": "x"}}', MERGE)
        return labelled(review)

    cluster.answer = overtaking
    after = await cluster.ok("PATCH", f"{MAPS}/c", {"data": {"n": "1"}}, content_type=MERGE)
    assert after["data"] == {"n": "1", "other": "x"} and len(cluster.asked) == 2


async def test_a_rejection_has_the_words_of_the_api_server(cluster: Cluster) -> None:
    await cluster.configure(VALIDATING, resources=["configmaps"])
    cluster.answer = lambda _: {"allowed": False, "status": {"message": "not today", "code": 403}, "warnings": ["w"]}
    told = await cluster.rejected("POST", MAPS, config())
    assert told["message"] == 'admission webhook "hook.example.com" denied the request: not today'
    assert told["code"] == 403
    assert (await cluster.send("GET", f"{MAPS}/c")).status == 404
    cluster.answer = lambda _: {"allowed": False}
    told = await cluster.rejected("POST", MAPS, config())
    assert told["message"] == 'admission webhook "hook.example.com" denied the request without explanation'


async def test_webhooks_that_validate_see_what_those_that_mutate_have_made(cluster: Cluster) -> None:
    await cluster.configure(MUTATING, "mutate.example.com", resources=["configmaps"])
    await cluster.configure(VALIDATING, "validate.example.com", resources=["configmaps"])
    cluster.answer = lambda review: labelled(review) if len(cluster.asked) == 1 else {"warnings": ["looked at"]}
    answer = await cluster.send("POST", MAPS, config())
    assert answer.status == 201 and ("warning", '299 - "looked at"') in answer.headers
    assert cluster.asked[1]["object"]["metadata"]["labels"] == {"seen": "CREATE"}


async def test_a_webhook_that_makes_nonsense_of_an_object_is_rejected_as_its_writer_would_be(cluster: Cluster) -> None:
    await cluster.configure(MUTATING, resources=["configmaps"])
    cluster.answer = lambda _: patched({"op": "add", "path": "/metadata/labels", "value": {"a": "not a label!"}})
    assert (await cluster.rejected("POST", MAPS, config()))["reason"] == "Invalid"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"status_code": 500}, "an error on the server"),
        ({"uid": "other"}, "expected response.uid="),
        ({"patch": "e30=", "patchType": "Merge"}, "patchType 'Merge'"),
        ({"patch": "%%%", "patchType": "JSONPatch"}, "is not base64"),
        ({"sleep": 5}, "context deadline exceeded"),
    ],
)
async def test_a_webhook_that_fails_ends_the_write_or_counts_as_absent(
    cluster: Cluster, answer: Json, problem: str
) -> None:
    await cluster.configure(MUTATING, resources=["configmaps"], timeoutSeconds=1)
    cluster.answer = lambda _: answer
    told = await cluster.rejected("POST", MAPS, config())
    assert told["code"] == 500 and 'failed calling webhook "hook.example.com"' in told["message"]
    assert problem in told["message"]
    stored = await cluster.ok("GET", f"{MUTATING}/hook.example.com")
    ignored = {"webhooks": [{**stored["webhooks"][0], "failurePolicy": "Ignore"}]}
    await cluster.ok("PATCH", f"{MUTATING}/hook.example.com", ignored, content_type=MERGE)
    assert "labels" not in (await cluster.ok("POST", MAPS, config()))["metadata"]


async def test_a_webhook_that_cannot_be_trusted_is_not_asked(cluster: Cluster) -> None:
    await cluster.configure(VALIDATING, resources=["configmaps"])
    stored = await cluster.ok("GET", f"{VALIDATING}/hook.example.com")
    stored["webhooks"][0]["clientConfig"]["caBundle"] = base64.b64encode(trustme.CA().cert_pem.bytes()).decode()
    await cluster.ok("PUT", f"{VALIDATING}/hook.example.com", stored)
    assert "certificate is not trusted" in (await cluster.rejected("POST", MAPS, config()))["message"]
    assert cluster.asked == []


async def test_a_service_of_type_ExternalName_leads_to_a_webhook_and_one_of_pods_says_what_to_do(
    cluster: Cluster,
) -> None:
    port = int(cluster.url.rpartition(":")[2])
    service = {"namespace": "default", "name": "hooks", "path": "/x", "port": port}
    authority = cluster._authority
    client = {"service": service, "caBundle": authority}
    await cluster.configure(VALIDATING, resources=["configmaps"], clientConfig=client)
    assert 'service "hooks" not found' in (await cluster.rejected("POST", MAPS, config()))["message"]
    made = {"metadata": {"name": "hooks"}, "spec": {"ports": [{"port": 443}], "selector": {"a": "b"}}}
    await cluster.ok("POST", "/api/v1/namespaces/default/services", made)
    assert "make the service one of type ExternalName" in (await cluster.rejected("POST", MAPS, config()))["message"]
    await cluster.ok("DELETE", "/api/v1/namespaces/default/services/hooks")
    external = {"metadata": {"name": "hooks"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    await cluster.ok("POST", "/api/v1/namespaces/default/services", external)
    await cluster.ok("POST", MAPS, config())
    assert len(cluster.asked) == 1


async def test_only_what_rules_selectors_and_conditions_match_is_sent(cluster: Cluster) -> None:
    await cluster.configure(
        VALIDATING,
        resources=["configmaps"],
        objectSelector={"matchLabels": {"ask": "yes"}},
        matchConditions=[{"name": "big", "expression": "size(object.data) > 1"}],
    )
    await cluster.ok("POST", MAPS, config("plain", a="1", b="2"))
    await cluster.ok("POST", MAPS, {**config("small", a="1"), "metadata": {"name": "small", "labels": {"ask": "yes"}}})
    await cluster.ok("POST", PODS, pod("p"))
    assert cluster.asked == []
    await cluster.ok(
        "POST", MAPS, {"metadata": {"name": "big", "labels": {"ask": "yes"}}, "data": {"a": "1", "b": "2"}}
    )
    assert [review["name"] for review in cluster.asked] == ["big"]


async def test_deletions_are_asked_about_one_by_one(cluster: Cluster) -> None:
    for name in ("a", "b"):
        await cluster.ok("POST", MAPS, config(name))
    await cluster.configure(VALIDATING, resources=["configmaps"])
    cluster.answer = lambda review: {"allowed": review["name"] != "b"}
    assert (await cluster.rejected("DELETE", f"{MAPS}/b"))["code"] == 403
    await cluster.rejected("DELETE", MAPS)
    await cluster.ok("DELETE", f"{MAPS}/a")
    assert {review["operation"] for review in cluster.asked} == {"DELETE"}
    assert all(review["object"] is None and review["oldObject"] for review in cluster.asked)
    left = {item["metadata"]["name"] for item in (await cluster.ok("GET", MAPS))["items"]}
    assert "b" in left and "a" not in left


async def test_a_dry_run_is_told_to_the_webhook(cluster: Cluster) -> None:
    await cluster.configure(VALIDATING, resources=["configmaps"])
    await cluster.ok("POST", MAPS, config(), dry_run="yes")
    assert cluster.asked[0]["dryRun"] is True and cluster.asked[0]["options"]["dryRun"] == ["All"]


async def test_pods_of_a_deployment_are_changed_by_a_webhook_too(cluster: Cluster) -> None:
    await cluster.configure(MUTATING, resources=["pods"])
    cluster.answer = lambda review: (
        patched({"op": "add", "path": "/metadata/annotations", "value": {"injected": "yes"}})
        if review["operation"] == "CREATE"
        else {}
    )
    await cluster.ok("POST", DEPLOYMENTS, deployment(3))
    pods = await cluster.until("pods", PODS, lambda found: len(found) == 3)
    assert all(one["metadata"]["annotations"]["injected"] == "yes" for one in pods)
    assert all(one["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet" for one in pods)


async def test_a_replica_set_whose_pods_are_rejected_says_so_and_gets_them_when_the_webhook_lets_them(
    cluster: Cluster,
) -> None:
    await cluster.configure(VALIDATING, resources=["pods"])
    cluster.answer = lambda _: {"allowed": False, "status": {"message": "no pods today"}}
    await cluster.ok("POST", DEPLOYMENTS, deployment(1))
    sets = "/apis/apps/v1/namespaces/default/replicasets"
    await cluster.until("replicasets.apps", sets, lambda found: any("no pods today" in str(one) for one in found))
    cluster.answer = lambda _: {}
    await cluster.until("pods", PODS, bool)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"name": "short"}, "webhooks[0].name"),
        ({"sideEffects": "Some"}, "webhooks[0].sideEffects"),
        ({"admissionReviewVersions": ["v2"]}, "webhooks[0].admissionReviewVersions"),
        ({"timeoutSeconds": 31}, "webhooks[0].timeoutSeconds"),
        ({"clientConfig": {"url": "http://plain"}}, "webhooks[0].clientConfig.url"),
        ({"clientConfig": {}}, "webhooks[0].clientConfig"),
        ({"failurePolicy": "Maybe"}, "webhooks[0].failurePolicy"),
        ({"matchConditions": [{"name": "a", "expression": "1 +"}]}, "webhooks[0].matchConditions[0].expression"),
    ],
)
async def test_a_configuration_that_cannot_be_used_is_not_stored(cluster: Cluster, fields: Json, path: str) -> None:
    webhook = {
        "name": "a.b.c",
        "clientConfig": {"url": "https://localhost"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }
    told = await cluster.rejected("POST", MUTATING, {"metadata": {"name": "x"}, "webhooks": [webhook]})
    assert path in [cause["field"] for cause in told["details"]["causes"]]


def pod(name: str) -> Json:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def deployment(replicas: int) -> Json:
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "d"}}, "template": template}
    return {"metadata": {"name": "d"}, "spec": spec}
