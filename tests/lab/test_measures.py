"""Utilisation and stranded capacity, worked out by hand."""

from __future__ import annotations

import pytest

from pilotage.cluster.state import Cluster
from pilotage.lab.measures import Measures, Shapes
from pilotage.testing import node, pod


def measured(shapes: Shapes, cluster: Cluster) -> dict[str, float]:
    measures = Measures(cluster.nodes, shapes)
    return measures.take(measures.resources(["cpu", "memory", "example.com/gpu", "pods", "unused"]))


def test_what_is_free_where_nobody_fits_is_stranded() -> None:
    cluster, shapes = Cluster(), Shapes()
    cluster.put_node(node("a").cpu("4").memory("4Gi").build())
    cluster.put_node(node("b").cpu("4").memory("4Gi").allocatable("example.com/gpu", 2).build())
    cluster.put_pod(pod("big").uid("big").requests(cpu="3").spec(nodeName="a").build())
    for _ in range(3):
        shapes.note(pod("small").requests(cpu="1").build())
    shapes.note(pod("large").requests(cpu="2").build())
    found = measured(shapes, cluster)
    assert found["used_cpu"] == 3 / 8 and found["used_memory"] == 0 and found["used_example.com/gpu"] == 0
    assert found["stranded_cpu"] == pytest.approx(0.25 * 1 / 8), "a core on a is of no use to a quarter of the pods"
    assert found["stranded_memory"] == pytest.approx(0.25 * 4 / 8)
    assert (found["running"], found["nodes"], found["nodes_used"]) == (1, 2, 1)
    assert "used_pods" not in found and "used_unused" not in found


def test_a_node_that_takes_no_more_pods_strands_everything() -> None:
    cluster, shapes = Cluster(), Shapes()
    cluster.put_node(node("a").cpu("4").pods(1).build())
    cluster.put_pod(pod("p").uid("p").spec(nodeName="a").build())
    shapes.note(pod("p").build())
    assert measured(shapes, cluster)["stranded_cpu"] == 1


def test_rare_requests_do_not_count() -> None:
    shapes = Shapes()
    for number in range(100):
        shapes.note(pod("p").requests(cpu="1" if number else "64").build())
    assert shapes.typical() == [((("cpu", 1000),), 1.0)]


def test_without_nodes_nothing_is_used() -> None:
    found = measured(Shapes(), Cluster())
    assert found["used_cpu"] == found["stranded_cpu"] == found["nodes"] == 0
