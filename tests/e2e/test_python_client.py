"""The official Python client, unmodified, against the sandbox's server over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, config, dynamic, watch

from tests.e2e.bare_server import bare_server
from tests.sandbox.api_world import config_map, definition, deployment, labelled, pod

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[client.ApiClient]:
    with bare_server(tmp_path_factory.mktemp("client")) as kubeconfig:
        connected = config.new_client_from_config(str(kubeconfig))
        yield connected
        connected.close()


@pytest.fixture
def core(api: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api)


@pytest.fixture
def namespace(core: client.CoreV1Api, request: pytest.FixtureRequest) -> str:
    name = request.node.name.removeprefix("test_").replace("_", "-")[:50].rstrip("-")
    core.create_namespace({"metadata": {"name": name}})
    return name


def test_pods_live_their_life(core: client.CoreV1Api, namespace: str) -> None:
    created = core.create_namespaced_pod(namespace, labelled(pod("p"), app="web"))
    assert created.status.phase == "Pending" and created.metadata.uid
    [listed] = core.list_namespaced_pod(namespace, label_selector="app=web").items
    assert listed.spec.containers[0].image == "i"
    core.patch_namespaced_pod("p", namespace, {"metadata": {"annotations": {"a": "b"}}})
    assert core.read_namespaced_pod("p", namespace).metadata.annotations == {"a": "b"}
    core.delete_namespaced_pod("p", namespace)
    with pytest.raises(client.ApiException) as missing:
        core.read_namespaced_pod("p", namespace)
    assert (missing.value.status, missing.value.reason) == (404, "Not Found")


def test_typed_models_go_there_and_back(core: client.CoreV1Api, api: client.ApiClient, namespace: str) -> None:
    container = client.V1Container(
        name="c", image="i", resources=client.V1ResourceRequirements(requests={"cpu": "100m"})
    )
    wanted = client.V1Pod(
        metadata=client.V1ObjectMeta(name="typed"),
        spec=client.V1PodSpec(containers=[container], termination_grace_period_seconds=5),
    )
    created = core.create_namespaced_pod(namespace, wanted)
    assert created.spec.termination_grace_period_seconds == 5
    assert created.spec.scheduler_name == "default-scheduler"
    apps = client.AppsV1Api(api)
    apps.create_namespaced_deployment(namespace, deployment())
    apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 7}})
    assert apps.read_namespaced_deployment("web", namespace).spec.replicas == 7
    assert apps.read_namespaced_deployment_scale("web", namespace).spec.replicas == 7


def test_lost_updates_are_conflicts(core: client.CoreV1Api, namespace: str) -> None:
    first = core.create_namespaced_config_map(namespace, config_map("c", a="1"))
    second = core.read_namespaced_config_map("c", namespace)
    first.data = {"a": "2"}
    core.replace_namespaced_config_map("c", namespace, first)
    second.data = {"a": "3"}
    with pytest.raises(client.ApiException) as conflict:
        core.replace_namespaced_config_map("c", namespace, second)
    assert conflict.value.status == 409


def test_lists_come_in_pages(core: client.CoreV1Api, namespace: str) -> None:
    for at in range(5):
        core.create_namespaced_config_map(namespace, config_map(f"c{at}"))
    names: list[str] = []
    token = None
    while True:
        page = core.list_namespaced_config_map(namespace, limit=2, _continue=token)
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue
        if not token:
            break
    assert names == [f"c{at}" for at in range(5)]


def test_watches_tell_what_happens(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, config_map("before"))
    listed = core.list_namespaced_config_map(namespace)
    core.create_namespaced_config_map(namespace, config_map("a"))
    core.patch_namespaced_config_map("a", namespace, {"data": {"x": "y"}})
    core.delete_namespaced_config_map("a", namespace)
    seen = [
        (event["type"], event["object"].metadata.name)
        for event in watch.Watch().stream(
            core.list_namespaced_config_map,
            namespace,
            resource_version=listed.metadata.resource_version,
            timeout_seconds=1,
        )
    ]
    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_binding_status_and_eviction(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("p"))
    body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    core.create_namespaced_pod_binding("p", namespace, body, _preload_content=False)
    core.patch_namespaced_pod_status("p", namespace, {"status": {"phase": "Running"}})
    bound = core.read_namespaced_pod("p", namespace)
    assert (bound.spec.node_name, bound.status.phase) == ("n1", "Running")
    with pytest.raises(client.ApiException) as conflict:
        core.create_namespaced_pod_binding("p", namespace, body, _preload_content=False)
    assert conflict.value.status == 409
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="p"))
    core.create_namespaced_pod_eviction("p", namespace, eviction)
    assert core.read_namespaced_pod("p", namespace).metadata.deletion_timestamp


def test_events_have_two_faces(core: client.CoreV1Api, api: client.ApiClient, namespace: str) -> None:
    event: dict[str, Any] = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "namespace": namespace, "name": "p"},
        "reason": "Tested",
        "message": "hello",
        "type": "Normal",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingComponent": "test",
        "reportingInstance": "test-0",
        "action": "Testing",
    }
    core.create_namespaced_event(namespace, event)
    [seen] = client.EventsV1Api(api).list_namespaced_event(namespace).items
    assert (seen.note, seen.regarding.name) == ("hello", "p")


def test_custom_objects(api: client.ApiClient, namespace: str) -> None:
    client.ApiextensionsV1Api(api).create_custom_resource_definition(definition("Gadget"))
    gadgets = client.CustomObjectsApi(api)
    where = ("example.com", "v1", namespace, "gadgets")
    body = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": 1}}
    gadgets.create_namespaced_custom_object(*where, body)
    assert gadgets.get_namespaced_custom_object(*where, "g")["spec"] == {"size": 1}
    gadgets.patch_namespaced_custom_object(*where, "g", {"spec": {"size": 2}})
    [listed] = gadgets.list_namespaced_custom_object(*where)["items"]
    assert listed["spec"] == {"size": 2}
    gadgets.delete_namespaced_custom_object(*where, "g")


def test_the_dynamic_client_finds_its_way(api: client.ApiClient, namespace: str) -> None:
    found = dynamic.DynamicClient(api).resources.get(api_version="v1", kind="ConfigMap")
    found.create(namespace=namespace, body=config_map("c", a="b"))
    assert found.get(namespace=namespace, name="c").data.a == "b"


def test_the_token_is_checked(api: client.ApiClient) -> None:
    stranger = client.Configuration()
    stranger.host = api.configuration.host.partition("/t/")[0]
    with pytest.raises(client.ApiException) as refused:
        client.CoreV1Api(client.ApiClient(stranger)).list_namespace()
    assert refused.value.status == 401
