"""An API group that somebody else answers: found by clients, behind the token, and in nobody's way."""

from __future__ import annotations

import pytest

from pilotage.sandbox.http.exchange import Request, ServerResponse, json_response
from pilotage.sandbox.http.extensions import ExtensionGroup
from tests.sandbox.api_world import World

from .test_discovery import AGGREGATED, group

NAME = "metrics.example.com"
ENTRY = {"name": NAME, "versions": [{"groupVersion": f"{NAME}/v1", "version": "v1"}]}


def echo(request: Request) -> ServerResponse:
    return json_response({"method": request.method, "path": request.path, "query": dict(request.query)})


@pytest.fixture
def world() -> World:
    made = World()
    # Discovery was asked for before: what was remembered of it must not hide the group.
    made.ok("GET", "/apis")
    made.ok("GET", "/apis", accept=AGGREGATED)
    made.server.add_group(ExtensionGroup(NAME, ENTRY, {"metadata": {"name": NAME}, "versions": ["here"]}, echo))
    return made


def test_the_group_is_discovered_after_all_others(world: World) -> None:
    assert world.ok("GET", "/apis")["groups"][-1] == ENTRY
    aggregated = world.ok("GET", "/apis", accept=AGGREGATED)
    assert aggregated["items"][-1] == group(aggregated, NAME) and group(aggregated, NAME)["versions"] == ["here"]
    assert f"/apis/{NAME}" in world.ok("GET", "/")["paths"]
    assert [item["metadata"].get("name") for item in world.ok("GET", "/api", accept=AGGREGATED)["items"]] == [None]


@pytest.mark.parametrize("below", ["", "/v1", "/v1/namespaces/a/things/b/status"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_everything_below_is_handed_over(world: World, method: str, below: str) -> None:
    answer = world.ok(method, f"/apis/{NAME}{below}", query={"limit": "1"})
    assert answer == {"method": method, "path": f"/apis/{NAME}{below}", "query": {"limit": "1"}}


def test_a_group_whose_name_only_begins_the_same_is_another(world: World) -> None:
    assert world.refused("GET", f"/apis/{NAME}.org/v1")["code"] == 404


def test_own_objects_are_served_as_before(world: World) -> None:
    assert world.ok("GET", "/apis/apps/v1/deployments")["items"] == []
    assert world.ok("GET", "/apis/apps/v1")["groupVersion"] == "apps/v1"


def test_strangers_are_kept_out() -> None:
    world = World(token="secret")
    world.server.add_group(ExtensionGroup(NAME, ENTRY, {}, echo))
    assert world.refused("GET", f"/apis/{NAME}/v1")["code"] == 401
    assert world.ok("GET", f"/apis/{NAME}/v1", token="secret")["method"] == "GET"
