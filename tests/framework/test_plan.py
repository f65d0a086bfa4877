"""Plans are made once per pod class and do not pile up."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from pilotage.api import CycleState, Filter, NodeTable, NodeView, Plugin, PreFilter, PreScore, Score
from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import Placed, ProfileEngine, place
from pilotage.framework.profile import Profile, plan_for
from pilotage.model import Pod
from pilotage.plugins import DefaultBinder, PrioritySort, TaintToleration
from pilotage.testing import node, pod
from tests.framework.scripted_plugins import profile_of


def profile() -> Profile:
    plugins = [PrioritySort(), TaintToleration(), DefaultBinder(handle=None)]  # type: ignore[arg-type]
    return Profile("default-scheduler", plugins, {plugin.plugin_name(): 1 for plugin in plugins})


def test_equal_pods_share_a_plan() -> None:
    own = profile()
    one, other = pod("a").label("app", "web").build(), pod("b").label("app", "web").build()
    assert plan_for(own, one) is plan_for(own, other)


def test_profiles_do_not_share_plans() -> None:
    waiting = pod("a").build()
    assert plan_for(profile(), waiting) is not plan_for(profile(), waiting)


def test_pods_with_labels_of_their_own_do_not_fill_the_memory_of_their_spec() -> None:
    """As in an Indexed Job: one spec, a label per pod."""
    own = profile()
    for number in range(1000):
        last = pod(f"p{number}").label("index", str(number)).build()
        plan_for(own, last)
    assert len(own.plans.by_spec[last.spec]) <= 64


class Choosy(Plugin, PreFilter, Filter, PreScore, Score):
    """Has something to say about pods with the label "mine" only."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def may_filter(self, pod: Pod) -> bool:
        return "mine" in pod.labels

    may_score = may_filter

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        self.asked.append("pre_filter")

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> None:
        self.asked.append("filter")

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        self.asked.append("pre_score")

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        self.asked.append("score")
        return 0

    def sign(self, pod: Pod) -> Hashable:
        return "mine" in pod.labels


@pytest.mark.parametrize(
    ("waiting", "asked"),
    [
        (pod("a").label("mine", "").build(), ["pre_filter", "filter", "filter", "pre_score", "score", "score"]),
        (pod("a").build(), []),
    ],
)
def test_plugins_that_never_concern_a_pod_are_not_asked(waiting: Pod, asked: list[str]) -> None:
    plugin, cluster, state = Choosy(), Cluster(), CycleState()
    for name in ("n1", "n2"):
        cluster.put_node(node(name).build())
    engine = ProfileEngine(profile_of(plugin), cluster)
    assert isinstance(place(engine, state, waiting), Placed)
    assert sorted(plugin.asked) == sorted(asked)
    assert ("Choosy" in state.skip_filter, "Choosy" in state.skip_score) == (not asked, not asked)
