from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest
import yaml

from pilotage.clock import SystemClock
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.rng import seeded
from pilotage.sandbox.embedded import DEFAULT_NODES, EmbeddedCluster, EmbeddedOptions, OutputPathError
from pilotage.sandbox.http.asgi import PortInUse
from pilotage.sandbox.life.kubelet import KubeletSettings
from pilotage.sandbox.life.node_templates import TemplateError
from pilotage.sandbox.manifests import ManifestError
from pilotage.sandbox.storage.data_dir import DataDirError

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"nodeName": "node-00001", "containers": [{"name": "c", "image": "i"}]},
}


def running(options: EmbeddedOptions):
    return EmbeddedCluster.running(options, SystemClock(), seeded(1))


def write(path: Path, *objects: dict) -> Path:
    path.write_text(yaml.safe_dump_all(objects))
    return path


def names(cluster: EmbeddedCluster, resource: str) -> list[str]:
    return [obj["metadata"]["name"] for obj in cluster.api.list(resource)]


async def test_a_new_sandbox_has_nodes_and_a_storage_class() -> None:
    async with running(EmbeddedOptions(port=None)) as cluster:
        assert len(names(cluster, "nodes")) == DEFAULT_NODES
        assert names(cluster, "storageclasses.storage.k8s.io") == ["standard"]
        assert cluster.url is None and cluster.kubeconfig is None


async def test_the_transport_reaches_the_server_without_a_token() -> None:
    async with running(EmbeddedOptions(port=None, nodes=2)) as cluster:
        answer = await cluster.transport().request("GET", "/api/v1/nodes")
        assert [node["metadata"]["name"] for node in json.loads(answer.body)["items"]] == ["node-00001", "node-00002"]


async def test_the_kubeconfig_leads_to_the_server_and_goes_with_it() -> None:
    async with running(EmbeddedOptions(nodes=1)) as cluster:
        assert cluster.kubeconfig is not None
        assert stat.S_IMODE(cluster.kubeconfig.stat().st_mode) == 0o600
        transport = HttpTransport(load_connection(str(cluster.kubeconfig), clock=SystemClock()))
        answer = await transport.request("GET", "/api/v1/nodes/node-00001")
        await transport.close()
        assert answer.status == 200
    assert not cluster.kubeconfig.exists()


async def test_tls_is_trusted_through_the_kubeconfig(tmp_path: Path) -> None:
    wanted = tmp_path / "deep" / "kubeconfig"
    async with running(EmbeddedOptions(nodes=1, tls=True, kubeconfig=wanted)) as cluster:
        assert cluster.url is not None and cluster.url.startswith("https://127.0.0.1:")
        transport = HttpTransport(load_connection(str(wanted), clock=SystemClock()))
        answer = await transport.request("GET", "/api/v1/nodes/node-00001")
        await transport.close()
        assert answer.status == 200
    assert wanted.exists()


async def test_pods_of_manifests_come_to_life(tmp_path: Path) -> None:
    kubelet = KubeletSettings(start_seconds=0.0, start_jitter_seconds=0.0)
    options = EmbeddedOptions(port=None, manifests=[write(tmp_path / "pod.yaml", POD)], kubelet=kubelet)
    async with running(options) as cluster, asyncio.timeout(5):
        while cluster.api.get("pods", "default", "a")["status"].get("phase") != "Running":
            await SystemClock().sleep(0.01)


async def test_no_one_acts_in_a_sandbox_without_life(tmp_path: Path) -> None:
    kubelet = KubeletSettings(start_seconds=0.0, start_jitter_seconds=0.0)
    manifests = [write(tmp_path / "pod.yaml", POD)]
    options = EmbeddedOptions(port=None, manifests=manifests, kubelet=kubelet, is_alive=False)
    async with running(options) as cluster:
        revision = cluster.api.store.revision
        await SystemClock().sleep(0.1)
        assert cluster.api.store.revision == revision


async def test_a_restart_finds_everything_and_doubles_nothing(tmp_path: Path) -> None:
    manifests = [write(tmp_path / "pod.yaml", POD)]
    options = EmbeddedOptions(port=None, nodes=2, data_dir=tmp_path / "data", manifests=manifests, is_alive=False)
    async with running(options) as cluster:
        assert cluster.seeded.created == 4
        cluster.api.delete("storageclasses.storage.k8s.io", "", "standard")
        uid = cluster.api.get("pods", "default", "a")["metadata"]["uid"]
    async with running(options) as cluster:
        assert (cluster.seeded.created, cluster.seeded.kept) == (0, 3)
        assert cluster.api.get("pods", "default", "a")["metadata"]["uid"] == uid
        assert names(cluster, "nodes") == ["node-00001", "node-00002"]
        assert names(cluster, "storageclasses.storage.k8s.io") == []


async def test_a_restart_does_not_bring_back_nodes_that_no_one_asked_for(tmp_path: Path) -> None:
    options = EmbeddedOptions(port=None, data_dir=tmp_path / "data", is_alive=False)
    async with running(options) as cluster:
        cluster.api.delete("nodes", "", "node-00003")
    async with running(options) as cluster:
        assert names(cluster, "nodes") == ["node-00001", "node-00002"]


async def test_a_rejected_manifest_leaves_nothing_in_the_data_directory(tmp_path: Path) -> None:
    bad = {**POD, "metadata": {"name": "b"}, "spec": {"containers": []}}
    file = write(tmp_path / "two.yaml", POD, bad)
    data_dir = tmp_path / "data"
    with pytest.raises(ManifestError, match=r"two.yaml: document 2: Pod default/b: spec.containers: Required value"):
        async with running(EmbeddedOptions(port=None, manifests=[file], data_dir=data_dir)):
            raise AssertionError("must not come up")
    async with running(EmbeddedOptions(port=None, nodes=0, data_dir=data_dir, is_alive=False)) as cluster:
        assert names(cluster, "pods") == []
        assert names(cluster, "nodes") == []


async def test_a_manifest_may_bring_the_nodes_and_the_storage_class(tmp_path: Path) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "mine"}}
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "standard"},
        "provisioner": "example.com/mine",
    }
    async with running(EmbeddedOptions(port=None, manifests=[write(tmp_path / "n.yaml", node, storage)])) as cluster:
        assert names(cluster, "nodes") == ["mine"]
        stored = cluster.api.get("storageclasses.storage.k8s.io", "", "standard")
        assert stored["provisioner"] == "example.com/mine"


async def test_templates_share_the_number_of_nodes(tmp_path: Path) -> None:
    big = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "big-{index}", "annotations": {"sandbox.pilotage.dev/count": "2"}},
    }
    small = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "small-{index}"}}
    templates = [write(tmp_path / "a.yaml", big), write(tmp_path / "b.yaml", small)]
    async with running(EmbeddedOptions(port=None, nodes=5, node_templates=templates)) as cluster:
        assert names(cluster, "nodes") == ["big-1", "big-2", "small-1", "small-2", "small-3"]


async def test_a_port_in_use_is_reported_as_such(tmp_path: Path) -> None:
    async with running(EmbeddedOptions(nodes=0)) as cluster:
        port = int(str(cluster.url).rpartition(":")[2])
        with pytest.raises(PortInUse, match=str(port)):
            async with running(EmbeddedOptions(nodes=0, port=port)):
                raise AssertionError("must not come up")


async def test_a_data_directory_in_use_is_reported_as_such(tmp_path: Path) -> None:
    options = EmbeddedOptions(port=None, nodes=0, data_dir=tmp_path)
    async with running(options):
        with pytest.raises(DataDirError, match="is in use by process"):
            async with running(options):
                raise AssertionError("must not come up")


async def test_a_kubeconfig_that_cannot_be_written_is_reported_as_such(tmp_path: Path) -> None:
    with pytest.raises(OutputPathError, match="cannot be written"):
        async with running(EmbeddedOptions(nodes=0, kubeconfig=tmp_path)):
            raise AssertionError("must not come up")


async def test_a_wrong_template_is_reported_before_anything_is_opened(tmp_path: Path) -> None:
    template = write(tmp_path / "t.yaml", {"kind": "Pod"})
    with pytest.raises(TemplateError, match=r"t.yaml: document 1: kind"):
        async with running(EmbeddedOptions(node_templates=[template], data_dir=tmp_path / "data")):
            raise AssertionError("must not come up")
    assert not (tmp_path / "data").exists()


async def test_an_error_of_the_user_comes_out_as_it_is() -> None:
    with pytest.raises(LookupError):
        async with running(EmbeddedOptions(nodes=0)):
            raise LookupError
