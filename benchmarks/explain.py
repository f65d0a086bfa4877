"""How long `explain` takes on 5,000 nodes with 20,000 pods once the cluster is loaded.

.venv/bin/python benchmarks/explain.py
"""

from __future__ import annotations

from pilotage.assembly import SchedulerOptions
from pilotage.clock import SystemClock, cpu_seconds
from pilotage.cluster.state import Cluster
from pilotage.explain.engine import put, thinking_engines
from pilotage.explain.explainer import explain
from pilotage.testing import node, pod

NODES, PODS, ROUNDS = 5_000, 20_000, 5


def loaded_cluster() -> Cluster:
    cluster = Cluster()
    for number in range(NODES):
        builder = node(f"n{number}").cpu("4").memory("32Gi").zone(f"z{number % 3}")
        if number % 7 == 0:
            builder = builder.taint("gpu", "NoSchedule", "a100")
        put(cluster, "Node", builder.build())
    for number in range(PODS):
        builder = pod(f"p{number}").requests(cpu=f"{100 + number % 900}m", memory="1Gi").node(f"n{number % NODES}")
        put(cluster, "Pod", builder.build())
    return cluster


def main() -> None:
    engine = thinking_engines(loaded_cluster(), SystemClock(), SchedulerOptions())["default-scheduler"]
    questions = {
        "fits": pod("small").requests(cpu="100m"),
        "fits nowhere": pod("big").requests(cpu="3900m", memory="2Gi"),
        "fits nowhere, wrong label": pod("picky").requests(cpu="5").node_selector({"disk": "ssd"}),
    }
    for name, waiting in questions.items():
        times = []
        for _ in range(ROUNDS):
            started = cpu_seconds()
            explain(engine, waiting.build())
            times.append((cpu_seconds() - started) * 1000)
        print(f"{name}: first {times[0]:.0f} ms, then {min(times[1:]):.0f} ms")


if __name__ == "__main__":
    main()
