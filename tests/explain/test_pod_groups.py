"""A pod group is explained: who exists, who fits, what the others lack; and nothing is changed by that."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.explain.group_text import render_group
from tests.cycle.group_stage import members
from tests.explain.group_world import GroupWorld, changes


def node(name: str, cpu: int, **fields: Any) -> dict[str, Any]:
    return {"node": {"name": name, "cpu": str(cpu), **fields}}


def group(name: str, minimum: int, **fields: Any) -> dict[str, Any]:
    return {"podGroup": {"name": name, "min": minimum, **fields}}


def pod(name: str, **fields: Any) -> dict[str, Any]:
    return {"pod": {"name": name, "cpu": "1", **fields}}


RACKS = [
    node("n1", 2, labels={"rack": "r1"}),
    node("n2", 2, labels={"rack": "r2"}),
    node("n3", 1, labels={"rack": "r2"}),
]


def test_a_group_that_fits_has_its_places_and_the_rest_its_reasons() -> None:
    report = GroupWorld(*RACKS, group("g", 4), *members("g", 6)).group("g")
    assert (report.state, report.fits, report.exist, report.wait, report.fit_now) == ("Fits", True, 6, 6, 5)
    assert [place.pod for place in report.places] == [f"default/g-{number}" for number in range(5)]
    assert [(lack.pods, lack.examples) for lack in report.lacks] == [(1, ("default/g-5",))]
    assert (report.lacks[0].rejections[0].code, report.lacks[0].rejections[0].nodes) == ("Insufficient", 3)
    assert report.answer == "pod group default/g fits: 5 of 6 pods that wait would have a node."


def test_a_group_that_does_not_fit_says_how_many_would_and_what_the_rest_lacks() -> None:
    report = GroupWorld(*RACKS, group("g", 7), *members("g", 7)).group("g")
    assert (report.state, report.fits, report.fit_now, report.places) == ("Unschedulable", False, 5, ())
    assert report.lacks[0].pods == 2
    assert report.lacks[0].nearest[0].lacks[0].need == 1000
    assert report.preemption is not None and report.preemption.code == "NothingHelps"
    first = render_group(report).splitlines()[0]
    assert first == (
        "pod group default/g does not fit: 5 of 7 pods that wait would have a node; 7 are needed together: "
        "Insufficient cpu on 3 of 3 nodes."
    )


def test_the_nearest_domain_is_told_with_how_many_fit_in_each() -> None:
    report = GroupWorld(*RACKS, group("g", 4, topology="rack"), *members("g", 4)).group("g")
    assert [(domain.name, domain.nodes, domain.fits) for domain in report.domains] == [("r2", 2, 3), ("r1", 1, 2)]
    assert (report.domain, report.fit_now) == ("r2", 3)
    assert report.lacks[0].rejections[0].nodes == 2, "of the nodes of that rack only"
    assert "its pods might be on nodes with different values of rack" in changes(report)
    assert "there were one more node like n3" in changes(report)


def test_new_nodes_are_imagined_in_the_nearest_domain() -> None:
    """One kind of node in two racks: in the rack where most members fit already, the fewest are needed."""
    nodes = [node(f"n{number}", 2, labels={"rack": "r1" if number < 2 else "r2"}) for number in range(5)]
    report = GroupWorld(*nodes, group("g", 7, topology="rack"), *members("g", 7)).group("g")
    assert (report.domain, report.fit_now) == ("r2", 6)
    assert "there were one more node like n2" in changes(report)


def test_a_group_that_fits_in_one_domain_goes_there() -> None:
    report = GroupWorld(*RACKS, group("g", 3, topology="rack"), *members("g", 3)).group("g")
    assert (report.fits, report.domain) == (True, "r2")
    assert {place.node for place in report.places} == {"n2", "n3"}


def test_no_node_has_the_label() -> None:
    report = GroupWorld(node("n1", 4), group("g", 1, topology="rack"), *members("g", 1)).group("g")
    assert (report.state, report.domains, report.fit_now) == ("Unschedulable", (), 0)
    assert "its pods might be on nodes with different values of rack" in changes(report)


def test_too_few_members_are_waited_for_and_the_rest_is_imagined() -> None:
    report = GroupWorld(*RACKS, group("g", 4), *members("g", 3)).group("g")
    assert (report.state, report.fits, report.exist, report.min_count) == ("Gated", False, 3, 4)
    assert report.fits_if_complete is True
    assert [gate.code for gate in report.gates] == ["GangIncomplete"]
    assert report.answer == "pod group default/g waits for pods: 3 of 4 exist; it would fit if they were there."
    assert changes(report) == ["1 more pod like g-2 came", "its minCount were 3 instead of 4"]


def test_too_few_members_that_would_not_fit_with_the_others_either() -> None:
    report = GroupWorld(node("n1", 2), group("g", 4), *members("g", 3)).group("g")
    assert (report.state, report.fits_if_complete) == ("Gated", False)
    assert "there were one more node like n1" in changes(report)


def test_members_that_run_count() -> None:
    running = [pod(f"r-{number}", group="g", node="n1") for number in range(2)]
    report = GroupWorld(*RACKS, group("g", 3), *running, *members("g", 1)).group("g")
    assert (report.state, report.run, report.wait, report.fit_now) == ("Fits", 2, 1, 1)
    done = GroupWorld(*RACKS, group("g", 2), *running).group("g")
    assert (done.state, done.fits, done.answer) == (
        "Scheduled",
        True,
        "pod group default/g has started: all of its 2 pods have a node.",
    )


def test_the_scheduling_gate_of_one_member_is_named() -> None:
    closed = pod("closed", group="g", gates=["example.com/later"])
    report = GroupWorld(*RACKS, group("g", 2), *members("g", 1), closed).group("g")
    assert (report.state, report.fits_if_complete) == ("Gated", True)
    assert [(gate.plugin, gate.pods, gate.examples) for gate in report.gates] == [
        ("SchedulingGates", 1, ("default/closed",))
    ]
    assert report.answer.startswith("pod group default/g is not tried because of default/closed: waiting for sched")


def test_a_group_that_does_not_exist_has_pods_that_wait_for_it() -> None:
    report = GroupWorld(*RACKS, group("train", 2), *members("trian", 2)).group("trian")
    assert (report.state, report.fits, report.wait) == ("Missing", False, 2)
    assert report.answer == (
        'pod group default/trian does not exist (did you mean "default/train"?): 2 pods wait for it.'
    )


def test_a_group_without_pods() -> None:
    report = GroupWorld(*RACKS, group("g", 2)).group("g")
    assert (report.state, report.fits) == ("NoPods", False)


def test_members_that_disagree_are_no_group() -> None:
    report = GroupWorld(*RACKS, group("g", 2), *members("g", 2, priority=7)).group("g")
    assert (report.state, report.fits) == ("Invalid", False)
    assert "should have the same priority as the pod group's priority, got 7 and 0" in report.error


def test_what_preemption_would_do_is_told_and_not_done() -> None:
    low = [pod(f"low-{number}", node="n1", priority=1) for number in range(2)]
    world = GroupWorld(node("n1", 2), group("g", 2, priority=9), *low, *members("g", 2, priority=9))
    report = world.group("g")
    assert report.preemption is not None
    assert (report.preemption.code, report.preemption.count) == ("WouldEvict", 2)
    assert world.cluster.placed_count == 2


@pytest.mark.parametrize("minimum", [1, 3, 5, 8])
@pytest.mark.parametrize("topology", [{}, {"topology": "rack"}])
def test_nothing_is_changed(minimum: int, topology: dict[str, str]) -> None:
    others = [pod("low", node="n1", priority=0), pod("high", node="n2", priority=50)]
    cordoned = node("n4", 8, unschedulable=True, labels={"rack": "r4"})
    world = GroupWorld(
        *RACKS, cordoned, group("g", minimum, priority=5, **topology), *others, *members("g", 6, priority=5)
    )

    def picture() -> object:
        nodes = world.cluster.nodes
        pods = [sorted(nodes.pods_on(row)) for row in range(len(nodes))]
        return (
            list(nodes.names),
            pods,
            nodes.free("cpu").tolist(),
            world.cluster.placed_count,
            world.cluster.assumed_count,
        )

    before = picture()
    first = world.group("g")
    assert picture() == before
    assert world.group("g") == first, "asked again it says the same"


def test_the_rest_of_many_domains_and_places_is_counted() -> None:
    nodes = [node(f"n{number}", 1, labels={"rack": f"r{number:02}"}) for number in range(12)]
    report = GroupWorld(*nodes, group("g", 2, topology="rack"), *members("g", 2)).group("g")
    text = render_group(report)
    assert "... and 2 more (-o wide)" in text
    assert "r11: 1 of 2 (1 node)" in render_group(report, wide=True)
