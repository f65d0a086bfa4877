from __future__ import annotations

import json
from typing import Any

import pytest

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.storage.store import Store
from tests.sandbox.api_world import MERGE, World, config_map, definition, deployment, pod

CRDS = "customresourcedefinitions.apiextensions.k8s.io"


@pytest.fixture
def world() -> World:
    return World()


def running_pod(world: World, name: str = "p", namespace: str = "default", **spec: Any) -> dict[str, Any]:
    world.api.create("pods", namespace, pod(name, **spec))
    world.api.bind(namespace, name, "node-1")
    return world.api.get("pods", namespace, name)


def held(obj: dict[str, Any], *finalizers: str) -> dict[str, Any]:
    obj["metadata"]["finalizers"] = list(finalizers)
    return obj


def release(world: World, resource: str, name: str) -> None:
    world.api.patch(resource, "default", name, b'{"metadata":{"finalizers":null}}', MERGE)


def exists(world: World, resource: str, name: str, namespace: str = "default") -> bool:
    return world.api.find(resource, namespace, name) is not None


def test_an_object_that_no_one_holds_goes_at_once(world: World) -> None:
    world.api.create("configmaps", "default", config_map("c"))
    world.api.delete("configmaps", "default", "c")
    assert not exists(world, "configmaps", "c")


def test_a_pod_on_a_node_waits_for_its_kubelet(world: World) -> None:
    running_pod(world)
    deleted = world.api.delete("pods", "default", "p")
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == 30
    assert deleted["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:30Z"
    world.api.delete("pods", "default", "p", {"gracePeriodSeconds": 0})
    assert not exists(world, "pods", "p")


def test_a_pod_without_a_node_goes_at_once(world: World) -> None:
    world.api.create("pods", "default", pod())
    world.api.delete("pods", "default", "p")
    assert not exists(world, "pods", "p")


def test_a_finished_pod_goes_at_once(world: World) -> None:
    running_pod(world)
    world.api.patch("pods", "default", "p", b'{"status":{"phase":"Succeeded"}}', MERGE, "status")
    world.api.delete("pods", "default", "p")
    assert not exists(world, "pods", "p")


@pytest.mark.parametrize(
    ("spec", "options", "grace"),
    [
        ({"terminationGracePeriodSeconds": 5}, {}, 5),
        ({"terminationGracePeriodSeconds": 5}, {"gracePeriodSeconds": 60}, 60),
        ({}, {"gracePeriodSeconds": -1}, 1),
    ],
)
def test_the_request_overrides_the_pods_own_grace(
    world: World, spec: dict[str, Any], options: dict[str, Any], grace: int
) -> None:
    running_pod(world, **spec)
    deleted = world.api.delete("pods", "default", "p", options)
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == grace


def test_a_second_deletion_may_only_shorten_the_time(world: World) -> None:
    running_pod(world)
    first = world.api.delete("pods", "default", "p", {"gracePeriodSeconds": 20})
    assert world.api.delete("pods", "default", "p", {"gracePeriodSeconds": 60}) == first
    assert world.api.delete("pods", "default", "p") == first
    shorter = world.api.delete("pods", "default", "p", {"gracePeriodSeconds": 5})
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 5


def test_an_object_with_finalizers_goes_with_the_last_of_them(world: World) -> None:
    world.api.create("configmaps", "default", held(config_map("c"), "example.com/hold"))
    marked = world.api.delete("configmaps", "default", "c")
    assert marked["metadata"]["deletionTimestamp"]
    assert world.api.delete("configmaps", "default", "c") == marked
    release(world, "configmaps", "c")
    assert not exists(world, "configmaps", "c")


def test_a_terminating_pod_with_finalizers_outlives_its_kubelet(world: World) -> None:
    proposed = held(pod(), "example.com/hold")
    world.api.create("pods", "default", proposed)
    world.api.bind("default", "p", "node-1")
    world.api.delete("pods", "default", "p", {"gracePeriodSeconds": 0})
    assert exists(world, "pods", "p")
    release(world, "pods", "p")
    assert not exists(world, "pods", "p")


def test_taking_a_finalizer_off_does_not_overtake_the_kubelet(world: World) -> None:
    world.api.create("pods", "default", held(pod(), "example.com/hold"))
    world.api.bind("default", "p", "node-1")
    world.api.delete("pods", "default", "p")
    release(world, "pods", "p")
    assert exists(world, "pods", "p")


@pytest.mark.parametrize(
    ("options", "finalizers"),
    [
        ({"propagationPolicy": "Foreground"}, ["foregroundDeletion"]),
        ({"propagationPolicy": "Orphan"}, ["orphan"]),
        ({"orphanDependents": True}, ["orphan"]),
    ],
)
def test_propagation_becomes_a_finalizer_for_the_garbage_collector(
    world: World, options: dict[str, Any], finalizers: list[str]
) -> None:
    world.api.create("deployments.apps", "default", deployment())
    marked = world.api.delete("deployments.apps", "default", "web", options)
    assert marked["metadata"]["finalizers"] == finalizers
    assert marked["metadata"]["generation"] == 2


def test_background_is_the_default_except_for_jobs(world: World) -> None:
    world.api.create("deployments.apps", "default", deployment())
    world.api.delete("deployments.apps", "default", "web")
    assert not exists(world, "deployments.apps", "web")
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    world.api.create("jobs.batch", "default", {"metadata": {"name": "j"}, "spec": {"template": template}})
    assert world.api.delete("jobs.batch", "default", "j")["metadata"]["finalizers"] == ["orphan"]
    world.api.delete("jobs.batch", "default", "j", {"propagationPolicy": "Background"})
    assert not exists(world, "jobs.batch", "j")


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        ({"preconditions": {"uid": "other"}}, 409, "UID in precondition: other"),
        ({"preconditions": {"resourceVersion": "1"}}, 409, r"the ResourceVersion in the precondition \(1\)"),
        ({"propagationPolicy": "Sideways"}, 422, "propagationPolicy: Unsupported value"),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, 422, "cannot be both set"),
        ({"gracePeriodSeconds": "soon"}, 400, "gracePeriodSeconds"),
        ({"preconditions": []}, 400, "preconditions"),
    ],
)
def test_a_deletion_that_must_not_be(world: World, options: dict[str, Any], code: int, problem: str) -> None:
    world.api.create("configmaps", "default", config_map("c"))
    with pytest.raises(ApiError, match=problem) as refused:
        world.api.delete("configmaps", "default", "c", options)
    assert refused.value.code == code
    assert exists(world, "configmaps", "c")


def test_preconditions_that_hold(world: World) -> None:
    metadata = world.api.create("configmaps", "default", config_map("c"))["metadata"]
    preconditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    world.api.delete("configmaps", "default", "c", {"preconditions": preconditions})
    assert not exists(world, "configmaps", "c")


def test_a_namespace_takes_its_content_with_it(world: World) -> None:
    world.api.create("namespaces", "", {"metadata": {"name": "shop"}})
    world.api.create("configmaps", "shop", config_map("c"))
    world.api.create("configmaps", "default", config_map("c"))
    world.api.delete("namespaces", "", "shop")
    assert not exists(world, "namespaces", "shop", "")
    assert not exists(world, "configmaps", "c", "shop")
    assert exists(world, "configmaps", "c")


def test_a_namespace_stays_until_the_last_of_its_content_is_gone(world: World) -> None:
    world.api.create("namespaces", "", {"metadata": {"name": "shop"}})
    running_pod(world, "a", "shop")
    world.api.create("pods", "shop", held(pod("b"), "example.com/hold"))
    marked = world.api.delete("namespaces", "", "shop")
    assert marked["status"]["phase"] == "Terminating"
    world.api.delete("pods", "shop", "a", {"gracePeriodSeconds": 0})
    assert exists(world, "namespaces", "shop", "")
    world.api.patch("pods", "shop", "b", b'{"metadata":{"finalizers":null}}', MERGE)
    assert not exists(world, "namespaces", "shop", "")


def test_nothing_new_comes_into_a_namespace_on_its_way_out(world: World) -> None:
    world.api.create("namespaces", "", {"metadata": {"name": "shop"}})
    running_pod(world, "a", "shop")
    world.api.delete("namespaces", "", "shop")
    with pytest.raises(ApiError, match="because it is being terminated") as refused:
        world.api.create("configmaps", "shop", config_map("c"))
    assert refused.value.code == 403
    assert refused.value.status()["details"]["causes"][0]["reason"] == "NamespaceTerminating"


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_namespaces_of_the_system_cannot_be_deleted(world: World, name: str) -> None:
    with pytest.raises(ApiError, match="this namespace may not be deleted") as refused:
        world.api.delete("namespaces", "", name)
    assert refused.value.code == 403


def test_finalize_lets_a_stuck_namespace_go(world: World) -> None:
    world.api.create("namespaces", "", {"metadata": {"name": "shop"}})
    running_pod(world, "a", "shop")
    world.api.delete("namespaces", "", "shop")
    world.api.update("namespaces", "", "shop", {"metadata": {"name": "shop"}, "spec": {"finalizers": []}}, "finalize")
    assert not exists(world, "namespaces", "shop", "")


def test_a_definition_takes_its_objects_with_it(world: World) -> None:
    world.api.create(CRDS, "", definition())
    world.api.create("widgets.example.com", "default", {"metadata": {"name": "w"}})
    world.api.delete(CRDS, "", "widgets.example.com")
    assert not exists(world, CRDS, "widgets.example.com", "")
    assert world.store.count("widgets.example.com") == 0
    assert not world.api.registry.knows("widgets.example.com")


def test_a_definition_waits_for_objects_that_are_held(world: World) -> None:
    world.api.create(CRDS, "", definition())
    world.api.create("widgets.example.com", "default", held({"metadata": {"name": "w"}}, "example.com/hold"))
    world.api.delete(CRDS, "", "widgets.example.com")
    with pytest.raises(ApiError, match="while custom resource definition is terminating"):
        world.api.create("widgets.example.com", "default", {"metadata": {"name": "x"}})
    release(world, "widgets.example.com", "w")
    assert not exists(world, CRDS, "widgets.example.com", "")


def test_a_restart_goes_on_with_a_deletion_that_had_begun(world: World) -> None:
    world.api.create("namespaces", "", {"metadata": {"name": "shop"}})
    running_pod(world, "a", "shop")
    world.api.delete("namespaces", "", "shop")
    again = World(store=copied(world.store))
    with pytest.raises(ApiError, match="is being terminated"):
        again.api.create("configmaps", "shop", config_map("c"))
    again.api.delete("pods", "shop", "a", {"gracePeriodSeconds": 0})
    assert not exists(again, "namespaces", "shop", "")


def copied(store: Store) -> Store:
    """The state of a store as a restart finds it."""
    fresh = Store(history=100)
    for resource in store.resources():
        for record in store.list(resource):
            fresh.create(record.key, json.loads(record.body))
    return fresh


def test_pods_of_a_namespace_go_first_and_the_rest_when_the_last_has_gone(world: World) -> None:
    world.api.create("namespaces", "", {"metadata": {"name": "shop"}})
    running_pod(world, "a", "shop")
    world.api.create("configmaps", "shop", config_map("used"))
    world.api.delete("namespaces", "", "shop")
    assert exists(world, "configmaps", "used", "shop"), "a pod may use it until it has gone"
    conditions = {c["type"]: c for c in world.api.get("namespaces", "", "shop")["status"]["conditions"]}
    remaining = conditions["NamespaceContentRemaining"]
    assert remaining["status"] == "True"
    assert remaining["message"] == (
        "Some resources are remaining: configmaps has 1 resource instances, pods has 1 resource instances"
    )
    world.api.delete("pods", "shop", "a", {"gracePeriodSeconds": 0})
    assert not exists(world, "namespaces", "shop", "")


def test_namespace_says_which_finalizers_hold_it(world: World) -> None:
    world.api.create("namespaces", "", {"metadata": {"name": "shop"}})
    world.api.create("configmaps", "shop", held(config_map("c"), "example.com/hold"))
    world.api.delete("namespaces", "", "shop")
    conditions = {c["type"]: c for c in world.api.get("namespaces", "", "shop")["status"]["conditions"]}
    assert "example.com/hold in 1 resource instances" in conditions["NamespaceFinalizersRemaining"]["message"]
    world.api.patch("configmaps", "shop", "c", b'{"metadata":{"finalizers":null}}', MERGE)
    assert not exists(world, "namespaces", "shop", "")
