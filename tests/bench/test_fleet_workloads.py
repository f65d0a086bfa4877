"""Workloads of clusters as they grow, small."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from pilotage.assembly import SchedulerOptions
from pilotage.bench.fleet_workloads import CHURN, LARGE_CLUSTER, SCHEDULING_DISTINCT, shaped_node
from pilotage.bench.mixed_fleet import MIXED_FLEET, kind_of_pod
from pilotage.bench.stage import InProcessBench
from pilotage.bench.workloads import BenchWorkload
from pilotage.clock import SystemClock
from pilotage.rng import seeded


async def test_pods_that_are_all_different_are_bound_on_nodes_that_are_partly_filled() -> None:
    workload = SCHEDULING_DISTINCT.sized(45, 5, 40)
    bench = InProcessBench(workload, SystemClock(), seeded(1), SchedulerOptions(), latency_seconds=0.0)
    assert (await bench.run()).pods == 40
    pods = [json.loads(record.body) for record in bench.api.store.list("pods")]
    assert len(pods) == 45 + 5 + 40 and all(pod["spec"].get("nodeName") for pod in pods)


def test_no_two_pods_are_alike() -> None:
    pods = [SCHEDULING_DISTINCT.make_pod(number) for number in range(2000)]
    for differing in (
        lambda pod: tuple(sorted(pod["spec"]["containers"][0]["resources"]["requests"].items())),
        lambda pod: tuple(sorted(pod["metadata"]["labels"].items())),
    ):
        assert len({differing(pod) for pod in pods}) == len(pods)


def test_nodes_have_thirty_shapes_in_three_degrees_of_use() -> None:
    nodes = [shaped_node(number)["status"]["allocatable"] for number in range(300)]
    assert len({(node["cpu"], node["memory"]) for node in nodes}) == 30
    fillers = list(SCHEDULING_DISTINCT.sized(300, 0, 0).make_objects(SCHEDULING_DISTINCT.sized(300, 0, 0)))
    shares = {
        (node["cpu"], node["memory"], int(filler["spec"]["containers"][0]["resources"]["requests"]["cpu"][:-1]))
        for node, filler in zip(nodes, fillers, strict=True)
    }
    assert len(shares) == 90, "every shape with every degree"


@pytest.mark.parametrize(
    "workload", [LARGE_CLUSTER.sized(12, 3, 20), CHURN.sized(45, 30, 260), MIXED_FLEET.sized(60, 20, 120)]
)
async def test_fleets_are_bound_while_they_change(workload: BenchWorkload) -> None:
    bench = InProcessBench(workload, SystemClock(), seeded(1), SchedulerOptions(), latency_seconds=0.0)
    assert (await bench.run()).pods == workload.pods
    pods = {record.key.name: json.loads(record.body) for record in bench.api.store.list("pods")}
    assert all(pod["spec"].get("nodeName") for pod in pods.values())
    if workload.name == "LargeCluster":
        assert sum(name.startswith("running") for name in pods) == 120
    else:
        assert not any(name.startswith("init") for name in pods), "they went while others came"
        nodes = [json.loads(record.body)["metadata"] for record in bench.api.store.list("nodes")]
        assert any("round" in node["labels"] for node in nodes)
        assert len(nodes) > workload.nodes


async def test_nodes_that_came_go_again() -> None:
    bench = InProcessBench(CHURN.sized(10, 0, 220), SystemClock(), seeded(1), SchedulerOptions(), latency_seconds=0.0)
    await bench.run()
    came, went = {f"node-{10 + number:05}" for number in range(0, 220, 10)}, {"node-00010", "node-00020"}
    assert {record.key.name for record in bench.api.store.list("nodes")} >= came - went
    assert not {record.key.name for record in bench.api.store.list("nodes")} & went


def test_the_mix_is_that_of_its_description() -> None:
    kinds = Counter(kind_of_pod(number) for number in range(300))
    assert kinds == {"spread": 60, "affinity": 30, "volume": 15, "device": 6, "plain": 189}
    assert len({kind_of_pod(number) for number in range(20)}) >= 3, "kinds come mixed"
