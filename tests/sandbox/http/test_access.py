"""Roles: who may do what, what is said to those who may not, and what reviews answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pilotage.rng import seeded
from pilotage.sandbox.api import Api
from pilotage.sandbox.embedded import make_default_roles
from pilotage.sandbox.http.audit_log import AuditLog
from pilotage.sandbox.http.exchange import Request, ServerResponse
from pilotage.sandbox.http.server import ApiServer
from pilotage.sandbox.storage.store import Store
from pilotage.testing.virtual_clock import VirtualClock

ADMIN, BOB, ANN = "admin-token", "bob-token", "ann-token"
PODS = "/api/v1/namespaces/default/pods"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES, BINDINGS = f"{RBAC}/namespaces/default/roles", f"{RBAC}/namespaces/default/rolebindings"
CLUSTER_ROLES, CLUSTER_BINDINGS = f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
SUBJECT_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
Json = dict[str, Any]


class Door:
    """A server that asks for roles, with two users beside the administrator."""

    def __init__(self, audit: AuditLog | None = None) -> None:
        self.clock = VirtualClock()
        self.api = Api(Store(history=1000), clock=self.clock, rng=seeded(3))
        make_default_roles(self.api)
        users = {
            BOB: {"username": "bob", "groups": ["developers", "system:authenticated"]},
            ANN: {"username": "ann", "groups": ["system:authenticated"]},
        }
        self.server = ApiServer(self.api, token=ADMIN, clock=self.clock, users=users, audit=audit)

    def send(self, token: str, method: str, path: str, body: object = None, **headers: str) -> ServerResponse:
        path, _, query = path.partition("?")
        given = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        raw = b"" if body is None else json.dumps(body).encode()
        parameters = dict(part.split("=") for part in query.split("&") if part)
        answer = self.server.handle(Request(method, path, parameters, given, raw))
        assert isinstance(answer, ServerResponse)
        return answer

    def ok(self, token: str, method: str, path: str, body: object = None, **headers: str) -> Any:
        answer = self.send(token, method, path, body, **headers)
        assert answer.status < 300, answer.body
        return json.loads(answer.body)

    def forbidden(self, token: str, method: str, path: str, body: object = None, **headers: str) -> str:
        answer = self.send(token, method, path, body, **headers)
        status = json.loads(answer.body)
        assert (answer.status, status["reason"]) == (403, "Forbidden"), answer.body
        return str(status["message"])

    def bind(self, role: str, *subjects: Json, kind: str = "ClusterRole", everywhere: bool = False) -> None:
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
        name = f"{role}-{len(self.api.list('rolebindings.rbac.authorization.k8s.io'))}"
        body = {"metadata": {"name": name}, "roleRef": reference, "subjects": list(subjects)}
        self.ok(ADMIN, "POST", CLUSTER_BINDINGS if everywhere else BINDINGS, body)


def user(name: str) -> Json:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}


def group(name: str) -> Json:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name}


def role(name: str, *rules: Json) -> Json:
    return {"metadata": {"name": name}, "rules": list(rules)}


def rule(verbs: str, resources: str, api_group: str = "", **more: Any) -> Json:
    return {"verbs": verbs.split(), "resources": resources.split(), "apiGroups": [api_group], **more}


def pod(name: str) -> Json:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.fixture
def door() -> Door:
    return Door()


def test_who_has_no_role_is_told_what_they_may_not_do_in_the_words_of_the_api_server(door: Door) -> None:
    where = 'resource "pods" in API group "" in the namespace "default"'
    assert door.forbidden(BOB, "GET", PODS) == f'pods is forbidden: User "bob" cannot list {where}'
    assert door.forbidden(BOB, "GET", f"{PODS}/p") == f'pods "p" is forbidden: User "bob" cannot get {where}'
    assert "cannot watch" in door.forbidden(BOB, "GET", f"{PODS}?watch=true")
    assert "cannot deletecollection" in door.forbidden(BOB, "DELETE", PODS)
    assert 'cannot patch resource "pods/status"' in door.forbidden(BOB, "PATCH", f"{PODS}/p/status", {})
    message = 'nodes is forbidden: User "bob" cannot list resource "nodes" in API group "" at the cluster scope'
    assert door.forbidden(BOB, "GET", "/api/v1/nodes") == message
    assert door.forbidden(BOB, "GET", "/metrics") == 'forbidden: User "bob" cannot get path "/metrics"'


def test_the_administrator_may_do_everything_and_a_stranger_is_nobody(door: Door) -> None:
    door.ok(ADMIN, "POST", PODS, pod("p"))
    assert door.send("wrong", "GET", PODS).status == 401
    assert door.send("wrong", "GET", "/healthz").status == 200


@pytest.mark.parametrize("subject", [user("bob"), group("developers"), group("system:authenticated")])
def test_a_role_gives_what_it_says_to_whom_it_is_bound(door: Door, subject: Json) -> None:
    door.ok(ADMIN, "POST", ROLES, role("reader", rule("get list", "pods")))
    door.bind("reader", subject, kind="Role")
    door.ok(BOB, "GET", PODS)
    door.forbidden(BOB, "POST", PODS, pod("p"))
    door.forbidden(BOB, "GET", "/api/v1/namespaces/kube-system/pods")
    door.forbidden(BOB, "GET", "/api/v1/pods")


def test_names_subresources_and_stars_in_rules(door: Door) -> None:
    door.ok(ADMIN, "POST", PODS, pod("mine"))
    door.ok(ADMIN, "POST", PODS, pod("other"))
    door.ok(ADMIN, "POST", ROLES, role("one", rule("get", "pods", resourceNames=["mine"]), rule("*", "*/status")))
    door.bind("one", user("bob"), kind="Role")
    door.ok(BOB, "GET", f"{PODS}/mine")
    door.forbidden(BOB, "GET", f"{PODS}/other")
    door.ok(BOB, "GET", f"{PODS}/other/status")


def test_the_roles_of_every_cluster_are_there_and_take_in_rules_for_custom_kinds(door: Door) -> None:
    door.bind("view", user("bob"))
    door.bind("edit", user("ann"))
    door.ok(BOB, "GET", PODS)
    door.forbidden(BOB, "GET", "/api/v1/namespaces/default/secrets")
    door.forbidden(BOB, "POST", PODS, pod("p"))
    door.ok(ANN, "POST", PODS, pod("p"))
    door.ok(ANN, "GET", "/api/v1/namespaces/default/secrets")
    door.forbidden(ANN, "POST", ROLES, role("r"))
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    door.forbidden(BOB, "GET", leases)
    more = role("leases-for-viewers", rule("get list", "leases", "coordination.k8s.io"))
    more["metadata"]["labels"] = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    door.ok(ADMIN, "POST", CLUSTER_ROLES, more)
    door.ok(BOB, "GET", leases)


def test_everyone_who_is_known_may_discover_and_ask_about_themselves(door: Door) -> None:
    for path in ("/api", "/apis/apps/v1", "/version", "/openapi/v3"):
        door.ok(ANN, "GET", path)
    assert door.ok(ANN, "POST", REVIEWS, asked("get", "pods"))["status"]["allowed"] is False
    whoami = door.ok(ANN, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert whoami["status"]["userInfo"]["username"] == "ann"


def asked(verb: str, resource: str, **more: Any) -> Json:
    return {"spec": {"resourceAttributes": {"verb": verb, "resource": resource, "namespace": "default"}, **more}}


def test_reviews_answer_as_a_request_would_be_answered(door: Door) -> None:
    door.bind("view", group("developers"))
    assert door.ok(BOB, "POST", REVIEWS, asked("list", "pods"))["status"]["allowed"] is True
    assert door.ok(BOB, "POST", REVIEWS, asked("delete", "pods"))["status"]["allowed"] is False
    about_bob = asked("list", "pods", user="someone", groups=["developers"])
    assert door.ok(ADMIN, "POST", SUBJECT_REVIEWS, about_bob)["status"]["allowed"] is True
    about_ann = asked("list", "pods", user="ann", groups=["system:authenticated"])
    assert door.ok(ADMIN, "POST", SUBJECT_REVIEWS, about_ann)["status"]["allowed"] is False
    door.forbidden(BOB, "POST", SUBJECT_REVIEWS, about_bob)
    rules = door.ok(
        BOB, "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}
    )
    assert any("pods" in one["resources"] and "list" in one["verbs"] for one in rules["status"]["resourceRules"])


def test_who_may_impersonate_acts_as_another(door: Door) -> None:
    door.bind("view", user("carol"))
    door.ok(ADMIN, "GET", PODS, impersonate_user="carol")
    assert 'User "dave"' in door.forbidden(ADMIN, "GET", PODS, impersonate_user="dave")
    door.bind("view", group("crew"))
    door.ok(ADMIN, "GET", PODS, impersonate_user="dave", impersonate_group="x\ncrew")
    message = door.forbidden(BOB, "GET", PODS, impersonate_user="carol")
    assert message.startswith('users "carol" is forbidden: User "bob" cannot impersonate resource "users"')


def test_a_service_account_may_do_what_is_bound_to_it(door: Door) -> None:
    door.ok(ADMIN, "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
    tokens = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    token = door.ok(ADMIN, "POST", tokens, {"spec": {}})["status"]["token"]
    assert "system:serviceaccount:default:robot" in door.forbidden(token, "GET", PODS)
    door.bind("view", {"kind": "ServiceAccount", "name": "robot", "namespace": "default"})
    door.ok(token, "GET", PODS)


def test_nobody_hands_on_more_than_they_have(door: Door) -> None:
    door.bind("admin", user("bob"))
    door.ok(BOB, "POST", ROLES, role("readers", rule("get", "pods")))
    message = door.forbidden(BOB, "POST", ROLES, role("nodes", rule("get", "nodes")))
    assert 'user "bob" (groups=["developers", "system:authenticated"]) is attempting to grant' in message
    assert message.endswith('{APIGroups:[""], Resources:["nodes"], Verbs:["get"]}')
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": [user("bob")]}
    assert "currently held" in door.forbidden(BOB, "POST", BINDINGS, binding)
    patched = door.forbidden(BOB, "PATCH", f"{ROLES}/readers", {}, content_type="application/merge-patch+json")
    assert "replace the whole object" in patched
    reference["name"] = "view"
    door.ok(BOB, "POST", BINDINGS, binding)


def test_what_policies_and_signing_requests_say_about_the_user_is_true(door: Door) -> None:
    requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    door.ok(
        ADMIN,
        "POST",
        CLUSTER_ROLES,
        role("askers", rule("create", "certificatesigningrequests", "certificates.k8s.io")),
    )
    door.bind("askers", user("bob"), everywhere=True)
    spec = {"request": "eA==", "signerName": "a.b/c", "usages": ["client auth"], "username": "root"}
    made = door.ok(BOB, "POST", requests, {"metadata": {"name": "c"}, "spec": spec})
    assert made["spec"]["username"] == "bob" and "developers" in made["spec"]["groups"]


async def test_requests_from_outside_are_recorded_with_who_asked_for_what_and_what_became_of_it(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    audit = AuditLog(file, VirtualClock())
    door = Door(audit)
    for token, method, path in ((BOB, "GET", PODS), (ADMIN, "GET", f"{PODS}/none"), ("wrong", "GET", PODS)):
        await door.server.respond(Request(method, path, {}, {"authorization": f"Bearer {token}", "user-agent": "me"}))
    audit.close()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["responseStatus"]["code"] for line in lines] == [403, 404, 401]
    assert [line["annotations"]["authorization.k8s.io/decision"] for line in lines] == ["forbid", "allow", "allow"]
    assert lines[0]["user"]["username"] == "bob" and lines[0]["verb"] == "list"
    assert lines[1]["objectRef"] == {"resource": "pods", "namespace": "default", "name": "none"}
    assert lines[0]["kind"] == "Event" and lines[0]["userAgent"] == "me"
    assert BOB not in file.read_text() and file.stat().st_mode & 0o077 == 0
