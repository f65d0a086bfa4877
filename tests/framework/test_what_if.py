"""What-if from a plugin: the same answers as the cluster would give if the pods had really come or gone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.api import (
    CycleState,
    Filter,
    NodeNames,
    NodeTable,
    NodeView,
    Plugin,
    Pod,
    PreFilter,
    Reason,
    Reject,
    Rejection,
    Scores,
    VectorScore,
)
from pilotage.assembly import FrameworkHandle, SchedulerOptions, build_profiles
from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import ProfileEngine
from pilotage.framework.errors import PluginError
from pilotage.rng import seeded
from pilotage.testing import FakeHandle, NodeBuilder, PodBuilder, VirtualClock, node, pod

NODES = ("a", "b", "c")


def keeps_away(builder: PodBuilder, app: str) -> PodBuilder:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    return builder.spec(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})


class World:
    """A cluster with the default profile, and the handle of a plugin in it."""

    def __init__(self, *objects: NodeBuilder | PodBuilder) -> None:
        self.cluster = Cluster()
        engines: dict[str, ProfileEngine] = {}
        root = FrameworkHandle(self.cluster, VirtualClock(), seeded(1), engines=engines)
        profile = build_profiles(SchedulerOptions(), root)["default-scheduler"]
        self.engine = ProfileEngine(profile, self.cluster)
        engines["default-scheduler"] = self.engine
        self.handle = root.for_plugin("default-scheduler", "Mine")
        self.pods: dict[str, Pod] = {}
        for one in objects:
            if isinstance(one, NodeBuilder):
                self.cluster.put_node(one.build())
            else:
                self.put(one.build())

    def put(self, built: Pod) -> None:
        self.pods[built.name] = built
        self.cluster.put_object("Pod", built)
        if built.node_name:
            self.cluster.put_pod(built)
        else:
            self.cluster.nominations.follow(None, built)

    def fits(self, asked: Pod) -> set[str]:
        """On which nodes the pod really fits."""
        state = CycleState()
        outcome = self.engine.runner.pre_filter(state, asked)
        mask = self.engine.evaluator.feasible(state, asked, outcome.allowed)
        return {self.cluster.nodes.names[row] for row in np.flatnonzero(mask).tolist()}


def test_a_pod_fits_when_another_one_is_imagined_away() -> None:
    world = World(node("a").cpu(2), pod("full").node("a").requests(cpu=2))
    what_if = world.handle.what_if(pod("new").requests(cpu=1).build())
    place = what_if.on("a")
    rejection = place.rejection()
    assert rejection is not None and rejection[0] == "NodeResourcesFit"
    place.remove(world.pods["full"])
    assert place.rejection() is None
    assert what_if.on("a").rejection() is not None, "each hypothetical node begins as the node is"
    place.add(pod("other").requests(cpu=2).build())
    assert place.rejection() is not None
    assert world.cluster.nodes.requested("cpu").tolist() == [2000], "nothing was changed"


def test_a_nominated_pod_counts() -> None:
    world = World(node("a").cpu(2), pod("nominated").priority(10).requests(cpu=2).nominated("a"))
    assert world.handle.what_if(pod("low").requests(cpu=1).build()).on("a").rejection() is not None
    assert world.handle.what_if(pod("high").priority(11).requests(cpu=1).build()).on("a").rejection() is None


def test_affinity_follows_imagined_pods() -> None:
    world = World(node("a").label("kubernetes.io/hostname", "a"), pod("db").label("app", "db").node("a"))
    shy = keeps_away(pod("shy"), "db").build()
    place = world.handle.what_if(shy).on("a")
    assert place.rejection() is not None
    place.remove(world.pods["db"])
    assert place.rejection() is None


def test_mistakes_are_reported() -> None:
    world = World(node("a").cpu(2), pod("there").node("a"))
    what_if = world.handle.what_if(pod("new").build())
    with pytest.raises(KeyError, match='there is no node "z"'):
        what_if.on("z")
    with pytest.raises(ValueError, match='pod default/new is not on node "a"'):
        what_if.on("a").remove(what_if.pod)
    with pytest.raises(ValueError, match='pod default/there is on node "a" already'):
        what_if.on("a").add(world.pods["there"])
    with pytest.raises(ValueError, match="each node once"):
        what_if.scores([what_if.on("a"), what_if.on("a")])


def test_asking_before_there_is_a_profile_is_an_error() -> None:
    handle = FrameworkHandle(Cluster(), VirtualClock(), seeded(1)).for_plugin("mine", "X")
    with pytest.raises(RuntimeError, match="ask from an extension point"):
        handle.what_if(pod("p").build())


def test_scores_are_of_the_nodes_as_they_would_be() -> None:
    world = World(node("a").cpu(4), node("b").cpu(4), pod("busy").node("a").requests(cpu=3))
    what_if = world.handle.what_if(pod("new").requests(cpu=1).build())
    a, b = what_if.on("a"), what_if.on("b")
    before = what_if.scores([a, b])
    assert before["b"] > before["a"]
    a.remove(world.pods["busy"])
    after = what_if.scores([a, b])
    assert after["a"] == after["b"]
    assert what_if.scores([]) == {}


class OnlyB(Plugin, PreFilter):
    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> NodeNames | Rejection | None:
        return Reject(Reason("Bad", "bad pod")) if pod.name == "bad" else NodeNames(["b"])  # type: ignore[arg-type]


class FewPods(Plugin, Filter, VectorScore):
    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return Reject(Reason("Full", "full")) if node.pod_count else None

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        return 100 - nodes.pod_count


def test_with_a_fake_handle_the_plugins_that_serve_it_are_asked() -> None:
    handle = FakeHandle()
    there = pod("there").node("b").build()
    handle.put(node("a").build(), node("b").build(), there)
    assert handle.what_if(there).on("b").rejection() is None, "without plugins everything fits"
    handle.serve_with(OnlyB(), FewPods(), weights={"FewPods": 3})
    what_if = handle.what_if(pod("p").build())
    rejected = what_if.on("a").rejection()
    assert rejected is not None and rejected[0] == "" and "OnlyB" in rejected[1].reasons[0].message
    place = what_if.on("b")
    assert place.rejection() == ("FewPods", Reject(Reason("Full", "full")))
    assert what_if.scores([place]) == {"b": 297}
    place.remove(there)
    assert place.rejection() is None
    assert what_if.scores([place, what_if.on("a")]) == {"b": 300, "a": 300}
    bad = handle.what_if(pod("bad").build())
    assert bad.rejection == ("OnlyB", Reject(Reason("Bad", "bad pod")))
    assert bad.on("b").rejection() == bad.rejection


class AsksItself(Plugin, Filter):
    def __init__(self, handle: FakeHandle) -> None:
        self._handle = handle

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        rejected = self._handle.what_if(pod).on(node.name).rejection()
        return None if rejected is None else rejected[1]


def test_a_plugin_that_asks_itself_is_reported() -> None:
    handle = FakeHandle()
    handle.put(node("a").build())
    handle.serve_with(AsksItself(handle))
    with pytest.raises(PluginError, match="what_if is asked from within what_if"):
        handle.what_if(pod("p").build()).on("a").rejection()
    handle.serve_with(FewPods())
    assert handle.what_if(pod("p").build()).on("a").rejection() is None, "and others go on"


def cluster_of(sizes: dict[str, int], there: list[tuple[str, int, str]]) -> World:
    pods = [
        keeps_away(pod(f"p{at}").node(where).requests(cpu=cpu).label("app", app), app if app == "shy" else "nobody")
        for at, (where, cpu, app) in enumerate(there)
    ]
    return World(*(node(n).cpu(size).label("kubernetes.io/hostname", n) for n, size in sizes.items()), *pods)


THERE = st.lists(st.tuples(st.sampled_from(NODES), st.integers(0, 3), st.sampled_from(["shy", "web"])), max_size=6)


@settings(max_examples=60, deadline=None)
@given(there=THERE, gone=st.sets(st.integers(0, 5)), cpu=st.integers(0, 4), app=st.sampled_from(["shy", "web"]))
def test_imagined_and_real_evictions_give_the_same_answer(
    there: list[tuple[str, int, str]], gone: set[int], cpu: int, app: str
) -> None:
    sizes = {"a": 2, "b": 4, "c": 6}
    asked = pod("asked").requests(cpu=cpu).label("app", app).build()
    world = cluster_of(sizes, there)
    real = cluster_of(sizes, there)
    for at in gone:
        if at < len(there):
            real.cluster.remove_object("Pod", f"default/p{at}")
            real.cluster.remove_pod(real.pods[f"p{at}"].uid)
    what_if = world.handle.what_if(asked)
    found: dict[str, Any] = {}
    for name in NODES:
        place = what_if.on(name)
        for at, (where, _, _) in enumerate(there):
            if at in gone and where == name:
                place.remove(world.pods[f"p{at}"])
        found[name] = place.rejection()
    # A pod on another node that is imagined away there is still seen from here: affinity by host name does not mind.
    assert {name for name in NODES if found[name] is None} == real.fits(asked)
