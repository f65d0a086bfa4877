"""How many copies fit: as many as if they came one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.api.state import CycleState
from pilotage.assembly import SchedulerOptions
from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import Placed, place
from pilotage.explain.engine import cluster_of_manifests, thinking_engines
from pilotage.lab.plan.copies import fit
from pilotage.model import Pod
from pilotage.simulate.memory_api import Json
from pilotage.testing import VirtualClock, node, pod
from pilotage.testing.builders import PodBuilder

MOST = 12


def _world(objects: Sequence[Json]) -> Cluster:
    return cluster_of_manifests(objects)


def _naive(objects: list[Json], wanted: PodBuilder) -> list[str]:
    """The nodes of copies that come one by one, each to a cluster that is read anew."""
    nodes: list[str] = []
    for number in range(MOST):
        copy = wanted.json() | {"metadata": {**wanted.json()["metadata"], "name": f"w-{number}", "uid": f"w-{number}"}}
        cluster = _world(objects)
        engines = thinking_engines(cluster, VirtualClock(), SchedulerOptions())
        found = place(engines["default-scheduler"], CycleState(), pod_of(copy), asks_post_filter=False)
        if not isinstance(found, Placed):
            break
        nodes.append(found.node_name)
        objects = [*objects, {**copy, "spec": {**copy["spec"], "nodeName": found.node_name}}]
    return nodes


def pod_of(document: Json) -> Pod:
    found: Pod = next(iter(cluster_of_manifests([document]).objects("Pod").values()))
    return found


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    used=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), max_size=3),
    asked=st.integers(1, 3),
    spreads=st.booleans(),
)
def test_as_many_as_if_they_came_one_by_one(
    sizes: list[int], used: list[tuple[int, int]], asked: int, spreads: bool
) -> None:
    objects = [
        node(f"n{at}").cpu(str(size)).label("kubernetes.io/hostname", f"n{at}").json() for at, size in enumerate(sizes)
    ]
    objects += [
        pod(f"u{at}").requests(cpu=str(cpu)).node(f"n{where % len(sizes)}").json()
        for at, (where, cpu) in enumerate(used)
    ]
    wanted = pod("w").requests(cpu=str(asked)).label("app", "w")
    if spreads:
        selector = {"matchLabels": {"app": "w"}}
        rule = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
        wanted = wanted.spec(topologySpreadConstraints=[{**rule, "labelSelector": selector}])
    cluster = _world(objects)
    engines = thinking_engines(cluster, VirtualClock(), SchedulerOptions())
    subject = pod_of(wanted.json())
    naive = _naive(objects, wanted)
    found = fit(cluster, engines, subject, MOST)
    assert found.copies == len(naive)
    assert found.nodes == {name: naive.count(name) for name in found.nodes} and sum(found.nodes.values()) == len(naive)
    assert bool(found.stopped_by) == (len(naive) < MOST)
    assert fit(cluster, engines, subject, MOST) == found, "the cluster is as it was before"


def test_what_stops_the_next_one_is_said() -> None:
    cluster = _world([node("n").cpu("4").memory("2Gi").json()])
    engines = thinking_engines(cluster, VirtualClock(), SchedulerOptions())
    found = fit(cluster, engines, pod_of(pod("w").requests(cpu="1", memory="1Gi").json()), 100)
    assert (found.copies, found.stopped_by) == (2, "0/1 nodes are available: 1 Insufficient memory.")
    assert found.report is not None and not found.report.fits


def test_a_pod_that_is_held_back_and_one_of_another_scheduler() -> None:
    cluster = _world([node("n").cpu("4").json()])
    engines = thinking_engines(cluster, VirtualClock(), SchedulerOptions())
    assert "scheduling gates" in fit(cluster, engines, pod_of(pod("w").gate("g").json()), 9).stopped_by
    assert "no profile here" in fit(cluster, engines, pod_of(pod("w").scheduler("x").json()), 9).stopped_by
