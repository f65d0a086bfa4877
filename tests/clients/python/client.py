"""What Python programs do to a cluster, by three clients: create, apply on the server, watch, read, delete."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import kr8s
import kubernetes
import lightkube
from kr8s.objects import ConfigMap as Kr8sMap
from kubernetes import client, watch
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap

NAMESPACE = "default"
HERE = Path(__file__).parent


def with_kubernetes() -> None:
    kubernetes.config.load_kube_config(config_file=os.environ["KUBECONFIG"])
    core = client.CoreV1Api()
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="official"), data={"key": "1"})
    core.create_namespaced_config_map(NAMESPACE, body)
    seen = watch.Watch().stream(
        core.list_namespaced_config_map, NAMESPACE, field_selector="metadata.name=official", timeout_seconds=10
    )
    assert next(seen)["object"].data == {"key": "1"}
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "official"}, "data": {"key": "2"}}
    dynamic = kubernetes.dynamic.DynamicClient(client.ApiClient())
    maps = dynamic.resources.get(api_version="v1", kind="ConfigMap")
    maps.server_side_apply(applied, namespace=NAMESPACE, field_manager="official", force_conflicts=True)
    assert next(seen)["object"].data == {"key": "2"}
    core.delete_namespaced_config_map("official", NAMESPACE)
    assert next(seen)["type"] == "DELETED"


def with_kr8s() -> None:
    made = Kr8sMap({"metadata": {"name": "kr8s", "namespace": NAMESPACE}, "data": {"key": "1"}})
    made.create()
    made.patch({"data": {"key": "2"}})
    [found] = kr8s.get("configmaps", "kr8s", namespace=NAMESPACE)
    assert found.data.key == "2"
    made.delete()
    made.wait("delete", timeout=10)


def with_lightkube() -> None:
    cluster = lightkube.Client(field_manager="lightkube")
    made = ConfigMap(metadata=ObjectMeta(name="lightkube", namespace=NAMESPACE), data={"key": "1"})
    cluster.create(made)
    made.data = {"key": "2"}
    cluster.apply(
        ConfigMap(
            apiVersion="v1",
            kind="ConfigMap",
            metadata=ObjectMeta(name="lightkube", namespace=NAMESPACE),
            data={"key": "2"},
        ),
        force=True,
    )
    kind, found = next(iter(cluster.watch(ConfigMap, namespace=NAMESPACE, fields={"metadata.name": "lightkube"})))
    assert (kind, found.data) == ("ADDED", {"key": "2"})
    cluster.delete(ConfigMap, "lightkube", namespace=NAMESPACE)


def with_kopf() -> None:
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "--all-namespaces", "--quiet"]
    operator = subprocess.Popen([*command, str(HERE / "operator_of_maps.py")])
    try:
        core = client.CoreV1Api()
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="asking", labels={"asks": "kopf"}), data={})
        core.create_namespaced_config_map(NAMESPACE, body)
        deadline = time.monotonic() + 30
        while (core.read_namespaced_config_map("asking", NAMESPACE).data or {}).get("answer") != "kopf":
            assert time.monotonic() < deadline, "kopf did not answer"
            time.sleep(0.2)
    finally:
        operator.terminate()
        operator.wait(10)


if __name__ == "__main__":
    with_kubernetes()
    with_kr8s()
    with_lightkube()
    with_kopf()
    print("done")
