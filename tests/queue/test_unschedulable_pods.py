"""Waiting pods by the plugin that rejected them and by class."""

from __future__ import annotations

from msgspec.structs import replace

from pilotage.queue.sub_queues import QueuedPodInfo, UnschedulablePods
from pilotage.testing import PodBuilder, pod


def entry(builder: PodBuilder, *rejectors: str) -> QueuedPodInfo:
    return QueuedPodInfo(builder.build(), 0.0, rejectors=frozenset(rejectors))


def names(pool: UnschedulablePods, plugin: str, scheduler: str = "default-scheduler") -> list[list[str]]:
    return [[e.pod.name for e in pods.values()] for pods in pool.rejecting(scheduler).get(plugin, {}).values()]


def test_pods_are_found_by_each_of_their_rejectors_class_by_class() -> None:
    pool = UnschedulablePods()
    for waiting in [
        entry(pod("a"), "Fit", "Taint"),
        entry(pod("b"), "Fit"),
        entry(pod("c").requests(cpu="1"), "Fit"),
        entry(pod("d").scheduler("other"), "Fit"),
    ]:
        pool.add(waiting)
    pool.check()
    assert names(pool, "Fit") == [["a", "b"], ["c"]]
    assert names(pool, "Taint") == [["a"]]
    assert names(pool, "Fit", "other") == [["d"]] and names(pool, "Nobody") == []
    assert len(pool) == 4 and [e.pod.name for e in pool] == ["a", "b", "c", "d"]


def test_a_removed_pod_is_in_no_index() -> None:
    pool = UnschedulablePods()
    kept, gone = entry(pod("a"), "Fit"), entry(pod("b"), "Fit", "Taint")
    pool.add(kept)
    pool.add(gone)
    assert pool.remove(gone.pod.uid) is gone
    assert pool.remove(gone.pod.uid) is None
    pool.check()
    assert names(pool, "Fit") == [["a"]] and names(pool, "Taint") == []
    assert gone.pod.uid not in pool and pool.get(kept.pod.uid) is kept


def test_a_pod_is_removed_from_where_it_was_filed_even_if_it_has_changed_since() -> None:
    pool = UnschedulablePods()
    waiting = entry(pod("a"), "Fit")
    pool.add(waiting)
    waiting.rejectors = frozenset(["Taint"])
    waiting.pod = pod("a").label("x", "y").build()
    assert names(pool, "Fit") == [["a"]]
    pool.remove(waiting.pod.uid)
    pool.check()
    assert names(pool, "Fit") == [] and names(pool, "Taint") == []


def test_an_update_keeps_a_pod_in_its_place_unless_it_is_another_class_now() -> None:
    pool = UnschedulablePods()
    first, second = entry(pod("a"), "Fit"), entry(pod("b"), "Fit")
    pool.add(first)
    pool.add(second)
    newer = replace(first.pod, resource_version="2")
    pool.update(first, newer)
    assert first.pod is newer and names(pool, "Fit") == [["a", "b"]]
    pool.update(first, replace(newer, labels=pod("a").label("x", "y").build().labels))
    pool.check()
    assert names(pool, "Fit") == [["b"], ["a"]]


def test_a_pod_without_rejectors_is_kept_but_not_indexed() -> None:
    pool = UnschedulablePods()
    waiting = entry(pod("a"))
    pool.add(waiting)
    pool.check()
    assert waiting.pod.uid in pool
