"""Every advice for a group was tried out: with the change made for good, the group fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pilotage.explain.report import Advice
from tests.cycle.group_stage import members
from tests.explain.group_world import GroupWorld

RACKS: list[Mapping[str, Any]] = [
    {"node": {"name": "n1", "cpu": "2", "labels": {"rack": "r1"}}},
    {"node": {"name": "n2", "cpu": "3", "labels": {"rack": "r2"}}},
    {"node": {"name": "n3", "cpu": "8", "labels": {"rack": "r3"}, "unschedulable": True}},
    {"node": {"name": "n4", "cpu": "8", "labels": {"rack": "r4"}, "taints": ["gpu=a:NoSchedule"]}},
    {"pod": {"name": "old", "cpu": "1", "node": "n2", "priority": 10}},
]


def world(count: int, cpu: str = "1", extra: list[Mapping[str, Any]] | None = None, **group: Any) -> GroupWorld:
    fields = {"name": "g", "min": count, **group}
    pods = [{"pod": {**pod["pod"], "cpu": cpu}} for pod in members("g", count)]
    return GroupWorld(*RACKS, *(extra or ()), {"podGroup": fields}, *pods)


def advice(found: GroupWorld) -> dict[str, Advice]:
    return {one.code: one for one in found.group("g").would_fit_if}


def test_fewer_members() -> None:
    assert advice(world(5))["SmallerMinCount"].min_count == 4
    assert world(5, min=4).group("g").fits


@pytest.mark.parametrize("topology", [{}, {"topology": "rack"}])
def test_a_smaller_request_is_the_largest_that_will_do(topology: dict[str, str]) -> None:
    one = advice(world(3, cpu="2", **topology))["SmallerRequest"]
    assert one.resource == "cpu" and one.asked == 2000 and one.enough is not None
    assert world(3, cpu=f"{int(one.enough)}m", **topology).group("g").fits
    assert not world(3, cpu=f"{int(one.enough) + 100}m", **topology).group("g").fits


def test_as_many_more_nodes_as_are_needed_and_not_one_more() -> None:
    one = next(one for one in world(12).group("g").would_fit_if if one.code == "MoreNodes" and one.like == "n1")
    assert one.change == "there were 4 more nodes like n1"

    def with_more(count: int) -> bool:
        more = [{"node": {"name": f"more-{number}", "cpu": "2"}} for number in range(count)]
        return world(12, extra=more).group("g").fits

    assert with_more(one.count) and not with_more(one.count - 1)


def test_a_node_that_is_uncordoned_and_a_taint_that_is_tolerated() -> None:
    found = advice(world(5))
    assert found["NodeUncordoned"].node == "n3"
    assert found["Toleration"].taint == "gpu=a:NoSchedule"


def test_more_than_one_domain() -> None:
    assert "WithoutTopology" in advice(world(4, topology="rack"))
    assert world(4).group("g").fits


def test_a_higher_priority_names_who_would_go() -> None:
    one = advice(world(5))["HigherPriority"]
    assert (one.above_priority, one.victims) == (10, ("default/old",))


def test_a_cluster_that_others_use_is_not_given_nodes() -> None:
    found = world(5).group("g", may_add_nodes=False)
    assert found.would_fit_if
    assert not {"MoreNodes", "NodeUncordoned"} & {one.code for one in found.would_fit_if}
