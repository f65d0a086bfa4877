"""Counts per node of the pods that match a question: maintained, bounded, and the same as counting anew."""

from __future__ import annotations

import numpy as np
import pytest

from pilotage.api.indexes import PodClass
from pilotage.cluster import pod_classes
from pilotage.cluster.state import Cluster
from pilotage.testing import node, pod


def labelled(**wanted: str):  # type: ignore[no-untyped-def]
    """Is a class of pods that are not being deleted and have these labels?"""

    def question(pods: PodClass) -> bool:
        return not pods.terminating and wanted.items() <= pods.labels.items()

    return question


BLUE = labelled(color="blue")


def blue(name: str, node_name: str):  # type: ignore[no-untyped-def]
    return pod(name).label("color", "blue").node(node_name)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    for name in "ab":
        cluster.put_node(node(name).build())
    return cluster


def counts(cluster: Cluster) -> dict[str, int]:
    return dict(zip(cluster.nodes.names, cluster.counts.per_row("blue", BLUE).tolist(), strict=True))


def test_pods_that_were_there_before_the_question_count(cluster: Cluster) -> None:
    cluster.put_pod(blue("p", "a").build())
    cluster.put_pod(pod("q").label("color", "red").node("a").build())
    assert counts(cluster) == {"a": 1, "b": 0}


def test_pods_that_come_and_go_later_are_followed(cluster: Cluster) -> None:
    assert counts(cluster) == {"a": 0, "b": 0}
    cluster.put_pod(blue("p", "a").build())
    cluster.assume(blue("q", "b").build())
    cluster.put_pod(blue("r", "b").build())
    assert counts(cluster) == {"a": 1, "b": 2}
    cluster.remove_pod("uid-default-r")
    cluster.forget("uid-default-q")
    assert counts(cluster) == {"a": 1, "b": 0}


def test_a_pod_that_changes_class_changes_the_count(cluster: Cluster) -> None:
    counts(cluster)
    cluster.put_pod(blue("p", "a").build())
    cluster.put_pod(blue("p", "a").terminating().version(2).build())
    assert counts(cluster) == {"a": 0, "b": 0}
    cluster.put_pod(blue("p", "a").version(3).build())
    assert counts(cluster) == {"a": 1, "b": 0}
    cluster.put_pod(pod("p").label("color", "red").node("a").version(4).build())
    assert counts(cluster) == {"a": 0, "b": 0}


def test_nodes_that_come_and_go_move_the_counts_with_their_rows(cluster: Cluster) -> None:
    cluster.put_pod(blue("p", "b").build())
    cluster.put_pod(blue("q", "c").build())
    assert counts(cluster) == {"a": 0, "b": 1}
    cluster.put_node(node("c").build())
    assert counts(cluster) == {"a": 0, "b": 1, "c": 1}
    cluster.remove_node("a")
    assert counts(cluster) == {"b": 1, "c": 1}
    cluster.put_pod(blue("r", "c").build())
    assert counts(cluster) == {"b": 1, "c": 2}


def test_counts_are_read_only(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="read-only"):
        cluster.counts.per_row("blue", BLUE)[0] = 7


def test_forgotten_questions_and_classes_are_counted_anew(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """More questions and classes than are kept, asked and changed in turns, still give exact answers."""
    monkeypatch.setattr(pod_classes, "_KEPT_QUESTIONS", 3)
    monkeypatch.setattr(pod_classes, "_KEPT_CLASSES", 4)
    rng = np.random.default_rng(5)
    expected = dict.fromkeys(range(9), 0)
    for number in range(300):
        app = int(rng.integers(9))
        cluster.put_pod(pod(f"p{number}").label("app", str(app)).node("a").build())
        expected[app] += 1
        asked = int(rng.integers(9))
        found = cluster.counts.per_row(asked, labelled(app=str(asked)))
        assert found.tolist() == [expected[asked], 0]
    assert len(cluster.counts._answers) == 3
    assert len(cluster.counts._matched) <= 4 and len(cluster.counts._asked) <= 6
