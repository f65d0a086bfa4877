"""Preferred terms: what draws a pod where, and how the scores are brought to 0..100."""

from __future__ import annotations

from pilotage.plugins.args import InterPodAffinityArgs
from pilotage.testing import node
from tests.plugins.inter_pod_affinity.affinity_world import (
    HOSTNAME,
    AffinityWorld,
    apart,
    app,
    near,
    rather_apart,
    rather_near,
    term,
)

NODES = [node("a1").zone("a"), node("a2").zone("a"), node("b1").zone("b"), node("bare")]
WEB = app("web", "new")
DBS = [app("db", "one").node("a1"), app("db", "two").node("a2"), app("db", "three").node("b1")]


def test_every_pod_that_is_liked_adds_the_weight_in_its_domain() -> None:
    world = AffinityWorld(NODES, DBS)
    assert world.raw(rather_near(WEB, term(), weight=10)) == {"a1": 20, "a2": 20, "b1": 10, "bare": 0}
    assert world.raw(rather_apart(WEB, term(key=HOSTNAME), weight=3)) == {"a1": -3, "a2": -3, "b1": -3, "bare": 0}


def test_likes_and_dislikes_add_up_over_terms_and_keys() -> None:
    world = AffinityWorld(NODES, [*DBS, app("cache").node("b1")])
    waiting = rather_near(WEB, term("app=db"), term("app=cache", HOSTNAME), weight=5)
    waiting = rather_apart(waiting, term("app=cache"), weight=20)
    assert world.raw(waiting) == {"a1": 10, "a2": 10, "b1": 5 + 5 - 20, "bare": 0}


def test_existing_pods_have_likes_and_dislikes_too() -> None:
    fans = [
        rather_near(app("fan"), term("app=web"), weight=7).node("a1"),
        rather_apart(app("foe"), term("app=web", HOSTNAME), weight=2).node("a2"),
    ]
    assert AffinityWorld(NODES, fans).raw(WEB) == {"a1": 7, "a2": 5, "b1": 0, "bare": 0}


def test_required_affinity_of_existing_pods_counts_with_the_configured_weight() -> None:
    pods = [near(app("fan"), term("app=web")).node("a1"), apart(app("foe"), term("app=web")).node("b1")]
    assert AffinityWorld(NODES, pods).raw(WEB) == {"a1": 1, "a2": 1, "b1": 0, "bare": 0}
    heavy = AffinityWorld(NODES, pods, InterPodAffinityArgs(hard_pod_affinity_weight=50))
    assert heavy.raw(WEB) == {"a1": 50, "a2": 50, "b1": 0, "bare": 0}
    weightless = AffinityWorld(NODES, pods, InterPodAffinityArgs(hard_pod_affinity_weight=0))
    assert weightless.raw(WEB) is None


def test_two_profiles_may_weigh_the_same_pods_differently() -> None:
    world = AffinityWorld(NODES, [near(app("fan"), term("app=web")).node("a1")])
    other = AffinityWorld([], args=InterPodAffinityArgs(hard_pod_affinity_weight=9), cluster=world.cluster)
    for _ in range(2):
        assert world.raw(WEB) == {"a1": 1, "a2": 1, "b1": 0, "bare": 0}
        assert other.raw(WEB) == {"a1": 9, "a2": 9, "b1": 0, "bare": 0}
        world.place(app("elsewhere"), "b1")


def test_likes_of_existing_pods_can_be_ignored_for_pods_that_have_none() -> None:
    args = InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True)
    world = AffinityWorld(NODES, [rather_near(app("fan"), term("app=web"), weight=7).node("a1"), *DBS], args)
    assert world.raw(WEB) is None
    assert world.raw(near(WEB, term())) is None
    assert world.raw(rather_near(WEB, term("app=db", HOSTNAME))) == {"a1": 8, "a2": 8, "b1": 1, "bare": 0}


def test_without_anyone_to_like_or_be_liked_by_there_is_no_score() -> None:
    world = AffinityWorld(NODES, [app("db").node("bare"), rather_near(app("fan"), term("app=web")).node("bare")])
    assert world.raw(WEB) is None
    assert world.raw(rather_near(WEB, term("app=db"))) is None, "the node is in no zone"
    assert world.raw(rather_near(WEB, term("app=nobody"))) is None
    assert AffinityWorld(NODES).raw(WEB) is None


def test_likes_that_cancel_each_other_are_a_score_all_the_same() -> None:
    waiting = rather_apart(rather_near(WEB, term(), weight=4), term(), weight=4)
    assert AffinityWorld(NODES, DBS).scores(waiting) == dict.fromkeys(["a1", "a2", "b1", "bare"], (0, 0))


def test_scores_are_stretched_between_the_lowest_and_the_highest() -> None:
    world = AffinityWorld(NODES, DBS)
    waiting = rather_near(WEB, term(), weight=10)
    assert world.scores(waiting) == {"a1": (20, 100), "a2": (20, 100), "b1": (10, 50), "bare": (0, 0)}
    assert world.scores(waiting, ["a1", "b1"]) == {"a1": (20, 100), "b1": (10, 0)}
    assert world.scores(waiting, ["a1", "a2"]) == {"a1": (20, 0), "a2": (20, 0)}
    assert world.scores(rather_apart(WEB, term(key=HOSTNAME)), ["a1", "bare"]) == {"a1": (-1, 0), "bare": (0, 100)}


def test_fractions_are_cut_off_as_floating_point_leaves_them() -> None:
    """29 of 100 is 28.999999999999996 percent."""
    pods = [app("db", f"p{n}").node("m" if n < 29 else "n") for n in range(129)]
    world = AffinityWorld([node("l"), node("m"), node("n")], pods)
    assert world.scores(rather_near(WEB, term(key=HOSTNAME))) == {"l": (0, 0), "m": (29, 28), "n": (100, 100)}


def test_a_pod_that_left_is_not_liked_any_more() -> None:
    fan = rather_near(app("fan"), term("app=web"), weight=7)
    world = AffinityWorld(NODES, [fan.node("a1"), *DBS])
    waiting = rather_near(WEB, term(key=HOSTNAME))
    assert world.raw(waiting) == {"a1": 8, "a2": 8, "b1": 1, "bare": 0}
    world.cluster.remove_pod(DBS[0].build().uid)
    assert world.raw(waiting) == {"a1": 7, "a2": 8, "b1": 1, "bare": 0}
    world.cluster.remove_pod(fan.build().uid)
    assert world.raw(waiting) == {"a1": 0, "a2": 1, "b1": 1, "bare": 0}
    world.place(fan, "b1")
    assert world.raw(waiting) == {"a1": 0, "a2": 1, "b1": 8, "bare": 0}
    world.check()
