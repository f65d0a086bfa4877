"""Pods that no selector can tell apart are one class, with a count per node."""

from __future__ import annotations

from pilotage.api.budget import UNLIMITED
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.cluster.pod_classes import PodClasses
from pilotage.testing import PodBuilder, node, pod


def classes_of(*pods: PodBuilder) -> PodClasses:
    classes = PodClasses()
    for builder in pods:
        built = builder.build()
        classes.add(built, built.node_name)
    return classes


WEB = pod("web").label("app", "web").node("a")


def test_equal_labels_namespace_and_state_make_one_class() -> None:
    classes = classes_of(WEB, WEB.uid("2"), pod("other").label("app", "web").requests(cpu="1").node("b"))
    (only,) = classes.where(lambda _: True)
    assert (only.namespace, dict(only.labels), only.terminating) == ("default", {"app": "web"}, False)
    assert only.on_node == {"a": 2, "b": 1}


def test_labels_namespace_and_termination_tell_classes_apart() -> None:
    assert len(classes_of(WEB, WEB.namespace("x"), WEB.label("app", "db"), WEB.label("b", "c"), WEB.terminating())) == 5


def test_the_order_of_labels_does_not_matter() -> None:
    assert len(classes_of(pod("p").label("a", "1").label("b", "2"), pod("q").label("b", "2").label("a", "1"))) == 1


def test_a_class_without_pods_is_forgotten() -> None:
    classes = classes_of(WEB, WEB.node("b"))
    classes.remove(WEB.build(), "a")
    (only,) = classes.where(lambda _: True)
    assert only.on_node == {"b": 1}
    classes.remove(WEB.build(), "b")
    assert len(classes) == 0


def test_counts_are_spread_over_the_rows_of_a_table() -> None:
    table = ClusterNodeTable()
    for name in ("a", "b", "c"):
        table.put_node(node(name).build())
    classes = classes_of(WEB, WEB, WEB.node("c"), WEB.node("unknown"), WEB.label("app", "db").node("b"))
    weights = classes.weigh_per_row(lambda c: 5 if c.labels.get("app") == "web" else 0, table, UNLIMITED)
    assert weights.tolist() == [10, 0, 5]
    assert classes.weigh_per_row(lambda _: 0, table, UNLIMITED).tolist() == [0, 0, 0]
