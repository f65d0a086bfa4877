"""Workloads of clusters as they grow: nodes of many shapes, unevenly filled, and pods that are not alike."""

from __future__ import annotations

from collections.abc import Iterator

from pilotage.bench.workloads import BenchWorkload, ClusterChange, Object, bench_node, bench_pod

_CPUS = (4, 8, 16, 32, 48, 64)
_GIB_PER_CPU = (2, 4, 6, 8, 12)
_FILL_PERCENT = (5, 30, 55)


def shaped_node(number: int) -> Object:
    """One of 30 shapes, in one of three zones."""
    node = bench_node(number)
    cpus, memory = _capacity(number)
    amounts = {"cpu": str(cpus), "memory": f"{memory}Gi", "pods": "110"}
    node["status"].update(capacity=amounts, allocatable=amounts)
    node["metadata"]["labels"]["topology.kubernetes.io/zone"] = f"zone{number % 3 + 1}"
    return node


def _capacity(number: int) -> tuple[int, int]:
    """CPUs and GiB of memory of a node."""
    cpus = _CPUS[number % len(_CPUS)]
    return cpus, cpus * _GIB_PER_CPU[number // len(_CPUS) % len(_GIB_PER_CPU)]


def _fillers(workload: BenchWorkload) -> Iterator[Object]:
    """One pod on each node that takes the share of it that is in use from the start."""
    for number in range(workload.nodes):
        cpus, memory = _capacity(number)
        share = _FILL_PERCENT[number * 7 // 11 % len(_FILL_PERCENT)]
        pod = bench_pod(f"filler-{number:06}", {"cpu": f"{cpus * share * 10}m", "memory": f"{memory * share * 10}Mi"})
        pod["spec"]["nodeName"] = shaped_node(number)["metadata"]["name"]
        yield pod


def _distinct(kind: str, number: int) -> Object:
    """A pod whose requests and labels no other pod has."""
    pod = bench_pod(f"{kind}-{number:06}", {"cpu": f"{50 + number * 37 % 200}m", "memory": f"{65536 + number * 16}Ki"})
    pod["metadata"]["labels"] = {"app": f"{kind}-{number:06}", "tier": f"tier-{number % 5}"}
    return pod


SCHEDULING_DISTINCT = BenchWorkload(
    name="SchedulingDistinct",
    about="pods with requests and labels of their own each, on nodes of 30 shapes that are filled to three degrees",
    nodes=5000,
    init_pods=200,
    pods=2000,
    make_node=shaped_node,
    make_init_pod=lambda number: _distinct("init", number),
    make_pod=lambda number: _distinct("pod", number),
    make_objects=_fillers,
)

_DEPLOYMENTS = 300
_RUNNING_PER_NODE = 10
_LIFE_OF_A_NODE = 200
"""So many pods come before a new node goes again."""


def deployment_pod(name: str, deployment: int) -> Object:
    """A pod of one of 300 Deployments: its requests and labels are those of its Deployment."""
    pod = bench_pod(name, {"cpu": f"{40 + deployment * 7 % 160}m", "memory": f"{64 + deployment * 13 % 256}Mi"})
    pod["metadata"]["labels"] = {"app": f"app-{deployment:03}", "tier": f"tier-{deployment % 5}"}
    # Without a kubelet, a pod with a grace period would be on its way out for ever.
    pod["spec"]["terminationGracePeriodSeconds"] = 0
    return pod


def _of_any_deployment(kind: str, number: int) -> Object:
    return deployment_pod(f"{kind}-{number:06}", number % _DEPLOYMENTS)


def _running(workload: BenchWorkload) -> Iterator[Object]:
    """Ten pods on each node, as they have been running for long."""
    for number in range(workload.nodes * _RUNNING_PER_NODE):
        pod = _of_any_deployment("running", number)
        pod["spec"]["nodeName"] = shaped_node(number // _RUNNING_PER_NODE)["metadata"]["name"]
        pod["status"] = {"phase": "Running"}
        yield pod


def node_changes(workload: BenchWorkload, number: int) -> Iterator[ClusterChange]:
    """A node gets another label; every tenth time one comes, and an earlier one goes."""
    node = shaped_node(number * 13 % workload.nodes)["metadata"]["name"]
    yield ClusterChange("patch", {"kind": "Node", "metadata": {"name": node, "labels": {"round": f"r{number % 7}"}}})
    if number % 10:
        return
    yield ClusterChange("create", shaped_node(workload.nodes + number))
    if number >= _LIFE_OF_A_NODE:
        yield ClusterChange("delete", shaped_node(workload.nodes + number - _LIFE_OF_A_NODE))


def pod_changes(workload: BenchWorkload, number: int) -> Iterator[ClusterChange]:
    """An init pod is deleted as long as there is one."""
    if number < workload.init_pods:
        yield ClusterChange("delete", workload.make_init_pod(number))


def _node_and_pod_changes(workload: BenchWorkload, number: int) -> Iterator[ClusterChange]:
    yield from node_changes(workload, number)
    yield from pod_changes(workload, number)


LARGE_CLUSTER = BenchWorkload(
    name="LargeCluster",
    about="pods of 300 Deployments on nodes of 30 shapes on which ten pods each are running",
    nodes=100_000,
    init_pods=200,
    pods=2000,
    make_node=shaped_node,
    make_init_pod=lambda number: _of_any_deployment("init", number),
    make_pod=lambda number: _of_any_deployment("pod", number),
    make_objects=_running,
)

CHURN = BenchWorkload(
    name="Churn",
    about="pods of 300 Deployments while nodes come, go and change their labels, and pods go",
    nodes=5000,
    init_pods=1000,
    pods=2000,
    make_node=shaped_node,
    make_init_pod=lambda number: _of_any_deployment("init", number),
    make_pod=lambda number: _of_any_deployment("pod", number),
    make_objects=_fillers,
    make_changes=_node_and_pod_changes,
)

FLEET_WORKLOADS = (SCHEDULING_DISTINCT, LARGE_CLUSTER, CHURN)
