"""Indexes hear of everything that they asked for: what was there before them, and what comes, changes and goes."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from pilotage.api import ClusterIndex
from pilotage.cluster.state import Cluster
from pilotage.model.meta import ObjectMeta
from pilotage.model.workloads import Service, ServiceSpec


class Heard(ClusterIndex):
    """Writes down what it is told of services."""

    kinds: ClassVar[frozenset[str]] = frozenset({"Service"})

    def __init__(self) -> None:
        self.news: list[tuple[str, str, Any, Any]] = []

    def object_put(self, kind: str, old: Any | None, new: Any) -> None:
        self.news.append(("put", kind, old, new))

    def object_removed(self, kind: str, obj: Any) -> None:
        self.news.append(("removed", kind, obj, None))


def service(name: str, **selector: str) -> Service:
    return Service(metadata=ObjectMeta(name=name, namespace="default"), spec=ServiceSpec(selector=selector))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_an_index_is_told_of_the_objects_that_are_there(cluster: Cluster) -> None:
    first, other = service("a"), service("b")
    cluster.put_object("Service", first)
    cluster.put_object("ReplicaSet", other)
    assert cluster.index(Heard).news == [("put", "Service", None, first)]
    assert cluster.index(Heard) is cluster.index(Heard)


def test_an_index_hears_of_every_change_of_its_kinds(cluster: Cluster) -> None:
    heard = cluster.index(Heard)
    old, new = service("a"), service("a", app="x")
    cluster.put_object("Service", old)
    cluster.put_object("Service", new)
    cluster.put_object("ReplicaSet", service("a"))
    cluster.remove_object("Service", "default/a")
    cluster.remove_object("Service", "default/a")
    assert heard.news == [
        ("put", "Service", None, old),
        ("put", "Service", old, new),
        ("removed", "Service", new, None),
    ]
