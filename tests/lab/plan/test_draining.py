"""Which nodes can go."""

from __future__ import annotations

from typing import Any

from pilotage.assembly import SchedulerOptions
from pilotage.explain.engine import cluster_of_manifests, thinking_engines
from pilotage.lab.plan.draining import Draining
from pilotage.testing import VirtualClock, node, pod
from pilotage.testing.builders import PodBuilder


def _draining(*objects: dict[str, Any]) -> Draining:
    cluster = cluster_of_manifests(objects)
    return Draining(cluster, thinking_engines(cluster, VirtualClock(), SchedulerOptions()))


def _owned(name: str, on: str, cpu: str = "1") -> PodBuilder:
    return pod(name).requests(cpu=cpu).owner("ReplicaSet", "w").label("app", "w").node(on)


def _budget(allowed: int) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "w"}}},
        "status": {"disruptionsAllowed": allowed},
    }


NODES = [node(name).cpu("4").json() for name in ("a", "b", "c")]


def test_a_node_whose_pods_fit_elsewhere_and_all_that_can_be_away_at_once() -> None:
    draining = _draining(*NODES, *(_owned(f"p{on}", on, "3").json() for on in ("a", "b")))
    before = draining.departures(["a", "b", "c"])
    assert [(one.can_drain, one.can_be_lost) for one in before] == [(True, True)] * 3
    assert before[0].moves == {"default/pa": "c"}
    assert draining.together(before) == ["c"], "without c, the pods of a have no place"
    assert draining.departures(["a", "b", "c"]) == before, "the cluster is as it was before"


def test_pods_of_one_node_that_fit_only_without_each_other() -> None:
    full = [_owned("q", "b", "2").json(), _owned("r", "c", "2").json()]
    two = [_owned("p1", "a", "2").json(), _owned("p2", "a", "2").json()]
    assert _draining(*NODES, *full, *two).departure("a").can_drain
    one = _draining(*NODES, *full, *two, _owned("s", "c").json()).departure("a")
    assert not one.can_drain and not one.can_be_lost
    assert "Insufficient cpu" in one.problems[0]


def test_budgets() -> None:
    pods = [_owned("p1", "a").json(), _owned("p2", "a").json()]
    held, steps, free = (_draining(*NODES, *pods, _budget(allowed)).departure("a") for allowed in (0, 1, 2))
    assert not held.can_drain and held.can_be_lost and "allows no eviction now" in held.problems[0]
    assert steps.can_drain and steps.in_steps
    assert free.can_drain and not free.in_steps


def test_pods_that_nobody_makes_again_and_those_that_go_with_their_node() -> None:
    bare = _draining(*NODES, pod("p").node("a").json()).departure("a")
    assert not bare.can_drain and not bare.can_be_lost and "has no controller" in bare.problems[0]
    daemon = pod("d").owner("DaemonSet", "d").node("a")
    static = pod("s").annotation("kubernetes.io/config.mirror", "x").node("a")
    stays = _draining(*NODES, daemon.json(), static.json()).departure("a")
    assert stays.pods == 0 and stays.can_drain and stays.can_be_lost


def test_a_pod_that_may_run_on_its_node_only() -> None:
    here = _owned("p", "a").node_affinity_in("kubernetes.io/hostname", ["a"])
    nodes = [node(name).cpu("4").label("kubernetes.io/hostname", name).json() for name in ("a", "b")]
    assert not _draining(*nodes, here.json()).departure("a").can_drain


def test_devices_are_not_judged() -> None:
    claims = _owned("p", "a").spec(resourceClaims=[{"name": "g", "resourceClaimName": "g"}])
    one = _draining(*NODES, claims.json()).departure("a")
    assert not one.can_drain and "not judged" in one.problems[0]
