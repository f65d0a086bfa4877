"""The environment of a simulated container."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from pilotage.sandbox.life.container_env import container_env
from tests.sandbox.api_world import World

POD = {
    "metadata": {
        "name": "p",
        "namespace": "default",
        "uid": "u1",
        "labels": {"app": "web"},
        "annotations": {"a/b": "c"},
    },
    "spec": {"nodeName": "n", "serviceAccountName": "bob", "containers": []},
    "status": {"podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}, {"ip": "fd00::7"}], "hostIP": "10.1.0.1"},
}


@pytest.fixture
def world() -> World:
    made = World()
    create = made.api.create
    create("configmaps", "default", {"metadata": {"name": "m"}, "data": {"key": "text", "other": "more"}})
    secret = base64.b64encode(b"hidden").decode()
    create("secrets", "default", {"metadata": {"name": "s"}, "data": {"key": secret}})
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "3500m", "memory": "2Gi"}}}
    create("nodes", "", node)
    ports = [{"name": "my-web", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]
    create("services", "default", {"metadata": {"name": "my-svc"}, "spec": {"clusterIP": "10.96.0.9", "ports": ports}})
    return made


def environment(world: World, env: list[dict[str, Any]], **container: Any) -> dict[str, str]:
    return dict(container_env(POD, {"name": "c", "env": env, **container}, world.api)())


def field(path: str) -> dict[str, Any]:
    return {"fieldRef": {"fieldPath": path}}


def amount(resource: str, divisor: str = "1") -> dict[str, Any]:
    return {"resourceFieldRef": {"resource": resource, "divisor": divisor}}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        (field("metadata.name"), "p"),
        (field("metadata.namespace"), "default"),
        (field("metadata.uid"), "u1"),
        (field("metadata.labels['app']"), "web"),
        (field("metadata.annotations['a/b']"), "c"),
        (field("metadata.labels['none']"), ""),
        (field("spec.nodeName"), "n"),
        (field("spec.serviceAccountName"), "bob"),
        (field("status.podIP"), "10.0.0.7"),
        (field("status.podIPs"), "10.0.0.7,fd00::7"),
        (field("status.hostIP"), "10.1.0.1"),
        (amount("requests.cpu"), "1"),
        (amount("requests.cpu", "1m"), "250"),
        (amount("limits.cpu"), "4"),
        (amount("limits.memory", "1Mi"), "2048"),
        ({"configMapKeyRef": {"name": "m", "key": "key"}}, "text"),
        ({"secretKeyRef": {"name": "s", "key": "key"}}, "hidden"),
        ({"configMapKeyRef": {"name": "m", "key": "none", "optional": True}}, None),
        ({"secretKeyRef": {"name": "none", "key": "key", "optional": True}}, None),
    ],
)
def test_a_variable_has_its_value_from_elsewhere(world: World, source: dict[str, Any], value: str | None) -> None:
    resources = {"requests": {"cpu": "250m"}}
    found = environment(world, [{"name": "X", "valueFrom": source}], resources=resources)
    assert found.get("X") == value


def test_variables_refer_to_earlier_ones(world: World) -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)-$(NONE)-$$(A)"}, {"name": "A", "value": "2"}]
    found = environment(world, env)
    assert (found["A"], found["B"]) == ("2", "1-$(NONE)-$(A)")


def test_whole_maps_come_with_a_prefix_and_give_way_to_variables(world: World) -> None:
    sources = [{"prefix": "M_", "configMapRef": {"name": "m"}}, {"secretRef": {"name": "s"}}]
    found = environment(world, [{"name": "M_other", "value": "mine"}], envFrom=sources)
    assert (found["M_key"], found["M_other"], found["key"]) == ("text", "mine", "hidden")


def test_services_of_the_namespace_have_variables(world: World) -> None:
    found = environment(world, [])
    assert {name: value for name, value in found.items() if name.startswith("MY_SVC_")} == {
        "MY_SVC_SERVICE_HOST": "10.96.0.9",
        "MY_SVC_SERVICE_PORT": "80",
        "MY_SVC_SERVICE_PORT_MY_WEB": "80",
        "MY_SVC_SERVICE_PORT_DNS": "53",
        "MY_SVC_PORT": "tcp://10.96.0.9:80",
        "MY_SVC_PORT_80_TCP": "tcp://10.96.0.9:80",
        "MY_SVC_PORT_80_TCP_PROTO": "tcp",
        "MY_SVC_PORT_80_TCP_PORT": "80",
        "MY_SVC_PORT_80_TCP_ADDR": "10.96.0.9",
        "MY_SVC_PORT_53_UDP": "udp://10.96.0.9:53",
        "MY_SVC_PORT_53_UDP_PROTO": "udp",
        "MY_SVC_PORT_53_UDP_PORT": "53",
        "MY_SVC_PORT_53_UDP_ADDR": "10.96.0.9",
    }
    assert found["HOSTNAME"] == "p" and found["PATH"]


def test_a_pod_may_do_without_the_variables_of_services(world: World) -> None:
    pod = {**POD, "spec": {**POD["spec"], "enableServiceLinks": False}}
    assert not [name for name in container_env(pod, {"name": "c"}, world.api)() if name.startswith("MY_SVC")]
