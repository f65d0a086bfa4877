from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pilotage.api import Kind
from pilotage.kube.client import KubeClient, ServerVersion
from pilotage.kube.errors import ApiStatusError
from pilotage.kube.preflight import (
    Permission,
    Refused,
    await_server,
    missing,
    missing_permissions,
    version_warning,
)
from pilotage.kube.transport import NoIdentity, Response, TransportError
from pilotage.model import KINDS
from pilotage.model.kinds import WATCHED

from .manual_clock import HurriedClock

WATCHED_KINDS = [KINDS[resource] for resource in WATCHED]


class SomeServer:
    """Answers with a given code for some paths; may not answer at all for a while."""

    def __init__(self, codes: Mapping[str, int], silent: int = 0, bodies: Mapping[str, bytes] | None = None) -> None:
        self.codes = codes
        self.bodies = bodies or {}
        self.silent = silent
        self.asked: list[str] = []

    async def request(self, method: str, path: str, **_: object) -> Response:
        self.asked.append(path)
        if self.silent:
            self.silent -= 1
            raise TransportError("no answer from http://127.0.0.1:1", sent=False)
        code = self.codes.get(path, 200)
        if code != 200:
            status = {"kind": "Status", "reason": "Some", "message": "not for you", "code": code}
            return Response(code, {}, json.dumps(status).encode())
        if path in self.bodies:
            return Response(200, {}, self.bodies[path])
        if path == "/version":
            return Response(200, {}, b'{"gitVersion": "v1.36.0", "major": "1", "minor": "36+"}')
        if path == "/apis/storage.k8s.io/v1":
            return Response(200, {}, b'{"kind": "APIResourceList", "resources": [{"name": "csinodes"}]}')
        return Response(200, {}, b'{"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []}')


class Waits:
    def __init__(self) -> None:
        self.told: list[tuple[str, float]] = []

    def __call__(self, problem: str, pause: float) -> None:
        self.told.append((problem, pause))


async def check(server: SomeServer, waits: Waits | None = None) -> ServerVersion:
    client: Any = server
    return await await_server(KubeClient(client), WATCHED_KINDS, HurriedClock(), waits or Waits())


async def test_everything_that_is_watched_is_listed_once() -> None:
    server = SomeServer({})
    assert (await check(server)).git_version == "v1.36.0"
    assert server.asked == ["/version", *(kind.path() for kind in WATCHED_KINDS)]


async def test_kind_that_the_server_does_not_have_is_no_obstacle() -> None:
    await check(SomeServer({WATCHED_KINDS[-1].path(): 404}))


async def test_a_plugins_kind_that_we_may_not_read_is_named_with_the_plugin_and_the_rule() -> None:
    groups = Kind("podgroups.scheduling.x-k8s.io", "v1alpha1").info
    root = "/apis/scheduling.x-k8s.io/v1alpha1"
    served = SomeServer({groups.path(): 403}, bodies={root: b'{"resources": [{"name": "podgroups"}]}'})
    client: Any = served
    with pytest.raises(Refused) as raised:
        await await_server(KubeClient(client), [groups], HurriedClock(), Waits(), {groups.kind: ["Coscheduling"]})
    assert raised.value.problems == (
        "not for you (plugin Coscheduling wants to watch podgroups.v1alpha1.scheduling.x-k8s.io); add to the role: "
        '- {apiGroups: ["scheduling.x-k8s.io"], resources: ["podgroups"], verbs: ["list", "watch"]}',
    )


async def test_a_plugins_kind_that_is_not_installed_is_no_obstacle() -> None:
    groups = Kind("podgroups.scheduling.x-k8s.io", "v1alpha1").info
    client: Any = SomeServer({groups.path(): 403, "/apis/scheduling.x-k8s.io/v1alpha1": 404})
    await await_server(KubeClient(client), [groups], HurriedClock(), Waits(), {groups.kind: ["Coscheduling"]})


async def test_server_that_does_not_answer_is_waited_for_with_growing_pauses() -> None:
    waits = Waits()
    await check(SomeServer({}, silent=6), waits)
    assert [pause for _, pause in waits.told] == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    assert waits.told[0][0] == "no answer from http://127.0.0.1:1"


async def test_server_that_is_not_ready_is_waited_for() -> None:
    waits = Waits()
    server = SomeServer({"/version": 503})

    class Recovers(Waits):
        def __call__(self, problem: str, pause: float) -> None:
            super().__call__(problem, pause)
            server.codes = {}

    waits = Recovers()
    await check(server, waits)
    assert "the API server is not ready: not for you (HTTP 503 Some)" in waits.told[0][0]


class ServerThatReadsItsRoles(SomeServer):
    """Does not answer once, then forbids everything for so many requests."""

    def __init__(self, refusals: int) -> None:
        super().__init__({}, silent=1)
        self.refusals = refusals

    async def request(self, method: str, path: str, **options: object) -> Response:
        answer = await super().request(method, path, **options)
        if self.refusals:
            self.refusals -= 1
            return Response(
                403, {}, b'{"kind": "Status", "reason": "Forbidden", "message": "roles not read", "code": 403}'
            )
        return answer


async def test_server_that_has_just_come_up_and_knows_no_roles_yet_is_waited_for() -> None:
    waits = Waits()
    await check(ServerThatReadsItsRoles(refusals=2), waits)
    assert [problem.partition(":")[0] for problem, _ in waits.told[1:]] == ["the API server is not ready"] * 2


async def test_server_that_goes_on_to_refuse_after_it_has_come_up_is_not() -> None:
    with pytest.raises(Refused, match="roles not read"):
        await check(ServerThatReadsItsRoles(refusals=1_000))


async def test_expired_credentials_are_not_waited_for() -> None:
    with pytest.raises(Refused, match=r"does not accept our credentials: .*HTTP 401.*expired\?"):
        await check(SomeServer({"/version": 401}))


async def test_every_missing_permission_is_reported_with_its_rule() -> None:
    with pytest.raises(Refused) as refused:
        await check(SomeServer({KINDS["nodes"].path(): 403, KINDS["csinodes"].path(): 403}))
    assert refused.value.problems == (
        'not for you; add to the role: - {apiGroups: [""], resources: ["nodes"], verbs: ["list", "watch"]}',
        "not for you; add to the role: "
        '- {apiGroups: ["storage.k8s.io"], resources: ["csinodes"], verbs: ["list", "watch"]}',
    )


@pytest.mark.parametrize(
    ("major", "minor", "is_known"),
    [
        ("1", "37", True),
        ("1", "34", True),
        ("1", "35+", True),
        ("1", "33", False),
        ("1", "99", False),
        ("2", "1", False),
    ],
)
def test_server_of_an_unknown_version_is_worth_a_warning(major: str, minor: str, is_known: bool) -> None:
    warning = version_warning(ServerVersion(f"v{major}.{minor}.0", major, minor))
    assert (warning == "") is is_known


class Reviewing(SomeServer):
    """May bind, and nothing else."""

    async def request(self, method: str, path: str, **options: Any) -> Response:
        spec = json.loads(options["body"])["spec"]["resourceAttributes"]
        allowed = spec["subresource"] == "binding"
        return Response(201, {}, json.dumps({"status": {"allowed": allowed}}).encode())


async def test_what_may_not_be_written_is_asked_of_the_server() -> None:
    client: Any = Reviewing({})
    wanted = [Permission("create", "", "pods", "binding"), Permission("get", "coordination.k8s.io", "leases", "", "ns")]
    lacking = await missing_permissions(KubeClient(client), wanted)
    assert [missing(permission) for permission in lacking] == [
        'may not get leases in namespace "ns"; add to the role: '
        '- {apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get"]}'
    ]


def test_refusal_of_the_server_is_reported_with_the_rule_that_lifts_it() -> None:
    message = (
        'pods "p" is forbidden: User "u" cannot create resource "pods/binding" in API group "" in the namespace "x"'
    )
    assert str(ApiStatusError(403, "Forbidden", message)).endswith(
        'add to the role: - {apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]}'
    )
    assert "role" not in str(ApiStatusError(409, "Conflict", message))


class Stranger(SomeServer):
    """A server that gives a certain answer to everything but its version."""

    def __init__(self, version: Response | TransportError, answer: Response) -> None:
        super().__init__({})
        self.version, self._answer = version, answer

    async def request(self, method: str, path: str, **_: object) -> Response:
        if path != "/version":
            return self._answer
        if isinstance(self.version, TransportError):
            raise self.version
        return self.version


NOTHING = Response(200, {}, b'{"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []}')
VERSION = Response(200, {}, b'{"gitVersion": "v1.36.0", "major": "1", "minor": "36"}')
ANONYMOUS = (
    b'{"kind": "Status", "reason": "Forbidden", "message": "nodes is forbidden: User "system:anonymous" cannot"}'
)


@pytest.mark.parametrize(
    ("version", "answer", "told"),
    [
        pytest.param(
            VERSION,
            Response(403, {}, ANONYMOUS),
            "the API server takes us for system:anonymous, who may do nothing: "
            "the user of this context has no token, client-certificate or exec",
            id="nobody",
        ),
        pytest.param(
            Response(200, {}, b'{"etcdserver": "3.6.8"}'),
            VERSION,
            "the server's /version is not that of a Kubernetes API server; check the server's address",
            id="another server",
        ),
        pytest.param(
            Response(400, {}, b"Client sent an HTTP request to an HTTPS server.\n"),
            VERSION,
            "the API server refuses us: Client sent an HTTP request to an HTTPS server. (HTTP 400); "
            "check the address, scheme and path of the server",
            id="wrong scheme",
        ),
    ],
)
async def test_what_is_wrong_is_reported_in_one_line(version: Response, answer: Response, told: str) -> None:
    with pytest.raises(Refused) as refused:
        await check(Stranger(version, answer))
    assert refused.value.problems == (told,)


async def test_credentials_that_cannot_be_had_are_waited_for_and_not_taken_for_a_silent_server() -> None:
    server = Stranger(NoIdentity("exec: cannot run helper", sent=False), NOTHING)

    class HelperIsInstalled(Waits):
        def __call__(self, problem: str, pause: float) -> None:
            super().__call__(problem, pause)
            server.version = VERSION

    waits = HelperIsInstalled()
    await check(server, waits)
    assert [problem for problem, _ in waits.told] == ["there are no credentials to come with: exec: cannot run helper"]
