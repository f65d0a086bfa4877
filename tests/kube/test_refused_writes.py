"""Refused writes: counted each time, logged once with the rule to add."""

from __future__ import annotations

import logging

import msgspec
import pytest

from pilotage.kube.refused_writes import LOG_AGAIN_AFTER_SUCCESS_SECONDS, LOG_AGAIN_SECONDS, RefusedWrites, resource_of
from pilotage.kube.transport import Response
from pilotage.observe.metrics import Metrics
from pilotage.testing import VirtualClock

BINDING = "/api/v1/namespaces/default/pods/p{}/binding"
NO = (
    'pods "p" is forbidden: User "system:serviceaccount:kube-system:pilotage" cannot create resource "pods/binding" '
    'in API group "" in the namespace "default"'
)


def rejection(code: int = 403, message: str = NO) -> Response:
    return Response(code, {}, msgspec.json.encode({"kind": "Status", "reason": "Forbidden", "message": message}))


OK = Response(201, {}, b"{}")


class World:
    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        self.metrics, self.clock, self._caplog = Metrics(), VirtualClock(), caplog
        self.writes = RefusedWrites(self.metrics.refused_writes_total, self.clock)

    def errors(self) -> list[str]:
        return [record.getMessage() for record in self._caplog.records if record.levelno == logging.ERROR]


def test_a_thousand_refused_bindings_are_counted_and_logged_once_with_the_rule(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(caplog)
    for number in range(1000):
        world.writes.note("POST", BINDING.format(number), rejection())
    assert world.metrics.refused_writes_total.values() == {("create", "pods/binding", "Forbidden"): 1000}
    (message,) = world.errors()
    assert message.startswith("the API server refuses to create pods/binding: ")
    assert 'add to the role: - {apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]}' in message


async def test_it_is_logged_again_after_it_worked_or_an_hour_later(caplog: pytest.LogCaptureFixture) -> None:
    world = World(caplog)
    world.writes.note("POST", BINDING, rejection())
    world.writes.note("PATCH", "/api/v1/namespaces/default/pods/p/status", OK)
    world.writes.note("POST", BINDING, rejection())
    assert len(world.errors()) == 1, "another kind of write worked"
    world.writes.note("POST", BINDING, OK)
    assert "no longer refused: create pods/binding" in caplog.text
    world.writes.note("POST", BINDING, rejection())
    assert len(world.errors()) == 1, "what works here and not there is not logged all the time"
    await world.clock.advance(LOG_AGAIN_AFTER_SUCCESS_SECONDS)
    world.writes.note("POST", BINDING, rejection())
    assert len(world.errors()) == 2
    await world.clock.advance(LOG_AGAIN_SECONDS)
    world.writes.note("POST", BINDING, rejection())
    assert len(world.errors()) == 3


def test_kinds_of_writes_are_distinguished(caplog: pytest.LogCaptureFixture) -> None:
    world = World(caplog)
    for method in ("PATCH", "DELETE"):
        world.writes.note(method, "/api/v1/namespaces/default/pods/p", rejection())
    world.writes.note("DELETE", "/api/v1/namespaces/default/events/e", rejection())
    assert len(world.errors()) == 3


@pytest.mark.parametrize(
    ("method", "code"), [("DELETE", 404), ("PATCH", 409), ("POST", 429), ("PUT", 500), ("GET", 403)]
)
def test_what_passes_by_itself_is_no_refusal(method: str, code: int, caplog: pytest.LogCaptureFixture) -> None:
    world = World(caplog)
    world.writes.note(method, "/api/v1/namespaces/default/pods/p", rejection(code))
    assert world.metrics.refused_writes_total.values() == {} and world.errors() == []


def test_a_refusal_that_no_role_would_change_names_no_rule(caplog: pytest.LogCaptureFixture) -> None:
    world = World(caplog)
    world.writes.note("POST", "/apis/events.k8s.io/v1/namespaces/a/events", rejection(403, "exceeded quota: events"))
    (message,) = world.errors()
    assert "exceeded quota: events" in message and "add to the role" not in message


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/api/v1/namespaces/default/pods/p/binding", "pods/binding"),
        ("/api/v1/namespaces/default/pods/p", "pods"),
        ("/apis/events.k8s.io/v1/namespaces/default/events", "events"),
        ("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/pilotage", "leases"),
        ("/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/c/status", "resourceclaims/status"),
        ("/apis/kueue.x-k8s.io/v1beta1/clusterqueues/q/status", "clusterqueues/status"),
        ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "selfsubjectaccessreviews"),
        ("/api/v1/nodes/n", "nodes"),
        ("/api/v1/namespaces/default", "namespaces"),
        ("/api", ""),
    ],
)
def test_resources_are_called_as_in_roles(path: str, resource: str) -> None:
    assert resource_of(path) == resource
