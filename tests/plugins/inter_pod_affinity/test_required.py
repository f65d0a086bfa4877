"""Required terms: the three rules, whom they mean, and when there is nothing to check."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.api import CycleState, Reject
from pilotage.testing import PodBuilder, node, pod
from tests.plugins.inter_pod_affinity.affinity_world import (
    HOSTNAME,
    NOT_APART,
    NOT_NEAR,
    UNWELCOME,
    ZONE,
    AffinityWorld,
    Json,
    apart,
    app,
    near,
    term,
)

NODES = [node("a1").zone("a"), node("a2").zone("a"), node("b1").zone("b"), node("bare")]
WEB = app("web", "new")
DB_ON_A1 = app("db").node("a1")


def test_affinity_leaves_the_domains_that_have_such_a_pod() -> None:
    world = AffinityWorld(NODES, [DB_ON_A1])
    assert world.rejections(near(WEB, term())) == {"b1": NOT_NEAR, "bare": NOT_NEAR}
    assert world.rejections(near(WEB, term(key=HOSTNAME))) == dict.fromkeys(["a2", "b1", "bare"], NOT_NEAR)


def test_affinity_needs_one_pod_that_all_terms_mean() -> None:
    both = [term("app=db"), term("tier=gold", HOSTNAME)]
    two_pods = [DB_ON_A1, pod("gold").label("tier", "gold").node("a1")]
    assert len(AffinityWorld(NODES, two_pods).rejections(near(WEB, *both))) == 4
    one_pod = [app("db").label("tier", "gold").node("a1")]
    assert AffinityWorld(NODES, one_pod).rejections(near(WEB, *both)) == dict.fromkeys(["a2", "b1", "bare"], NOT_NEAR)


def test_anti_affinity_closes_the_domains_that_have_such_a_pod() -> None:
    world = AffinityWorld(NODES, [DB_ON_A1])
    assert world.rejections(apart(WEB, term())) == {"a1": NOT_APART, "a2": NOT_APART}


def test_each_anti_affinity_term_counts_by_itself() -> None:
    world = AffinityWorld(NODES, [DB_ON_A1, app("cache").node("b1")])
    assert world.rejections(apart(WEB, term("app=db", HOSTNAME), term("app=cache"))) == {
        "a1": NOT_APART,
        "b1": NOT_APART,
    }


def test_existing_pods_keep_out_whom_their_anti_affinity_means() -> None:
    world = AffinityWorld(NODES, [apart(app("db"), term("app=web")).node("a1")])
    assert world.rejections(WEB) == {"a1": UNWELCOME, "a2": UNWELCOME}
    assert world.skips_filter(app("batch"))


def test_affinity_is_complained_of_before_anti_affinity_and_others() -> None:
    world = AffinityWorld(NODES, [DB_ON_A1, apart(app("grump"), term("app=web", HOSTNAME)).node("b1")])
    waiting = apart(near(WEB, term("app=db")), term("app=db", HOSTNAME))
    assert world.rejections(waiting) == {"a1": NOT_APART, "b1": NOT_NEAR, "bare": NOT_NEAR}
    choosy = apart(WEB, term("app=grump"))
    assert world.rejections(choosy) == {"b1": NOT_APART}, "the own rule is named before that of others"


# --- the first of a group --------------------------------------------------------------------------------------------


def test_first_pod_of_a_group_goes_to_any_node_with_all_keys() -> None:
    world = AffinityWorld(NODES)
    assert world.rejections(near(WEB, term("app=web"))) == {"bare": NOT_NEAR}
    assert len(world.rejections(near(WEB, term("app=db")))) == 4, "it does not mean itself"
    assert len(world.rejections(near(WEB, term("app=web"), term("app=db")))) == 4, "only one term means itself"


def test_second_pod_of_a_group_goes_where_the_first_is() -> None:
    world = AffinityWorld(NODES, [app("web", "first").node("b1")])
    assert world.rejections(near(WEB, term("app=web"))) == dict.fromkeys(["a1", "a2", "bare"], NOT_NEAR)


def test_pods_in_no_domain_do_not_make_a_group() -> None:
    world = AffinityWorld(NODES, [app("web", "first").node("bare")])
    assert world.rejections(near(WEB, term("app=web"))) == {"bare": NOT_NEAR}


# --- who is meant ----------------------------------------------------------------------------------------------------

PROD, TEST = {"stage": "prod"}, {"stage": "test"}
NAMESPACES = {"default": PROD, "prod": PROD, "test": TEST}


@pytest.mark.parametrize(
    ("more", "meant"),
    [
        ({}, ["default"]),
        ({"namespaces": ["prod", "unknown"]}, ["prod", "unknown"]),
        ({"namespaceSelector": {}}, ["default", "prod", "test", "unknown"]),
        ({"namespaceSelector": {"matchLabels": PROD}}, ["default", "prod"]),
        ({"namespaceSelector": {"matchLabels": TEST}, "namespaces": ["prod"]}, ["prod", "test"]),
        ({"namespaceSelector": {"matchLabels": {"stage": "none"}}}, []),
    ],
    ids=["own", "listed", "all", "selected", "listed and selected", "none"],
)
def test_namespaces_of_the_pods_that_are_meant(more: dict[str, Any], meant: list[str]) -> None:
    names = ["default", "prod", "test", "unknown"]
    pods = [app("db", f"in-{name}").namespace(name).node(name) for name in names]
    world = AffinityWorld([node(name) for name in names], pods, namespaces=NAMESPACES)
    assert list(world.rejections(apart(WEB, term(key=HOSTNAME, **more)))) == meant
    assert [n for n in names if n not in world.rejections(near(WEB, term(key=HOSTNAME, **more)))] == meant


@pytest.mark.parametrize(
    ("more", "kept_out"),
    [
        ({}, ["default"]),
        ({"namespaces": ["prod"]}, ["prod"]),
        ({"namespaceSelector": {}}, ["default", "prod", "test", "unknown"]),
        ({"namespaceSelector": {"matchLabels": PROD}}, ["default", "prod"]),
        ({"namespaceSelector": {"matchExpressions": [{"key": "stage", "operator": "DoesNotExist"}]}}, ["unknown"]),
    ],
    ids=["own", "listed", "all", "selected", "selected by absence"],
)
def test_namespaces_from_which_existing_pods_keep_others_out(more: dict[str, Any], kept_out: list[str]) -> None:
    """A namespace that nobody knows has no labels."""
    world = AffinityWorld(NODES, [apart(app("db"), term("app=web", **more)).node("a1")], namespaces=NAMESPACES)
    found = [n for n in (*NAMESPACES, "unknown") if world.rejections(WEB.namespace(n))]
    assert found == kept_out


def test_relabelled_namespace_counts_with_its_new_labels() -> None:
    world = AffinityWorld(NODES, [app("db").namespace("test").node("a1")], namespaces=NAMESPACES)
    world.place(apart(app("shy").namespace("prod"), term("app=web", namespaceSelector={"matchLabels": TEST})), "b1")
    waiting = apart(WEB, term(key=HOSTNAME, namespaceSelector={"matchLabels": PROD}))
    assert world.rejections(waiting) == {}
    world.put_namespace("test", PROD)
    world.put_namespace("default", TEST)
    assert world.rejections(waiting) == {"a1": NOT_APART, "b1": UNWELCOME}


SELECTORS: list[tuple[Json | None, bool]] = [
    (None, False),
    ({}, True),
    ({"matchLabels": {"app": "db"}}, True),
    ({"matchLabels": {"app": "db", "tier": "gold"}}, False),
    ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "db"]}]}, True),
    ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}, False),
    ({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["gold"]}]}, True),
    ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
    ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
]


@pytest.mark.parametrize(("selector", "matches"), SELECTORS)
def test_selectors_in_both_directions(selector: Json | None, matches: bool) -> None:
    own = AffinityWorld([node("n")], [app("db").node("n")])
    assert bool(own.rejections(apart(WEB, term(selector, HOSTNAME)))) == matches
    theirs = AffinityWorld([node("n")], [apart(app("x"), term(selector, HOSTNAME)).node("n")])
    assert bool(theirs.rejections(app("db"))) == matches


def test_terminating_pods_count_until_they_are_gone() -> None:
    world = AffinityWorld(NODES, [app("db").terminating().node("a1")])
    assert world.rejections(apart(WEB, term(key=HOSTNAME))) == {"a1": NOT_APART}


def test_pods_on_unknown_nodes_count_when_the_node_comes() -> None:
    world = AffinityWorld(NODES, [apart(app("db"), term("app=web")).node("c1")])
    assert world.rejections(apart(WEB, term())) == {}
    world.cluster.put_node(node("c1").zone("c").build())
    assert world.rejections(apart(WEB, term())) == {"c1": NOT_APART}
    assert world.rejections(WEB) == {"c1": UNWELCOME}


def test_a_node_that_moves_takes_its_pods_along() -> None:
    world = AffinityWorld(NODES, [apart(app("db"), term("app=web")).node("a1")])
    asked: list[PodBuilder] = [WEB, apart(WEB, term())]
    assert [list(world.rejections(waiting)) for waiting in asked] == [["a1", "a2"]] * 2
    world.cluster.put_node(node("a1").zone("b").build())
    assert [list(world.rejections(waiting)) for waiting in asked] == [["a1", "b1"]] * 2
    world.cluster.remove_node("a1")
    assert [world.rejections(waiting) for waiting in asked] == [{}, {}]


# --- what is remembered between pods ---------------------------------------------------------------------------------


def test_pods_that_come_and_go_between_two_pods_of_a_workload_count() -> None:
    world = AffinityWorld(NODES, [app("db", "first").node("b1")])
    waiting = apart(WEB, term())
    assert list(world.rejections(waiting)) == ["b1"]
    world.place(app("db", "second"), "a1")
    world.place(app("db", "third"), "bare")
    assert list(world.rejections(waiting)) == ["a1", "a2", "b1"], "a pod in no domain closes none"
    world.cluster.remove_pod(app("db", "first").build().uid)
    world.cluster.remove_pod(app("db", "third").build().uid)
    assert list(world.rejections(waiting)) == ["a1", "a2"]


def test_terms_that_come_and_go_between_two_pods_of_a_workload_count() -> None:
    world = AffinityWorld(NODES, [apart(app("db"), term("app=other")).node("b1")])
    assert world.rejections(WEB) == {}
    grump = apart(app("grump"), term("app=web", HOSTNAME))
    world.place(grump, "a1")
    assert list(world.rejections(WEB)) == ["a1"]
    world.place(apart(app("snob"), term("app=web", HOSTNAME), term("app=web")), "b1")
    assert list(world.rejections(WEB)) == ["a1", "b1"]
    world.cluster.remove_pod(grump.build().uid)
    assert list(world.rejections(WEB)) == ["b1"]
    world.check()


# --- nothing to check ------------------------------------------------------------------------------------------------


def test_pods_without_terms_skip_the_filter_unless_someone_minds_them() -> None:
    grump = apart(app("db"), term("app=web"))
    world = AffinityWorld(NODES, [grump.node("bare"), near(app("db", "other"), term("app=web")).node("a1")])
    assert world.skips_filter(WEB), "the node of the only pod that minds it has no zone"
    world.place(grump, "a2")
    assert not world.skips_filter(WEB)
    assert world.skips_filter(app("other"))
    assert not world.skips_filter(apart(app("other"), term("app=nobody")))


# --- malformed terms -------------------------------------------------------------------------------------------------

BAD: Json = {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["x"]}]}


def test_malformed_terms_reject_the_pod_for_good() -> None:
    world = AffinityWorld(NODES)
    answer = world.plugin.pre_filter(CycleState(), near(WEB, term(BAD)).build(), world.cluster.nodes)
    assert isinstance(answer, Reject) and answer.unresolvable
    problem = 'requiredAffinityTerms: "Near" is not a valid label selector operator'
    assert answer.reasons[0].message == f"parsing pod: {problem}"
    twice = apart(near(WEB, term(BAD)), term(namespaceSelector=BAD, key=ZONE))
    answer = world.plugin.pre_filter(CycleState(), twice.build(), world.cluster.nodes)
    assert isinstance(answer, Reject)
    assert answer.reasons[0].message == f"parsing pod: [{problem}, {problem.replace('Affinity', 'AntiAffinity')}]"


def test_a_malformed_term_of_an_existing_pod_voids_the_list_it_is_in_and_no_other() -> None:
    spoilt = near(apart(app("db"), term("app=web"), term(BAD)), term("app=web"))
    world = AffinityWorld(NODES, [spoilt.node("a1")])
    assert world.rejections(WEB) == {}
    assert world.raw(WEB) == {"a1": 1, "a2": 1, "b1": 0, "bare": 0}
