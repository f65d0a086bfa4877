"""Workloads whose pods care where they go: node affinity, pod affinity, spreading; and a backlog that fits nowhere."""

from __future__ import annotations

from typing import Any

from pilotage.bench.workloads import NAMESPACE, OTHER_NAMESPACE, BenchWorkload, Object, bench_node, bench_pod

_HOSTNAME = "kubernetes.io/hostname"
_ZONE = "topology.kubernetes.io/zone"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _zoned_node(number: int, zones: int) -> Object:
    node = bench_node(number)
    node["metadata"]["labels"][_ZONE] = f"zone{number % zones + 1}"
    return node


def _init(number: int) -> Object:
    return bench_pod(f"init-{number:06}")


def _name(kind: str, number: int) -> str:
    return f"{kind}-{number:06}"


def _coloured(kind: str, number: int, color: str, affinity: Object | None = None, namespace: str = NAMESPACE) -> Object:
    pod = bench_pod(_name(kind, number))
    pod["metadata"]["labels"] = {"color": color}
    pod["metadata"]["namespace"] = namespace
    if affinity is not None:
        pod["spec"]["affinity"] = affinity
    return pod


def _term(color: str, topology_key: str, **more: Any) -> Object:
    return {"labelSelector": {"matchLabels": {"color": color}}, "topologyKey": topology_key, **more}


def _node_affine(number: int) -> Object:
    pod = bench_pod(_name("pod", number))
    expression = {"key": _ZONE, "operator": "In", "values": ["zone1", "zone2"]}
    pod["spec"]["affinity"] = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}
    return pod


_ANTI = {"podAntiAffinity": {_REQUIRED: [_term("green", _HOSTNAME, namespaces=[NAMESPACE, OTHER_NAMESPACE])]}}
_TOGETHER = {"podAffinity": {_REQUIRED: [_term("blue", _ZONE, namespaces=[NAMESPACE, OTHER_NAMESPACE])]}}
_LIKED = {"podAffinity": {_PREFERRED: [{"weight": 1, "podAffinityTerm": _term("red", _HOSTNAME)}]}}
_DISLIKED = {"podAntiAffinity": {_PREFERRED: [{"weight": 1, "podAffinityTerm": _term("yellow", _HOSTNAME)}]}}


def _spread(number: int, action: str) -> Object:
    pod = _coloured("pod", number, "blue")
    constraint = {
        "maxSkew": 5,
        "topologyKey": _ZONE,
        "whenUnsatisfiable": action,
        "labelSelector": {"matchLabels": {"color": "blue"}},
    }
    pod["spec"]["topologySpreadConstraints"] = [constraint]
    return pod


PLACEMENT_WORKLOADS = (
    BenchWorkload(
        name="SchedulingNodeAffinity",
        about="pods that must go to one of two zones; all nodes are in the first",
        nodes=5000,
        init_pods=5000,
        pods=10000,
        make_node=lambda number: _zoned_node(number, 1),
        make_init_pod=_init,
        make_pod=_node_affine,
    ),
    BenchWorkload(
        name="SchedulingPodAntiAffinity",
        about="pods of which no two may share a node, in two namespaces",
        nodes=5000,
        init_pods=1000,
        pods=2000,
        make_node=bench_node,
        make_init_pod=lambda number: _coloured("init", number, "green", _ANTI, OTHER_NAMESPACE),
        make_pod=lambda number: _coloured("pod", number, "green", _ANTI),
    ),
    BenchWorkload(
        name="SchedulingPodMatchingAntiAffinity",
        about="pods that existing pods want nothing to do with",
        nodes=5000,
        init_pods=1000,
        pods=5000,
        make_node=bench_node,
        make_init_pod=lambda number: _coloured("init", number, "green", _ANTI, OTHER_NAMESPACE),
        make_pod=lambda number: _coloured("pod", number, "green"),
    ),
    BenchWorkload(
        name="SchedulingPodAffinity",
        about="pods that must be in a zone with pods of their kind; there is one zone",
        nodes=5000,
        init_pods=5000,
        pods=5000,
        make_node=lambda number: _zoned_node(number, 1),
        make_init_pod=lambda number: _coloured("init", number, "blue", _TOGETHER, OTHER_NAMESPACE),
        make_pod=lambda number: _coloured("pod", number, "blue", _TOGETHER),
    ),
    BenchWorkload(
        name="SchedulingPreferredPodAffinity",
        about="pods that like to share a node with pods of their kind",
        nodes=5000,
        init_pods=5000,
        pods=5000,
        make_node=bench_node,
        make_init_pod=lambda number: _coloured("init", number, "red", _LIKED),
        make_pod=lambda number: _coloured("pod", number, "red", _LIKED),
    ),
    BenchWorkload(
        name="SchedulingPreferredPodAntiAffinity",
        about="pods that do not like to share a node with pods of their kind",
        nodes=5000,
        init_pods=5000,
        pods=5000,
        make_node=bench_node,
        make_init_pod=lambda number: _coloured("init", number, "yellow", _DISLIKED),
        make_pod=lambda number: _coloured("pod", number, "yellow", _DISLIKED),
    ),
    BenchWorkload(
        name="TopologySpreading",
        about="pods that must be spread over three zones",
        nodes=5000,
        init_pods=5000,
        pods=5000,
        make_node=lambda number: _zoned_node(number, 3),
        make_init_pod=_init,
        make_pod=lambda number: _spread(number, "DoNotSchedule"),
    ),
    BenchWorkload(
        name="PreferredTopologySpreading",
        about="pods that should be spread over three zones",
        nodes=5000,
        init_pods=5000,
        pods=5000,
        make_node=lambda number: _zoned_node(number, 3),
        make_init_pod=_init,
        make_pod=lambda number: _spread(number, "ScheduleAnyway"),
    ),
    BenchWorkload(
        name="UnschedulableBacklog",
        about="default pods while many wait that fit nowhere",
        nodes=5000,
        init_pods=10000,
        pods=10000,
        make_node=bench_node,
        make_init_pod=lambda number: bench_pod(_name("init", number), {"cpu": "9", "memory": "500Mi"}),
        make_pod=lambda number: bench_pod(_name("pod", number)),
        init_pods_fit=False,
    ),
)
