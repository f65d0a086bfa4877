"""A node as a plugin sees it, made from builders."""

from __future__ import annotations

from pilotage.cluster.state import Cluster
from pilotage.testing import node, pod
from pilotage.testing.views import node_view

NODE = node("a").cpu("3500m").memory("8Gi").zone("z").taint("gpu", "NoSchedule").allocatable("example.com/fpga", 2)
PODS = [
    pod("p").requests({"cpu": "250m", "example.com/fpga": 1}),
    pod("q").requests(memory="1Gi").container("side", cpu="1"),
]


def test_a_view_equals_what_the_scheduler_would_show() -> None:
    view = node_view(NODE, *PODS)
    cluster = Cluster()
    cluster.put_node(NODE.build())
    for builder in PODS:
        cluster.put_pod(builder.build().with_node("a"))
    real = cluster.node_view("a")
    assert real is not None
    assert (view.name, view.labels, view.taints, view.unschedulable) == (
        real.name,
        real.labels,
        real.taints,
        real.unschedulable,
    )
    assert view.pod_count == real.pod_count == 2
    assert [p.name for p in view.pods] == ["p", "q"]
    for resource in ("cpu", "memory", "pods", "ephemeral-storage", "example.com/fpga"):
        assert view.allocatable(resource) == real.allocatable(resource)
        assert view.requested(resource) == real.requested(resource)
    for resource in ("cpu", "memory"):
        assert view.non_zero_requested(resource) == real.non_zero_requested(resource)


def test_built_objects_are_taken_too() -> None:
    view = node_view(NODE.build(), pod("p").requests(cpu="1").build())
    assert (view.node.name, view.requested("cpu"), view.non_zero_requested("example.com/fpga")) == ("a", 1000, 0)
