from __future__ import annotations

import json
from typing import Any

import pytest

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.storage.records import Key
from tests.sandbox.api_world import MERGE, STRATEGIC, World, config_map, definition, deployment, pod


@pytest.fixture
def world() -> World:
    return World()


def patch(world: World, resource: str, name: str, change: Any, subresource: str = "", kind: str = MERGE) -> Any:
    body = json.dumps(change).encode()
    return world.api.patch(resource, "default", name, body, kind, subresource)


def test_an_update_with_the_version_that_was_read_succeeds_once(world: World) -> None:
    first = world.api.create("configmaps", "default", config_map("c", a="1"))
    second = json.loads(json.dumps(first))
    first["data"] = {"a": "2"}
    assert world.api.update("configmaps", "default", "c", first)["data"] == {"a": "2"}
    second["data"] = {"a": "3"}
    with pytest.raises(ApiError, match="the object has been modified") as refused:
        world.api.update("configmaps", "default", "c", second)
    assert (refused.value.code, refused.value.reason) == (409, "Conflict")
    assert world.api.get("configmaps", "default", "c")["data"] == {"a": "2"}


def test_an_update_without_a_version_is_unconditional(world: World) -> None:
    world.api.create("configmaps", "default", config_map("c", a="1"))
    assert world.api.update("configmaps", "default", "c", config_map("c", a="2"))["data"] == {"a": "2"}


def test_identity_survives_whatever_an_update_says(world: World) -> None:
    created = world.api.create("configmaps", "default", config_map("c"))
    updated = world.api.update("configmaps", "default", "c", config_map("c", a="1"))
    for field in ("uid", "creationTimestamp", "namespace"):
        assert updated["metadata"][field] == created["metadata"][field]


def test_an_update_for_another_object_of_that_name_is_rejected(world: World) -> None:
    world.api.create("configmaps", "default", config_map("c"))
    stale = config_map("c")
    stale["metadata"]["uid"] = "of-the-one-before"
    with pytest.raises(ApiError, match="UID in precondition") as refused:
        world.api.update("configmaps", "default", "c", stale)
    assert refused.value.code == 409


def test_a_write_that_changes_nothing_is_no_write(world: World) -> None:
    created = world.api.create("deployments.apps", "default", deployment())
    revision = world.store.revision
    assert world.api.update("deployments.apps", "default", "web", deployment()) == created
    assert patch(world, "deployments.apps", "web", {"spec": {"replicas": 2}}) == created
    assert world.store.revision == revision


def test_generation_counts_changes_of_spec_only(world: World) -> None:
    world.api.create("deployments.apps", "default", deployment())

    def generation(change: Any, subresource: str = "") -> int:
        value: int = patch(world, "deployments.apps", "web", change, subresource)["metadata"]["generation"]
        return value

    assert generation({"spec": {"replicas": 3}}) == 2
    assert generation({"metadata": {"labels": {"a": "b"}}}) == 2
    assert generation({"status": {"replicas": 3}}, "status") == 2
    assert generation({"spec": {"replicas": 4}}) == 3


def test_an_update_leaves_status_alone_and_a_status_update_everything_else(world: World) -> None:
    world.api.create("deployments.apps", "default", deployment())
    changed = patch(world, "deployments.apps", "web", {"spec": {"replicas": 9}, "status": {"replicas": 9}})
    assert (changed["spec"]["replicas"], changed["status"]) == (9, {})
    changed = patch(world, "deployments.apps", "web", {"spec": {"replicas": 1}, "status": {"replicas": 5}}, "status")
    assert (changed["spec"]["replicas"], changed["status"]["replicas"]) == (9, 5)


def test_a_strategic_patch_of_pod_status_merges_conditions_by_type(world: World) -> None:
    world.api.create("pods", "default", pod())
    for kind in ("Ready", "PodScheduled"):
        conditions = [{"type": kind, "status": "True"}]
        patched = patch(world, "pods", "p", {"status": {"conditions": conditions}}, "status", STRATEGIC)
    assert {condition["type"] for condition in patched["status"]["conditions"]} == {"Ready", "PodScheduled"}


def test_a_patch_that_names_an_old_version_is_rejected(world: World) -> None:
    created = world.api.create("configmaps", "default", config_map("c"))
    patch(world, "configmaps", "c", {"data": {"a": "1"}})
    stale = {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}, "data": {"a": "2"}}
    with pytest.raises(ApiError) as refused:
        patch(world, "configmaps", "c", stale)
    assert refused.value.code == 409


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"metadata": {"name": "other"}}, 400),
        ({"metadata": {"namespace": "other"}}, 400),
        ({"kind": "Secret"}, 400),
        ({"metadata": "none"}, 400),
        ({"spec": {"replicas": "many"}}, 400),
        ({"spec": {"replicas": -1}}, 422),
        ({"spec": {"selector": {"matchLabels": {"app": "other"}}}}, 422),
    ],
)
def test_a_patch_to_something_wrong_is_rejected_and_changes_nothing(world: World, change: Any, code: int) -> None:
    created = world.api.create("deployments.apps", "default", deployment())
    with pytest.raises(ApiError) as refused:
        patch(world, "deployments.apps", "web", change)
    assert refused.value.code == code
    assert world.api.get("deployments.apps", "default", "web") == created


def test_a_pods_spec_is_immutable(world: World) -> None:
    world.api.create("pods", "default", pod())
    with pytest.raises(ApiError) as refused:
        patch(world, "pods", "p", {"spec": {"nodeSelector": {"a": "b"}}})
    assert refused.value.code == 422


def test_a_stored_object_with_a_wrong_type_can_be_mended(world: World) -> None:
    """An older version may have stored it; fields that are immutable otherwise may change then."""
    created = world.api.create("pods", "default", pod("p"))
    world.store.update(Key("pods", "default", "p"), {**created, "spec": {**created["spec"], "hostNetwork": "yes"}})
    mended = world.api.get("pods", "default", "p")
    mended["spec"]["hostNetwork"] = True
    mended["spec"]["hostname"] = "Bad_Name"
    with pytest.raises(ApiError, match=r'Pod "p" is invalid: spec\.hostname: Invalid value: "Bad_Name"'):
        world.api.update("pods", "default", "p", mended)
    mended["spec"]["hostname"] = "good"
    assert world.api.update("pods", "default", "p", mended)["spec"]["hostNetwork"] is True


def test_resize_changes_resources_and_nothing_else(world: World) -> None:
    requests = {"requests": {"cpu": "1"}}
    world.api.create("pods", "default", pod(containers=[{"name": "c", "image": "i", "resources": requests}]))
    wanted = pod(containers=[{"name": "c", "image": "other", "resources": {"requests": {"cpu": "2"}}}])
    resized = world.api.update("pods", "default", "p", wanted, "resize")
    container = resized["spec"]["containers"][0]
    assert (container["resources"]["requests"], container["image"]) == ({"cpu": "2"}, "i")
    assert resized["metadata"]["generation"] == 2


def test_a_custom_object_is_updated_with_a_version_only(world: World) -> None:
    world.api.create("customresourcedefinitions.apiextensions.k8s.io", "", definition())
    widget = {"metadata": {"name": "w"}, "spec": {"size": 1}}
    created = world.api.create("widgets.example.com", "default", widget)
    with pytest.raises(ApiError, match=r"metadata\.resourceVersion: Invalid value: 0: must be specified for an update"):
        world.api.update("widgets.example.com", "default", "w", {"metadata": {"name": "w"}, "spec": {"size": 2}})
    created["spec"] = {"size": 2}
    assert world.api.update("widgets.example.com", "default", "w", created)["metadata"]["generation"] == 2


def test_what_is_missing_cannot_be_updated(world: World) -> None:
    with pytest.raises(ApiError, match='configmaps "c" not found'):
        world.api.update("configmaps", "default", "c", config_map("c"))


def test_a_manifest_may_be_put_again_without_what_the_server_decided(world: World) -> None:
    """`kubectl replace -f` of the file that a service was created from."""

    def service() -> dict[str, Any]:
        return {"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}

    created = world.api.create("services", "default", service())
    assert created["spec"]["clusterIP"]
    assert world.api.update("services", "default", "s", service()) == created


@pytest.mark.parametrize("version", ["0", "", None])
def test_version_zero_replaces_whatever_is_there(world: World, version: str | None) -> None:
    world.api.create("configmaps", "default", config_map("c", a="1"))
    wanted = config_map("c", a="2")
    wanted["metadata"]["resourceVersion"] = version
    assert world.api.update("configmaps", "default", "c", wanted)["data"] == {"a": "2"}


def test_a_lease_is_replaced_with_a_version_only(world: World) -> None:
    lease = {"metadata": {"name": "l", "resourceVersion": "0"}, "spec": {"holderIdentity": "a"}}
    world.api.create("leases.coordination.k8s.io", "default", {"metadata": {"name": "l"}})
    with pytest.raises(ApiError, match="must be specified for an update"):
        world.api.update("leases.coordination.k8s.io", "default", "l", lease)


def test_a_pod_with_an_ephemeral_container_is_resized_within_its_quality_of_service(world: World) -> None:
    requests = {"requests": {"cpu": "1"}}
    sidecar = {"name": "s", "image": "i", "restartPolicy": "Always"}
    world.api.create(
        "pods",
        "default",
        pod(containers=[{"name": "c", "image": "i", "resources": requests}], initContainers=[sidecar]),
    )
    debugging = pod(ephemeralContainers=[{"name": "debug", "image": "i"}])
    world.api.update("pods", "default", "p", debugging, "ephemeralcontainers")
    wanted = pod(
        containers=[{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
        initContainers=[{"name": "s", "resources": {"requests": {"memory": "1Gi"}}}],
    )
    spec = world.api.update("pods", "default", "p", wanted, "resize")["spec"]
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "2"}
    assert spec["initContainers"][0]["resources"]["requests"] == {"memory": "1Gi"}
    assert spec["ephemeralContainers"][0]["name"] == "debug"
    nothing = pod(containers=[{"name": "c", "resources": {}}], initContainers=[{"name": "s", "resources": {}}])
    with pytest.raises(ApiError, match="Pod QOS Class may not change as a result of resizing"):
        world.api.update("pods", "default", "p", nothing, "resize")


def test_an_updated_pod_tolerates_nodes_that_stop_answering(world: World) -> None:
    created = world.api.create("pods", "default", pod())
    created["spec"].pop("tolerations")
    tolerations = world.api.update("pods", "default", "p", created)["spec"]["tolerations"]
    assert [one["tolerationSeconds"] for one in tolerations] == [300, 300]
