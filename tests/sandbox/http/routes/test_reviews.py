from __future__ import annotations

import pytest

from tests.sandbox.api_world import World

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def world() -> World:
    return World()


def test_the_one_token_is_right() -> None:
    world = World(token="secret")
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    right = world.ok("POST", path, {"spec": {"token": "secret"}}, token="secret")
    assert right["status"]["authenticated"] is True
    wrong = world.ok("POST", path, {"spec": {"token": "guess"}}, token="secret")
    assert wrong["status"]["authenticated"] is False


@pytest.mark.parametrize("kind", ["selfsubjectaccessreviews", "subjectaccessreviews"])
def test_everything_is_allowed(world: World, kind: str) -> None:
    review = world.ok("POST", f"/apis/authorization.k8s.io/v1/{kind}", {"spec": {}})
    assert review["status"]["allowed"] is True and "sandbox" in review["status"]["reason"]


def test_who_am_i(world: World) -> None:
    review = world.ok("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert review["status"]["userInfo"]["username"] == "sandbox-admin"
    rules = world.ok("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {}})
    assert rules["status"]["resourceRules"][0]["verbs"] == ["*"]


def test_a_review_has_no_table(world: World) -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert world.refused("POST", path, {"spec": {}}, accept=table)["reason"] == "NotAcceptable"
    assert world.ok("POST", path, {"spec": {}}, accept=f"{table},application/json")["status"]["allowed"] is True
