"""Dry runs: pods imagined on a node, or away from it, change the verdict there and nothing else."""

from __future__ import annotations

from pilotage.testing import node
from tests.plugins.inter_pod_affinity.affinity_world import (
    HOSTNAME,
    NOT_APART,
    NOT_NEAR,
    UNWELCOME,
    AffinityWorld,
    apart,
    app,
    near,
    term,
)

NODES = [node("a1").zone("a"), node("a2").zone("a"), node("b1").zone("b")]
WEB = app("web", "new")
DB = app("db").node("a1")


def test_an_imagined_pod_is_near_enough() -> None:
    waiting = near(WEB, term())
    world = AffinityWorld(NODES, [DB])
    assert world.imagine(waiting, "b1").rejection == NOT_NEAR
    assert world.imagine(waiting, "b1").add(app("db", "more")).rejection == ""
    assert world.imagine(waiting, "b1").add(app("other")).rejection == NOT_NEAR


def test_without_the_pod_that_it_wants_to_be_near_to_the_domain_is_closed() -> None:
    world = AffinityWorld(NODES, [DB])
    assert world.imagine(near(WEB, term()), "a1").remove(DB).rejection == NOT_NEAR
    assert world.imagine(near(WEB, term()), "a2").remove(DB).rejection == NOT_NEAR


def test_without_the_only_other_pod_of_its_group_it_is_the_first() -> None:
    first = app("web", "first").node("a1")
    waiting = near(WEB, term("app=web"))
    world = AffinityWorld(NODES, [first])
    assert world.imagine(waiting, "b1").rejection == NOT_NEAR
    assert world.imagine(waiting, "a1").remove(first).rejection == ""
    assert world.imagine(waiting, "a1").remove(first).add(first).rejection == ""


def test_anti_affinity_minds_imagined_pods_and_forgets_removed_ones() -> None:
    world = AffinityWorld(NODES, [DB])
    waiting = apart(WEB, term("app=db"), term("app=db", HOSTNAME))
    assert world.imagine(waiting, "a1").rejection == NOT_APART
    assert world.imagine(waiting, "a1").remove(DB).rejection == ""
    assert world.imagine(waiting, "b1").add(app("db", "more")).rejection == NOT_APART
    assert world.imagine(waiting, "b1").add(app("db", "more")).remove(app("db", "more")).rejection == ""


def test_pods_that_mind_the_pod_come_and_go() -> None:
    grump = apart(app("grump"), term("app=web")).node("a1")
    world = AffinityWorld(NODES, [grump])
    assert world.imagine(WEB, "a2").rejection == UNWELCOME
    assert world.imagine(WEB, "a1").remove(grump).rejection == ""
    assert world.imagine(WEB, "b1").add(apart(app("other"), term("app=web", HOSTNAME))).rejection == UNWELCOME
    assert world.imagine(WEB, "b1").add(apart(app("other"), term("app=db", HOSTNAME))).rejection == ""


def test_clones_do_not_see_each_other() -> None:
    waiting = near(apart(WEB, term("app=foe", HOSTNAME)), term("app=db"))
    world = AffinityWorld(NODES, [DB])
    quiet = world.imagine(waiting, "b1")
    friendly = quiet.clone().add(app("db", "more"))
    crowded = friendly.clone().add(app("foe"))
    watched = friendly.clone().add(apart(app("other"), term("app=web")))
    assert [run.rejection for run in (quiet, friendly, crowded, watched)] == [NOT_NEAR, "", NOT_APART, UNWELCOME]
    assert world.rejections(waiting) == {"b1": NOT_NEAR}
