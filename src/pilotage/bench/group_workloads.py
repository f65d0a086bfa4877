"""Benchmarks of pod groups: many gangs, one large gang, and a gang that preempts.

Shapes follow scheduler_perf's `podgroup` and `workload_preemption` folders.
"""

from __future__ import annotations

from collections.abc import Iterable

from pilotage.bench.workloads import (
    HIGH_PRIORITY,
    NAMESPACE,
    BenchWorkload,
    Object,
    bench_node,
    bench_pod,
)

GANG_SIZE = 20


def _group(name: str, min_count: int, **spec: object) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}, **spec},
    }


def _member(number: int, group: str, requests: dict[str, str] | None = None) -> Object:
    pod = bench_pod(f"pod-{number:06}", requests)
    pod["spec"]["schedulingGroup"] = {"podGroupName": group}
    return pod


def _gangs(workload: BenchWorkload) -> Iterable[Object]:
    for number in range(-(-workload.pods // GANG_SIZE)):
        size = min(GANG_SIZE, workload.pods - number * GANG_SIZE)
        yield _group(f"gang-{number:05}", size)


def _one_gang(workload: BenchWorkload) -> Iterable[Object]:
    yield _group("gang", workload.pods)


def _one_gang_that_preempts(workload: BenchWorkload) -> Iterable[Object]:
    priority = workload.priority_classes[HIGH_PRIORITY]
    yield _group("gang", workload.pods, priorityClassName=HIGH_PRIORITY, priority=priority)


def _victim(number: int) -> Object:
    pod = bench_pod(f"init-{number:06}", {"cpu": "400m", "memory": "500Mi"})
    pod["spec"]["terminationGracePeriodSeconds"] = 0
    return pod


def _preempting_member(number: int) -> Object:
    pod = _member(number, "gang", {"cpu": "3900m", "memory": "500Mi"})
    pod["spec"]["priorityClassName"] = HIGH_PRIORITY
    return pod


GANG_SCHEDULING = BenchWorkload(
    name="GangScheduling",
    about=f"gangs of {GANG_SIZE} default pods that start together",
    nodes=5000,
    init_pods=1000,
    pods=10000,
    make_node=bench_node,
    make_init_pod=lambda number: bench_pod(f"init-{number:06}"),
    make_pod=lambda number: _member(number, f"gang-{number // GANG_SIZE:05}"),
    make_objects=_gangs,
    has_pod_groups=True,
)

LARGE_GANG = BenchWorkload(
    name="LargeGang",
    about="one gang of default pods, which are all placed in one cycle",
    nodes=5000,
    init_pods=1000,
    pods=2000,
    make_node=bench_node,
    make_init_pod=lambda number: bench_pod(f"init-{number:06}"),
    make_pod=lambda number: _member(number, "gang"),
    make_objects=_one_gang,
    has_pod_groups=True,
)

GANG_PREEMPTION = BenchWorkload(
    name="GangPreemption",
    about="nodes full of pods that can go, ten of which must go for each member of one gang",
    nodes=100,
    init_pods=1000,
    pods=100,
    make_node=bench_node,
    make_init_pod=_victim,
    make_pod=_preempting_member,
    priority_classes={HIGH_PRIORITY: 1000},
    make_objects=_one_gang_that_preempts,
    has_pod_groups=True,
)

GROUP_WORKLOADS = (GANG_SCHEDULING, LARGE_GANG, GANG_PREEMPTION)
