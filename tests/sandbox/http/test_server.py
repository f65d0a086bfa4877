"""The HTTP dialect, request by request."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from pilotage.sandbox.http.exchange import Request, ServerResponse
from pilotage.sandbox.http.server import KEPT_SECONDS, EventExpiry
from pilotage.sandbox.storage.records import Key
from pilotage.sandbox.storage.store import Change, Store
from pilotage.testing.virtual_clock import VirtualClock
from tests.sandbox.api_world import PODS, World, config_map, pod

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/api/v1/namespaces/default/nothings", 404),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("GET", "/apis/apps/v2/deployments", 404),
        ("GET", "/nowhere", 404),
        ("GET", f"{PODS}/p", 404),
        ("GET", "/api/v1/pods/p", 404),
        ("GET", f"{PODS}/p/status/more", 404),
        ("GET", "/api/v1/namespaces//pods", 404),
        ("GET", f"{PODS}/p/telepathy", 404),
        ("POST", "/api/v1/pods", 404),
        ("PUT", PODS, 405),
        ("POST", f"{PODS}/p", 405),
        ("OPTIONS", PODS, 405),
        ("GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews", 405),
        ("GET", "/api/v1/namespaces/default/bindings", 405),
        ("DELETE", "/version", 405),
    ],
)
def test_paths_and_methods_that_lead_nowhere(world: World, method: str, path: str, code: int) -> None:
    assert world.refused(method, path, {} if method in ("POST", "PUT") else None)["code"] == code


@pytest.mark.parametrize(
    ("body", "code", "problem"),
    [
        (b"", 400, "the request has no body"),
        (b'{"kind": "Pod", ]', 400, "byte 16"),
        (b"[]", 400, "must be one JSON object"),
        (b'"pod"', 400, "must be one JSON object"),
        (b'{"metadata": {"name": "\xff"}}', 400, ""),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, 400, "nested too deeply"),
        (b'{"metadata": "x"}', 400, "metadata: expected object"),
        (b'{"spec": {"containers": "x"}}', 400, "spec.containers: expected array"),
        (b'{"metadata": {"name": "x", "labels": {"a": 1}}}', 400, "metadata.labels"),
        (b'{"metadata": {"name": "x"}, "spec": {"containers": []}}', 422, "spec.containers: Required value"),
        (b'{"metadata": {"name": "x"}}', 422, "spec"),
        (b'{"kind": "Node", "apiVersion": "v1"}', 400, "Node"),
    ],
    ids=lambda value: value[:30].decode("latin-1") if isinstance(value, bytes) else None,
)
def test_bad_bodies_are_rejected_by_name(world: World, body: bytes, code: int, problem: str) -> None:
    status = world.refused("POST", PODS, body)
    assert status["code"] == code and problem in status["message"]
    assert world.store.count("pods") == 0


@pytest.mark.parametrize("cpu", ["-1", "1.5.5", "many", [], {}])
def test_a_wrong_quantity_is_rejected_with_its_path(world: World, cpu: Any) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    status = world.refused("POST", PODS, pod(containers=[container]))
    assert "spec.containers[0].resources.requests" in status["message"]


def test_an_object_of_ten_megabytes_is_413_and_nothing_is_lost(world: World) -> None:
    world.ok("POST", MAPS, config_map("before"))
    status = world.refused("POST", MAPS, config_map("huge", text="x" * 10_000_000))
    assert status["code"] == 413 and "limit is 3145728 bytes" in status["message"]
    assert world.ok("GET", f"{MAPS}/before")["metadata"]["name"] == "before"


@pytest.mark.parametrize(
    ("method", "path", "content_type", "problem"),
    [
        ("POST", PODS, "text/plain", "accepted media types include: application/json"),
        ("PATCH", f"{PODS}/p", "application/apply-patch+cbor", "send application/apply-patch+yaml"),
        ("PATCH", f"{PODS}/p", "application/json", "accepted media types include"),
    ],
)
def test_formats_that_are_not_spoken_are_415(
    world: World, method: str, path: str, content_type: str, problem: str
) -> None:
    world.ok("POST", PODS, pod())
    status = world.refused(method, path, b"{}", content_type=content_type)
    assert status["code"] == 415 and problem in status["message"]


def test_an_answer_in_protobuf_only_is_406(world: World) -> None:
    assert world.refused("GET", PODS, accept="application/vnd.kubernetes.protobuf")["code"] == 406


def test_a_bug_is_a_500_and_the_server_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: object, **options: object) -> None:
        raise ZeroDivisionError("a bug")

    with monkeypatch.context() as broken_world, caplog.at_level(logging.ERROR):
        broken_world.setattr(world.api.verbs, "read", broken)
        status = world.refused("GET", f"{PODS}/p")
    assert (status["code"], status["reason"]) == (500, "InternalError")
    assert "ZeroDivisionError" in status["message"] and "a bug" in caplog.text
    world.ok("GET", PODS)


def test_without_the_token_there_is_nothing_but_health() -> None:
    world = World(token="secret")
    for path in ("/api", "/version", PODS, "/openapi/v3"):
        assert world.refused("GET", path)["code"] == 401
        assert world.refused("GET", path, token="wrong")["code"] == 401
    for path in ("/healthz", "/livez", "/readyz"):
        assert world.send("GET", path).body == b"ok"


def test_with_the_token_there_is_everything() -> None:
    world = World(token="secret")
    world.ok("POST", PODS, pod(), token="secret")
    assert world.ok("GET", PODS, token="secret")["items"]


async def test_an_answer_waits_until_what_it_says_is_durable() -> None:
    waited: list[int] = []

    class Slow:
        def load(self) -> tuple[int, list[Any]]:
            return 0, []

        def append(self, change: object) -> None:
            pass

        async def durable(self, revision: int) -> None:
            waited.append(revision)

        @property
        def is_writable(self) -> bool:
            return True

        @property
        def lost(self) -> Sequence[Change]:
            return ()

        def go_on(self, revision: int) -> None:
            raise AssertionError("nothing was lost")

    world = World(store=Store(history=10, journal=Slow()))
    answer = await world.server.respond(Request("POST", MAPS, {}, {}, json.dumps(config_map("c")).encode()))
    assert isinstance(answer, ServerResponse) and answer.status == 201
    assert waited == [world.store.revision]
    await world.server.respond(Request("GET", MAPS))
    assert waited == [world.store.revision] * 2, "what a read shows is on disk too"
    await world.server.respond(Request("GET", "/healthz"))
    assert len(waited) == 2, "a disk that hangs is no reason to end the server"


def events_in(store: Store) -> list[str]:
    return [record.key.name for record in store.list("events")]


def write_event(store: Store, name: str) -> None:
    key, obj = Key("events", "default", name), {"metadata": {"name": name, "namespace": "default"}}
    if store.get(key) is None:
        store.create(key, obj)
    else:
        store.update(key, obj)


async def test_an_event_goes_when_its_hour_is_over() -> None:
    store, clock = Store(history=10), VirtualClock()
    expiry = EventExpiry(store, clock)
    write_event(store, "early")
    await clock.advance(KEPT_SECONDS / 2)
    write_event(store, "late")
    await clock.advance(KEPT_SECONDS / 2)
    expiry.tick()
    assert events_in(store) == ["late"]


async def test_an_event_that_repeats_stays() -> None:
    store, clock = Store(history=10), VirtualClock()
    expiry = EventExpiry(store, clock)
    write_event(store, "often")
    await clock.advance(KEPT_SECONDS / 2)
    write_event(store, "often")
    await clock.advance(KEPT_SECONDS / 2 + 1)
    expiry.tick()
    assert events_in(store) == ["often"]
    await clock.advance(KEPT_SECONDS)
    expiry.tick()
    assert events_in(store) == []


async def test_an_event_that_someone_deleted_is_not_missed() -> None:
    store, clock = Store(history=10), VirtualClock()
    expiry = EventExpiry(store, clock)
    write_event(store, "gone")
    store.delete(Key("events", "default", "gone"))
    await clock.advance(KEPT_SECONDS + 1)
    expiry.tick()
    assert events_in(store) == []


async def test_events_of_an_earlier_run_go_too() -> None:
    store, clock = Store(history=10), VirtualClock()
    write_event(store, "old")
    expiry = EventExpiry(store, clock)
    await clock.advance(KEPT_SECONDS + 1)
    expiry.tick()
    assert events_in(store) == []
