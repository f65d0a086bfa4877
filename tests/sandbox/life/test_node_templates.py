"""Nodes from templates, and what is said about a template that makes no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.sandbox.life.node_templates import (
    NodeTemplate,
    TemplateError,
    load_node_template,
    make_nodes,
    nodes_from_templates,
)
from tests.sandbox.living_cluster import LivingCluster

TWO_POOLS = """
apiVersion: v1
kind: Node
metadata:
  name: gpu-{index:03}
  labels:
    pool: gpu
    rack: rack-{index%2}
  annotations:
    sandbox.pilotage.dev/count: "3"
spec:
  taints: [{key: gpu, effect: NoSchedule}]
status:
  capacity: {cpu: 64, memory: 256Gi, nvidia.com/gpu: "8"}
---
apiVersion: v1
kind: Node
metadata:
  name: plain
"""


def load(tmp_path: Path, text: str) -> list[NodeTemplate]:
    file = tmp_path / "nodes.yaml"
    file.write_text(text)
    return load_node_template(file)


def test_default_nodes_have_the_usual_size_labels_and_conditions() -> None:
    nodes = list(make_nodes(4, now="2026-01-01T00:00:00Z"))
    assert [node["metadata"]["name"] for node in nodes] == ["node-00001", "node-00002", "node-00003", "node-00004"]
    labels = nodes[0]["metadata"]["labels"]
    assert labels["kubernetes.io/hostname"] == "node-00001"
    assert (labels["kubernetes.io/os"], labels["kubernetes.io/arch"]) == ("linux", "amd64")
    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes]
    assert zones == ["zone-1", "zone-2", "zone-0", "zone-1"]
    assert nodes[0]["status"]["allocatable"] == {
        "cpu": "4",
        "memory": "32Gi",
        "ephemeral-storage": "100Gi",
        "pods": "110",
    }
    ready = next(c for c in nodes[0]["status"]["conditions"] if c["type"] == "Ready")
    assert (ready["status"], ready["lastTransitionTime"]) == ("True", "2026-01-01T00:00:00Z")
    assert nodes[0]["metadata"]["annotations"]["sandbox.pilotage.dev/simulated"] == "true"


def test_nodes_share_nothing() -> None:
    first, second = make_nodes(2)
    first["status"]["conditions"][-1]["status"] = "False"
    first["metadata"]["labels"]["x"] = "y"
    first["spec"]["unschedulable"] = True
    assert second["status"]["conditions"][-1]["status"] == "True"
    assert "x" not in second["metadata"]["labels"] and second["spec"] == {}


def test_thousands_of_nodes_have_different_names_and_addresses() -> None:
    nodes = list(make_nodes(5000))
    assert len({node["metadata"]["name"] for node in nodes}) == 5000
    assert len({node["status"]["addresses"][0]["address"] for node in nodes}) == 5000


def test_file_of_two_pools(tmp_path: Path) -> None:
    gpu, plain = load(tmp_path, TWO_POOLS)
    assert (gpu.count, plain.count) == (3, None)
    nodes = list(nodes_from_templates([gpu, plain]))
    assert [node["metadata"]["name"] for node in nodes] == ["gpu-001", "gpu-002", "gpu-003", "plain"]
    first = nodes[0]
    assert first["metadata"]["labels"]["rack"] == "rack-1"
    assert first["metadata"]["labels"]["kubernetes.io/hostname"] == "gpu-001"
    assert first["status"]["allocatable"] == {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "8", "pods": "110"}
    assert first["spec"]["taints"] == [{"key": "gpu", "effect": "NoSchedule"}]
    assert "sandbox.pilotage.dev/count" not in first["metadata"]["annotations"]


def test_templates_without_a_count_share_what_is_left(tmp_path: Path) -> None:
    pools = load(tmp_path, TWO_POOLS + "---\nkind: Node\nmetadata: {name: 'big-{index}'}\n")
    names = [node["metadata"]["name"] for node in nodes_from_templates(pools, 8)]
    assert names == ["gpu-001", "gpu-002", "gpu-003", "plain-1", "plain-2", "plain-3", "big-1", "big-2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: [", "nodes.yaml: document 1: line 2, column 1: is no valid YAML"),
        ("", "nodes.yaml: holds no Node manifest"),
        ("- a", "nodes.yaml: document 1: expected an object, got"),
        (TWO_POOLS + "---\nkind: Pod", 'nodes.yaml: document 3: kind: expected "Node", got "Pod"'),
        ("kind: Node\napiVersion: v2", 'document 1: apiVersion: expected "v1", got "v2"'),
        ("kind: Node", "document 1: metadata: expected an object, got nothing"),
        ("kind: Node\nmetadata: {name: 7}", "document 1: metadata.name: expected a name"),
        ("kind: Node\nmetadata: {name: a, labels: {b: 1}}", "metadata.labels[b]: expected a text (put it in quotes)"),
        ("kind: Node\nmetadata: {name: a}\nspec: 1", 'document 1: spec: expected an object, got "1"'),
        ("kind: Node\nmetadata: {name: a}\nstatus: {capacity: {cpu: 4x}}", "document 1: status.capacity.cpu: "),
        ("kind: Node\nmetadata: {name: a}\nstatus: {capacity: {cpu: -1}}", "status.capacity.cpu: must not be negative"),
        ("kind: Node\nmetadata: {name: a}\nstatus: {capacity: {cpu: [1]}}", "cpu: expected a quantity"),
        (
            "kind: Node\nmetadata: {name: a, annotations: {sandbox.pilotage.dev/count: '0'}}",
            'metadata.annotations[sandbox.pilotage.dev/count]: expected a number above 0, got "0"',
        ),
    ],
)
def test_wrong_template_is_rejected_with_file_document_and_field(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TemplateError) as error:
        load(tmp_path, text)
    assert message in str(error.value) and "nodes.yaml" in str(error.value)


def test_missing_file_is_named() -> None:
    with pytest.raises(TemplateError, match=r"/no/such\.yaml: cannot be read: No such file"):
        load_node_template("/no/such.yaml")


async def test_api_accepts_the_nodes(tmp_path: Path) -> None:
    cluster = LivingCluster(nodes=3)
    for node in nodes_from_templates(load(tmp_path, TWO_POOLS), 10):
        cluster.create(node)
    assert len(cluster.all("Node")) == 13
