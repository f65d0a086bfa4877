"""An index of a plugin that raises for one object goes on for all others, and nothing half done stays in it."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.api.indexes import ClusterIndex
from pilotage.cluster.state import Cluster
from pilotage.model import Node, Pod
from pilotage.model.meta import ObjectMeta
from pilotage.model.storage import PersistentVolumeClaim
from pilotage.testing.builders import node, pod


class Brittle(ClusterIndex):
    """Counts pods per node and notes every name; raises in the middle for what is labelled `bad`."""

    def __init__(self) -> None:
        self.version = 0
        self.names: set[str] = set()
        self.pods: dict[str, int] = {}

    def pod_added(self, pod: Pod, node_name: str) -> None:
        self.version += 1
        self.names.add(pod.name)
        if "bad" in pod.labels:
            raise RuntimeError(f"cannot take {pod.name}")
        self.pods[node_name] = self.pods.get(node_name, 0) + 1

    def pod_removed(self, pod: Pod, node_name: str) -> None:
        self.version += 1
        self.names.remove(pod.name)
        self.pods[node_name] -= 1

    def node_put(self, old: Node | None, new: Node) -> None:
        if "bad" in new.labels:
            raise RuntimeError("cannot take a node")
        self.names.add(new.name)


class Ledger(Brittle):
    """The same with something that others have told it."""

    keeps_more = True

    def __init__(self) -> None:
        super().__init__()
        self.reserved = 0


def assigned(name: str, **labels: str) -> Pod:
    made = pod(name).node("a")
    for key, value in labels.items():
        made = made.label(key, value)
    return made.build()


def skipped(cluster: Cluster) -> list[tuple[str, str, str]]:
    return [(one.kind, one.key, one.stage) for one in cluster.skipped]


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster()
    found.put_node(node("a").build())
    return found


def test_what_an_index_raises_for_is_left_out_and_the_rest_is_there(cluster: Cluster) -> None:
    index = cluster.index(Brittle)
    for made in (assigned("first"), assigned("odd", bad="yes"), assigned("second")):
        cluster.put_pod(made)
    cluster.settle()
    assert index is cluster.index(Brittle) and index.names == {"a", "first", "second"} and index.pods == {"a": 2}
    assert skipped(cluster) == [("Pod", "default/odd", "index")]
    assert cluster.placed_count == 3, "its requests count on the node all the same"
    cluster.check()


def test_the_version_of_an_index_that_was_filled_again_is_another_one(cluster: Cluster) -> None:
    index = cluster.index(Brittle)
    for number in range(5):
        made = assigned(f"p{number}")
        cluster.put_pod(made)
        cluster.remove_pod(made.uid)
    before = index.version
    cluster.put_pod(assigned("odd", bad="yes"))
    cluster.settle()
    assert index.version > before


def test_it_is_tried_again_when_it_changes_and_forgotten_when_it_goes(cluster: Cluster) -> None:
    index = cluster.index(Brittle)
    odd = assigned("odd", bad="yes")
    cluster.put_pod(odd)
    cluster.settle()
    cluster.put_pod(assigned("odd"))
    assert index.names == {"a", "odd"} and not skipped(cluster)
    cluster.put_pod(assigned("odd", bad="again"))
    cluster.remove_pod(odd.uid)
    cluster.settle()
    assert index.names == {"a"} and not skipped(cluster)


def test_an_index_that_is_made_late_is_filled_without_what_it_cannot_take(cluster: Cluster) -> None:
    for made in (assigned("odd", bad="yes"), assigned("first"), assigned("worse", bad="yes")):
        cluster.put_pod(made)
    cluster.put_node(node("b").label("bad", "yes").build())
    index = cluster.index(Brittle)
    assert index.names == {"a", "first"} and index.pods == {"a": 1}
    assert [key for _, key, _ in skipped(cluster)] == ["b", "default/odd", "default/worse"]


def test_an_index_with_more_than_it_was_told_is_not_emptied(cluster: Cluster) -> None:
    index = cluster.index(Ledger)
    index.reserved = 7
    cluster.put_pod(assigned("first"))
    cluster.put_pod(assigned("odd", bad="yes"))
    cluster.settle()
    assert index.reserved == 7 and index.names == {"a", "first"}


def test_one_index_does_not_spoil_another(cluster: Cluster) -> None:
    class Calm(ClusterIndex):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def pod_added(self, pod: Pod, node_name: str) -> None:
            self.seen.append(pod.name)

    cluster.index(Brittle)
    calm: Any = cluster.index(Calm)
    cluster.put_pod(assigned("odd", bad="yes"))
    cluster.settle()
    assert calm.seen == ["odd"]


class BrittleClaims(ClusterIndex):
    """Names of claims and nodes; raises for claims labelled `bad`, and for everything that goes while `is_stubborn`."""

    kinds = ("PersistentVolumeClaim",)

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.is_stubborn = False

    def object_put(self, kind: str, old: Any, new: Any) -> None:
        self.names.add(new.name)
        if "bad" in new.metadata.labels:
            raise RuntimeError(f"cannot take {kind} {new.name}")

    def object_removed(self, kind: str, obj: Any) -> None:
        if self.is_stubborn:
            raise RuntimeError(f"cannot lose {kind} {obj.name}")
        self.names.remove(obj.name)

    def node_put(self, old: Node | None, new: Node) -> None:
        self.names.add(new.name)

    def node_removed(self, node: Node) -> None:
        if self.is_stubborn:
            raise RuntimeError(f"cannot lose {node.name}")
        self.names.remove(node.name)


def claim(name: str, **labels: str) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace="default", uid=name, labels=labels))


def test_other_objects_that_an_index_raises_for_are_left_out_too(cluster: Cluster) -> None:
    index = cluster.index(BrittleClaims)
    for made in (claim("first"), claim("odd", bad="yes"), claim("second")):
        cluster.put_object("PersistentVolumeClaim", made)
    assert cluster.index(BrittleClaims).names == {"a", "first", "second"}
    assert skipped(cluster) == [("PersistentVolumeClaim", "default/odd", "index")]
    cluster.put_object("PersistentVolumeClaim", claim("odd"))
    assert index.names == {"a", "first", "second", "odd"} and not skipped(cluster)
    cluster.put_object("PersistentVolumeClaim", claim("odd", bad="again"))
    cluster.remove_object("PersistentVolumeClaim", "default/odd")
    cluster.settle()
    assert index.names == {"a", "first", "second"} and not skipped(cluster)


def test_what_an_index_cannot_forget_is_gone_after_it_is_filled_again(cluster: Cluster) -> None:
    index = cluster.index(BrittleClaims)
    cluster.put_node(node("b").build())
    for made in (claim("first"), claim("second")):
        cluster.put_object("PersistentVolumeClaim", made)
    index.is_stubborn = True
    cluster.remove_object("PersistentVolumeClaim", "default/first")
    cluster.remove_node("b")
    cluster.settle()
    assert index.names == {"a", "second"} and not skipped(cluster)
