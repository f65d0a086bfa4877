from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.errors import ApiError
from tests.sandbox.api_world import World, config_map, deployment, pod


@pytest.fixture
def world() -> World:
    return World()


def test_a_new_object_gets_an_identity(world: World) -> None:
    created = world.api.create("pods", "default", pod())
    metadata = created["metadata"]
    assert metadata["namespace"] == "default"
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert metadata["generation"] == 1
    assert metadata["resourceVersion"] == str(world.store.revision)
    assert len(metadata["uid"]) == 36
    assert created["status"]["phase"] == "Pending"
    assert world.api.get("pods", "default", "p") == created


def test_what_a_client_may_not_choose_is_replaced(world: World) -> None:
    proposed = pod()
    proposed["metadata"] |= {"uid": "mine", "generation": 9, "deletionTimestamp": "2020-01-01T00:00:00Z"}
    proposed["status"] = {"phase": "Running", "podIP": "1.2.3.4"}
    created = world.api.create("pods", "default", proposed)
    assert created["metadata"]["uid"] != "mine"
    assert created["metadata"]["generation"] == 1
    assert "deletionTimestamp" not in created["metadata"]
    assert "podIP" not in created["status"]


def test_a_node_keeps_the_status_that_it_registers_with(world: World) -> None:
    node = {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}}
    assert world.api.create("nodes", "", node)["status"]["capacity"] == {"cpu": "4"}


def test_generate_name_makes_names_that_are_free(world: World) -> None:
    names = set()
    for _ in range(20):
        proposed = pod()
        proposed["metadata"] = {"generateName": "web-"}
        names.add(world.api.create("pods", "default", proposed)["metadata"]["name"])
    assert len(names) == 20
    assert all(name.startswith("web-") and len(name) == len("web-") + 5 for name in names)


def test_a_long_generate_name_is_cut_to_fit(world: World) -> None:
    proposed = config_map("")
    proposed["metadata"] = {"generateName": "x" * 80}
    assert len(world.api.create("configmaps", "default", proposed)["metadata"]["name"]) == 63


@pytest.mark.parametrize(
    ("namespace", "change", "code", "problem"),
    [
        ("default", {"name": ""}, 422, "metadata.name: Required value: name or generateName is required"),
        ("nope", {}, 404, 'namespaces "nope" not found'),
        ("default", {"namespace": "other"}, 400, "does not match the namespace sent on the request"),
        ("default", {"resourceVersion": "7"}, 400, "resourceVersion should not be set"),
        ("default", {"name": "Not A Name"}, 422, "metadata.name: Invalid value"),
    ],
)
def test_a_wrong_beginning_is_rejected(
    world: World, namespace: str, change: dict[str, Any], code: int, problem: str
) -> None:
    proposed = pod()
    proposed["metadata"] |= change
    before = world.store.revision
    with pytest.raises(ApiError, match=problem) as refused:
        world.api.create("pods", namespace, proposed)
    assert refused.value.code == code
    assert world.store.revision == before


def test_a_name_can_be_used_once(world: World) -> None:
    world.api.create("pods", "default", pod())
    with pytest.raises(ApiError, match='pods "p" already exists'):
        world.api.create("pods", "default", pod())


@pytest.mark.parametrize(
    ("kind", "api_version"), [("Deployment", "v1"), ("Pod", "v2"), ("Pod", "apps/v1")], ids=["kind", "version", "group"]
)
def test_an_object_of_another_type_is_rejected(world: World, kind: str, api_version: str) -> None:
    with pytest.raises(ApiError) as refused:
        world.api.create("pods", "default", {**pod(), "kind": kind, "apiVersion": api_version})
    assert refused.value.code == 400


def test_a_dry_run_does_everything_but_store(world: World) -> None:
    before = world.store.revision
    shown = world.api.create("pods", "default", pod(), dry_run=True)
    assert shown["spec"]["schedulerName"] == "default-scheduler"
    assert "resourceVersion" not in shown["metadata"]
    assert world.store.revision == before
    with pytest.raises(ApiError):
        world.api.create("pods", "default", pod(containers=[]), dry_run=True)


def test_defaults_admission_and_validation_run(world: World) -> None:
    world.api.create("priorityclasses.scheduling.k8s.io", "", {"metadata": {"name": "high"}, "value": 1000})
    created = world.api.create("pods", "default", pod(priorityClassName="high"))
    assert created["spec"]["priority"] == 1000
    with pytest.raises(ApiError, match="no PriorityClass with name low was found"):
        world.api.create("pods", "default", pod("q", priorityClassName="low"))


def test_a_priority_class_that_changes_is_seen_at_once(world: World) -> None:
    """Admission reads other objects through a cache."""
    classes = "priorityclasses.scheduling.k8s.io"
    world.api.create("pods", "default", pod("before"))
    world.api.create(classes, "", {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True})
    assert world.api.create("pods", "default", pod("during"))["spec"]["priority"] == 7
    world.api.delete(classes, "", "usual")
    assert world.api.create("pods", "default", pod("after"))["spec"]["priority"] == 0


def test_controllers_find_the_zeros_that_they_count_from(world: World) -> None:
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {}}}
    assert world.api.create("poddisruptionbudgets.policy", "default", budget)["status"]["disruptionsAllowed"] == 0
    assert world.api.create("deployments.apps", "default", deployment())["status"] == {}


def test_the_namespaces_of_the_system_exist(world: World) -> None:
    names = [namespace["metadata"]["name"] for namespace in world.api.list("namespaces")]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
    shop = world.api.create("namespaces", "", {"metadata": {"name": "shop"}})
    assert shop["status"]["phase"] == "Active"
    assert shop["spec"]["finalizers"] == ["kubernetes"]
    assert shop["metadata"]["labels"]["kubernetes.io/metadata.name"] == "shop"


def test_a_pods_label_keys_are_merged_into_its_selectors(world: World) -> None:
    proposed = pod()
    proposed["metadata"]["labels"] = {"hash": "a1"}
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["hash"],
    }
    proposed["spec"]["topologySpreadConstraints"] = [constraint]
    created = world.api.create("pods", "default", proposed)
    (merged,) = created["spec"]["topologySpreadConstraints"]
    assert merged["labelSelector"]["matchExpressions"] == [{"key": "hash", "operator": "In", "values": ["a1"]}]
