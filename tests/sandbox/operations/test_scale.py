from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.api_world import MERGE, World, definition, deployment

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
def world() -> World:
    world = World()
    world.ok("POST", DEPLOYMENTS, deployment(replicas=2))
    return world


def test_scale_shows_replicas_and_selector(world: World) -> None:
    scale = world.ok("GET", f"{DEPLOYMENTS}/web/scale")
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 0, "selector": "app=web"}


def test_setting_the_scale_is_a_change_of_spec(world: World) -> None:
    scale = world.ok("GET", f"{DEPLOYMENTS}/web/scale")
    scale["spec"]["replicas"] = 5
    assert world.ok("PUT", f"{DEPLOYMENTS}/web/scale", scale)["spec"]["replicas"] == 5
    changed = world.ok("GET", f"{DEPLOYMENTS}/web")
    assert changed["spec"]["replicas"] == 5 and changed["metadata"]["generation"] == 2
    assert world.refused("PUT", f"{DEPLOYMENTS}/web/scale", scale)["code"] == 409


def test_the_scale_can_be_patched(world: World) -> None:
    world.ok("PATCH", f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 7}}, content_type=MERGE)
    assert world.ok("GET", f"{DEPLOYMENTS}/web")["spec"]["replicas"] == 7


@pytest.mark.parametrize(("replicas", "code"), [(-1, 422), ("two", 400), (True, 400)])
def test_a_wrong_number_is_rejected(world: World, replicas: Any, code: int) -> None:
    patch = {"spec": {"replicas": replicas}}
    assert world.refused("PATCH", f"{DEPLOYMENTS}/web/scale", patch, content_type=MERGE)["code"] == code


def test_kinds_without_scale_have_none(world: World) -> None:
    world.ok("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}})
    assert world.refused("GET", "/api/v1/namespaces/default/configmaps/c/scale")["code"] == 404


def test_a_definition_says_where_the_replicas_are(world: World) -> None:
    paths = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.sizes.now",
        "labelSelectorPath": ".status.selector",
    }
    world.ok("POST", CRDS, definition(subresources={"status": {}, "scale": paths}))
    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    world.ok("POST", widgets, {"metadata": {"name": "w"}, "spec": {"size": 3}})
    status = {"status": {"sizes": {"now": 2}, "selector": "a=b"}}
    world.ok("PATCH", f"{widgets}/w/status", status, content_type=MERGE)
    scale = world.ok("GET", f"{widgets}/w/scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 2, "selector": "a=b"})
    scale["spec"]["replicas"] = 4
    world.ok("PUT", f"{widgets}/w/scale", scale)
    assert world.ok("GET", f"{widgets}/w")["spec"]["size"] == 4
