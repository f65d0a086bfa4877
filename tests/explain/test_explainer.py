"""What the report says about pods that fit, that do not, that are gated, assigned, or without any node."""

from __future__ import annotations

import pytest

from pilotage.api import CycleState, Filter, NodeView, Plugin, Reason, Reject
from pilotage.assembly import options_from_configuration
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.config.load import configuration_of
from pilotage.explain.explainer import UnknownNode, explain
from pilotage.explain.render import render
from pilotage.explain.report import Victims
from pilotage.model import Pod
from pilotage.testing import node, pod
from tests.explain.world import engine_of

BIG = pod("big").requests(cpu="6", memory="1Gi")


def test_pod_that_fits_names_the_node_and_the_scores_of_the_best() -> None:
    engine = engine_of(node("a").cpu("4"), node("b").cpu("8"), node("c").cpu("4").unschedulable())
    report = explain(engine, pod("p").requests(cpu="1", memory="1Gi").build())
    assert report.fits and report.feasible == 2
    assert report.answer == "default/p fits on 2 of 3 nodes; it would go to b."
    assert [score.node for score in report.best] == ["b", "a"]
    assert report.best[0].total == sum(report.best[0].plugins.values())
    assert report.best[0].plugins["NodeResourcesFit"] > report.best[1].plugins["NodeResourcesFit"]
    assert [(group.plugin, group.nodes) for group in report.rejections] == [("NodeUnschedulable", 1)]


def test_without_score_plugins_every_node_that_fits_has_one_point() -> None:
    profile = {"schedulerName": "default-scheduler", "plugins": {"score": {"disabled": [{"name": "*"}]}}}
    configuration = configuration_of(
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [profile]},
        "no scores",
    )
    engine = engine_of(node("a"), node("b"), options=options_from_configuration(configuration))
    report = explain(engine, pod("p").build())
    assert [(score.node, score.total, score.plugins) for score in report.best] == [("a", 1, {}), ("b", 1, {})]


def test_ties_are_reported() -> None:
    report = explain(engine_of(*(node(name) for name in "abc")), pod("p").build())
    assert report.tied == 3


def test_pod_that_fits_nowhere_groups_reasons_and_counts_nodes() -> None:
    engine = engine_of(*(node(f"s{n}").cpu("2") for n in range(3)), node("t").cpu("16").taint("gpu", "NoSchedule"))
    report = explain(engine, BIG.build())
    assert not report.fits
    assert report.answer == "default/big fits on none of 4 nodes: Insufficient cpu on 3 of 4 nodes."
    assert [(g.plugin, g.nodes, g.preemption_may_help) for g in report.rejections] == [
        ("NodeResourcesFit", 3, False),
        ("TaintToleration", 1, False),
    ]
    expected = "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 Insufficient cpu."
    assert report.message.startswith(expected)


def test_nearest_node_lacks_least_and_everything_that_it_lacks_is_reported() -> None:
    far = node("far").cpu("2").memory("1Mi").taint("gpu", "NoSchedule").unschedulable()
    report = explain(engine_of(far, node("near").cpu("4")), BIG.build())
    near, second = report.nearest
    assert (near.node, second.node) == ("near", "far")
    (lack,) = near.lacks
    assert (lack.plugin, lack.need, lack.have, lack.detail) == ("NodeResourcesFit", 6000, 4000, "cpu")
    assert {lack.plugin for lack in second.lacks} == {"NodeUnschedulable", "TaintToleration", "NodeResourcesFit"}


def test_of_two_nodes_that_lack_the_same_the_one_that_lacks_less_of_it_is_nearer() -> None:
    report = explain(engine_of(node("a").cpu("2"), node("b").cpu("5"), node("c").cpu("4")), BIG.build())
    assert [near.node for near in report.nearest] == ["b", "c", "a"]


class Wordy(Plugin, Filter):
    """Says what sounds like a lack of a resource, and names a resource in its own words."""

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Reject | None:
        if node.name == "a":
            return Reject(Reason("NoPatience", "Insufficient patience", need=3, have=1))
        return Reject(Reason("Shy", "the processors are shy", need=500, resource="cpu"))


def test_a_lack_of_a_resource_is_reported_by_its_field_and_not_by_its_words() -> None:
    options = options_from_configuration(SchedulerConfiguration(), [Wordy])
    report = explain(engine_of(node("a").cpu("2"), node("b").cpu("2"), options=options), pod("p").build())
    lacks = {near.node: near.lacks[0] for near in report.nearest}
    assert (lacks["a"].need, lacks["a"].have, lacks["a"].detail) == (3, 1, "")
    assert (lacks["b"].need, lacks["b"].have, lacks["b"].detail) == (500, 2000, "cpu")


def test_node_that_is_asked_for_comes_first() -> None:
    engine = engine_of(*(node(f"n{number}").cpu("2") for number in range(9)))
    assert explain(engine, BIG.build(), "n7").nearest[0].node == "n7"


def test_node_that_is_asked_for_is_told_of_although_the_pod_fits_elsewhere() -> None:
    nodes = [node(f"n{number}").cpu(str(4 + number)) for number in range(6)]
    engine = engine_of(*nodes, node("closed").taint("gpu", "NoSchedule"))
    rejected = explain(engine, pod("p").build(), "closed")
    assert rejected.fits and [near.node for near in rejected.nearest] == ["closed"]
    assert "Not on:\n  closed: node(s) had untolerated taint(s)" in render(rejected)
    far = explain(engine, pod("p").requests(cpu="1").build(), "n0")
    assert [(score.node, score.place) for score in far.best[-1:]] == [("n0", 6)] and len(far.best) == 4
    assert not far.nearest and "(in place 6: " in render(far)


def test_node_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(UnknownNode, match='there is no node "node-2"'):
        explain(engine_of(node("node-1")), pod("p").build(), "node-2")


def test_room_that_pods_take_can_be_won_by_preemption() -> None:
    engine = engine_of(node("a").cpu("8"), pod("low").requests(cpu="4").node("a"))
    (group,) = explain(engine, BIG.build()).rejections
    assert group.message == "Insufficient cpu" and group.preemption_may_help


def test_what_preemption_would_do_is_reported_and_not_done() -> None:
    low = pod("low").requests(cpu="4").node("a")
    engine = engine_of(node("a").cpu("8"), low)
    assert explain(engine, BIG.priority(10).build()).preemption == Victims("WouldEvict", 1, ("default/low",), "a")
    assert explain(engine, BIG.build()).preemption == Victims("NothingHelps")
    never = BIG.priority(10).spec(preemptionPolicy="Never")
    assert explain(engine, never.build()).preemption == Victims("NeverPreempts")
    assert engine.nodes.pod_count.tolist() == [1]


def test_gated_pod_is_not_tried() -> None:
    report = explain(engine_of(node("a")), pod("p").gate("quota").build())
    assert not report.fits
    assert report.answer == "default/p is not tried: waiting for scheduling gates: [quota]."


def test_assigned_pod_says_where_it_is() -> None:
    report = explain(engine_of(node("a")), pod("p").node("a").build())
    assert report.fits and report.assigned_to == "a"


def test_cluster_without_nodes_is_an_answer_too() -> None:
    report = explain(engine_of(), pod("p").build())
    assert report.error == "no nodes available to schedule pods"


def test_events_of_the_rejecting_plugins_and_no_others_are_reported() -> None:
    report = explain(engine_of(node("a").unschedulable()), pod("p").build())
    assert {event.plugin for event in report.retried_after} == {"NodeUnschedulable"}
    assert ("Node", ("Add", "UpdateNodeTaint")) in [(e.resource, e.actions) for e in report.retried_after]
