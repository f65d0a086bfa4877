"""Hard constraints: a pod goes only where it does not make one domain too much fuller than the emptiest."""

from __future__ import annotations

import pytest

from pilotage.api import CycleState
from pilotage.testing import node, pod
from tests.plugins.pod_topology_spread.spread_world import (
    HOSTNAME,
    NO_LABEL,
    SOFT,
    TOO_MANY,
    ZONE,
    Json,
    SpreadWorld,
    blues,
    rule,
    spread,
)

ZONED = [node("a1").zone("a"), node("a2").zone("a"), node("b1").zone("b"), node("c1").zone("c")]


def rejected(world: SpreadWorld, *rules: Json, **options: str) -> list[str]:
    return sorted(world.rejections(spread(*rules, **options)))


@pytest.mark.parametrize(
    ("there", "skew", "expected"),
    [
        ({}, 1, []),
        ({"a1": 1}, 1, ["a1", "a2"]),
        ({"a1": 1}, 2, []),
        ({"a1": 1, "a2": 1, "b1": 1}, 2, ["a1", "a2"]),
        ({"a1": 1, "b1": 1, "c1": 1}, 1, []),
        ({"a1": 4, "b1": 2, "c1": 3}, 2, ["a1", "a2"]),
    ],
    ids=["empty", "one ahead", "larger skew", "nodes of a zone add up", "even", "least is not 0"],
)
def test_a_domain_may_be_ahead_of_the_emptiest_by_the_skew(
    there: dict[str, int], skew: int, expected: list[str]
) -> None:
    assert rejected(SpreadWorld(ZONED, blues(**there)), rule(skew=skew)) == expected


def test_the_reason_is_kube_schedulers() -> None:
    assert SpreadWorld(ZONED, blues(c1=1)).rejections(spread(rule())) == {"c1": TOO_MANY}


def test_a_pod_that_does_not_match_its_own_selector_does_not_count_itself() -> None:
    world = SpreadWorld(ZONED, blues(a1=1))
    assert rejected(world, rule(), color="red") == []
    assert rejected(SpreadWorld(ZONED, blues(a1=2)), rule(), color="red") == ["a1", "a2"]


def test_only_like_pods_of_the_namespace_that_stay_are_counted() -> None:
    others = [
        pod("red").label("color", "red").node("a1"),
        pod("elsewhere").label("color", "blue").namespace("other").node("a1"),
        pod("leaving").label("color", "blue").terminating().node("a1"),
        pod("bare").node("a1"),
    ]
    assert rejected(SpreadWorld(ZONED, others), rule()) == []


def test_nodes_without_the_label_are_rejected_for_good_and_do_not_count() -> None:
    world = SpreadWorld([*ZONED, node("x")], blues(x=7, b1=1))
    assert world.rejections(spread(rule())) == {"b1": TOO_MANY, "x": NO_LABEL}


def test_a_node_must_have_all_keys_to_be_counted_for_any() -> None:
    """Zone c is known to the first constraint only through a node that lacks the second key."""
    nodes = [node("a").zone("a").label("rack", "1"), node("b").zone("b").label("rack", "2"), node("c").zone("c")]
    world = SpreadWorld(nodes, blues(a=1, b=1, c=5))
    rules = (rule(), rule(key="rack"))
    assert world.rejections(spread(*rules)) == {"c": NO_LABEL}
    assert world.rejections(spread(rule())) == {"c": TOO_MANY}


def test_the_first_broken_constraint_is_reported() -> None:
    nodes = [node("a").zone("a").label("rack", "1"), node("b").zone("b"), node("c").zone("c").label("rack", "2")]
    world = SpreadWorld(nodes, blues(a=1))
    assert world.rejections(spread(rule(), rule(key="rack"))) == {"a": TOO_MANY, "b": NO_LABEL}


def test_all_constraints_must_hold() -> None:
    nodes = [node(f"{zone}{number}").zone(zone) for zone in "ab" for number in (1, 2)]
    world = SpreadWorld(nodes, blues(a1=1, b1=1, b2=1))
    assert rejected(world, rule(), rule(key=HOSTNAME)) == ["a1", "b1", "b2"]


@pytest.mark.parametrize(
    ("domains", "expected"), [(None, []), (3, []), (4, ["a1", "a2", "b1", "c1"])], ids=["none", "enough", "too few"]
)
def test_fewer_domains_than_wanted_make_the_emptiest_count_as_empty(domains: int | None, expected: list[str]) -> None:
    world = SpreadWorld(ZONED, blues(a1=1, b1=1, c1=1))
    assert rejected(world, rule(minDomains=domains)) == expected


def test_nodes_that_the_pod_may_not_use_are_not_counted_unless_told_so() -> None:
    nodes = [node("a").zone("a").label("disk", "ssd"), node("b").zone("b").label("disk", "ssd"), node("c").zone("c")]
    world = SpreadWorld(nodes, blues(a=1, b=1))
    choosy = spread(rule()).node_selector(disk="ssd")
    assert world.rejections(choosy) == {}
    careless = spread(rule(nodeAffinityPolicy="Ignore")).node_selector(disk="ssd")
    assert world.rejections(careless) == {"a": TOO_MANY, "b": TOO_MANY}
    by_affinity = spread(rule()).node_affinity_in("disk", ["ssd"])
    assert world.rejections(by_affinity) == {}


def test_tainted_nodes_are_counted_unless_told_otherwise() -> None:
    nodes = [node("a").zone("a"), node("b").zone("b").taint("gpu", "NoSchedule")]
    world = SpreadWorld(nodes, blues(a=1))
    assert world.rejections(spread(rule())) == {"a": TOO_MANY}
    honest = spread(rule(nodeTaintsPolicy="Honor"))
    assert world.rejections(honest) == {}
    assert world.rejections(honest.tolerate("gpu")) == {"a": TOO_MANY}


def test_a_domain_of_nodes_that_do_not_count_has_no_pods() -> None:
    nodes = [node("a").zone("a").label("disk", "ssd"), node("b").zone("b")]
    world = SpreadWorld(nodes, blues(a=1, b=9))
    assert world.rejections(spread(rule()).node_selector(disk="ssd")) == {}


def test_labels_named_by_match_label_keys_are_those_of_the_pod() -> None:
    pods = [*blues(a1=1), pod("old").label("color", "blue").label("hash", "1").node("b1")]
    world = SpreadWorld(ZONED, pods)
    versioned = spread(rule(matchLabelKeys=["hash", "absent"])).label("hash", "1")
    assert sorted(world.rejections(versioned)) == ["b1"]
    assert sorted(world.rejections(versioned.label("hash", "2"))) == []


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, []),
        ({}, []),
        ({"matchExpressions": [{"key": "color", "operator": "In", "values": ["blue", "red"]}]}, ["a1", "a2"]),
        ({"matchExpressions": [{"key": "color", "operator": "DoesNotExist"}]}, []),
    ],
    ids=["none", "empty counts nobody", "expression", "expression that excludes all"],
)
def test_which_pods_a_selector_counts(selector: Json | None, expected: list[str]) -> None:
    assert rejected(SpreadWorld(ZONED, blues(a1=1)), rule(selector=selector)) == expected


def test_an_empty_selector_counts_the_pod_itself() -> None:
    """With minDomains out of reach the pod alone is 1 more than the imagined emptiest domain."""
    world = SpreadWorld(ZONED)
    assert len(rejected(world, rule(selector={}, minDomains=9))) == 0
    assert len(rejected(world, rule(selector={}, minDomains=9, skew=0))) == 4
    assert len(rejected(world, rule(selector=None, minDomains=9, skew=0))) == 0


def test_a_malformed_selector_is_an_error_of_this_pod_alone() -> None:
    world = SpreadWorld(ZONED)
    broken = rule(selector={"matchExpressions": [{"key": "color", "operator": "In"}]})
    with pytest.raises(ValueError, match='obtaining pod\'s hard topology spread constraints: key "color"'):
        world.rejections(spread(broken))
    assert world.rejections(spread(rule())) == {}
    soft = spread({**broken, "whenUnsatisfiable": SOFT})
    assert world.skips_filter(soft)
    with pytest.raises(ValueError, match="obtaining pod's soft"):
        world.plugin.pre_score(CycleState(), soft.build(), world.cluster.nodes)


def test_pods_without_hard_constraints_are_skipped() -> None:
    world = SpreadWorld(ZONED)
    assert world.skips_filter(pod("p"))
    assert world.skips_filter(spread(rule(when=SOFT)))
    assert not world.skips_filter(spread(rule()))


def test_what_was_learned_of_the_nodes_follows_them() -> None:
    """Domains are remembered between pods; every change of the nodes must show."""
    world = SpreadWorld(ZONED, blues(a1=1, b1=1, c1=1))
    assert rejected(world, rule()) == []
    world.cluster.put_node(node("d1").zone("d").build())
    assert rejected(world, rule()) == ["a1", "a2", "b1", "c1"]
    world.cluster.put_node(node("d1").zone("c").build())
    assert rejected(world, rule()) == []
    world.cluster.put_node(node("d1").build())
    assert world.rejections(spread(rule())) == {"d1": NO_LABEL}
    world.cluster.remove_node("a1")
    assert rejected(world, rule()) == ["b1", "c1", "d1"]
    honest = rule(nodeTaintsPolicy="Honor")
    assert rejected(world, honest) == ["b1", "c1", "d1"]
    world.cluster.put_node(node("a2").zone("a").taint("gpu", "NoSchedule").build())
    assert rejected(world, honest) == ["d1"]


def test_pods_are_distinguished_by_labels_namespace_and_spec() -> None:
    world = SpreadWorld(ZONED, [*blues(a1=1), pod("q").label("color", "red").namespace("other").node("b1")])
    assert rejected(world, rule()) == ["a1", "a2"]
    red = {"matchLabels": {"color": "red"}}
    assert rejected(world, rule(selector=red), color="red") == []
    assert sorted(world.rejections(spread(rule(selector=red), color="red").namespace("other"))) == ["b1"]
    assert rejected(world, rule(), color="red") == []


def test_the_key_of_the_constraint_decides_the_domains() -> None:
    world = SpreadWorld(ZONED, blues(a1=1))
    assert rejected(world, rule(key=HOSTNAME)) == ["a1"]
    assert rejected(world, rule(key=ZONE)) == ["a1", "a2"]
