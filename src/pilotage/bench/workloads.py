"""What is scheduled in a benchmark: nodes, pods that are there before, pods that are measured.

Names, shapes and sizes follow Kubernetes' scheduler_perf, so that figures can be laid beside upstream's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from pilotage.sandbox.life.loop import ControllerFactory

Object = dict[str, Any]

NAMESPACE = "bench"
OTHER_NAMESPACE = "bench-other"
DEFAULT_REQUESTS = {"cpu": "100m", "memory": "500Mi"}


class ClusterChange(NamedTuple):
    """Something that happens to the cluster while pods are scheduled."""

    verb: Literal["create", "patch", "delete"]
    manifest: Object
    """Of a patch, what is patched: kind, name and metadata."""


@dataclass(frozen=True, slots=True)
class BenchWorkload:
    """A benchmark. The makers get the number of the object and return a manifest."""

    name: str
    about: str
    nodes: int
    init_pods: int
    pods: int
    make_node: Callable[[int], Object]
    make_init_pod: Callable[[int], Object]
    make_pod: Callable[[int], Object]
    priority_classes: Mapping[str, int] = field(default_factory=dict)
    """Priority classes that the pods name, with their values."""
    init_pods_fit: bool = True
    """False: they are tried once and wait, and the measured pods come when all have been tried."""
    pods_fit: bool = True
    """False: the measured pods are to be tried, not bound; each is done when its status says why it waits."""
    make_objects: Callable[[BenchWorkload], Iterable[Object]] = lambda workload: ()
    """What else is there before the first pod: classes, devices, claims, volumes; with their status."""
    make_changes: Callable[[BenchWorkload, int], Iterable[ClusterChange]] = lambda workload, number: ()
    """What happens to the cluster just before the measured pod with this number is created."""
    controllers: Sequence[ControllerFactory] = ()
    """Which of the sandbox's controllers take part; over HTTP all of them do."""
    comes_at_once: bool = False
    """All measured pods are created before the first is tried, instead of while others are scheduled."""
    contrast_gate: str = ""
    """A feature gate whose worth this workload shows: it is run a second time with the gate off."""

    has_pod_groups: bool = False
    """A real API server and kube-scheduler have to be started with pod groups."""

    def sized(self, nodes: int | None, init_pods: int | None, pods: int | None) -> BenchWorkload:
        """The same with other numbers; None leaves them as they are."""
        return replace(
            self,
            nodes=self.nodes if nodes is None else nodes,
            init_pods=self.init_pods if init_pods is None else init_pods,
            pods=self.pods if pods is None else pods,
        )


def bench_node(number: int) -> Object:
    """4 cpu, 32Gi, 110 pods: scheduler_perf's default node."""
    name = f"node-{number:05}"
    amounts = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name},
            # As in scheduler_perf, no kubelet runs the pods: what is measured ends with the binding.
            "annotations": {"sandbox.pilotage.dev/simulated": "false"},
        },
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
            "phase": "Running",
        },
    }


def priority_class(name: str, value: int) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def bench_pod(name: str, requests: Mapping[str, str] | None = None) -> Object:
    """One pause container with requests = limits: scheduler_perf's default pod."""
    amounts = dict(DEFAULT_REQUESTS if requests is None else requests)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "containers": [
                {
                    "name": "pause",
                    "image": "registry.k8s.io/pause:3.10",
                    "ports": [{"containerPort": 80}],
                    "resources": {"requests": amounts, "limits": amounts},
                }
            ]
        },
    }


SCHEDULING_BASIC = BenchWorkload(
    name="SchedulingBasic",
    about="default pods on default nodes",
    nodes=5000,
    init_pods=1000,
    pods=10000,
    make_node=bench_node,
    make_init_pod=lambda number: bench_pod(f"init-{number:06}"),
    make_pod=lambda number: bench_pod(f"pod-{number:06}"),
)

UNSCHEDULABLE = BenchWorkload(
    name="Unschedulable",
    about="pods that fit nowhere: every cycle ends in a status patch",
    nodes=1000,
    init_pods=500,
    pods=1000,
    make_node=bench_node,
    make_init_pod=lambda number: bench_pod(f"init-{number:06}"),
    make_pod=lambda number: bench_pod(f"pod-{number:06}", {"cpu": "9", "memory": "500Mi"}),
    pods_fit=False,
    contrast_gate="SchedulerAsyncAPICalls",
)

HIGH_PRIORITY = "high-priority"


def _victim(number: int) -> Object:
    pod = bench_pod(f"init-{number:06}", {"cpu": "900m", "memory": "500Mi"})
    pod["spec"]["terminationGracePeriodSeconds"] = 0
    return pod


def _preemptor(number: int) -> Object:
    pod = bench_pod(f"pod-{number:06}", {"cpu": "3970m", "memory": "500Mi"})
    pod["spec"]["priorityClassName"] = HIGH_PRIORITY
    return pod


PREEMPTION_BASIC = BenchWorkload(
    name="PreemptionBasic",
    about="nodes full of pods that can go, four of which must go for each pod that comes",
    nodes=500,
    init_pods=2000,
    pods=500,
    make_node=bench_node,
    make_init_pod=_victim,
    make_pod=_preemptor,
    priority_classes={HIGH_PRIORITY: 1000},
)
