"""Victims by a policy of a plugin's own: who may go, who is spared, which node is best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.api import Pod, VictimPolicy
from pilotage.framework.preemption.walk import Walk
from pilotage.testing import node, pod
from tests.framework.preemption.preemption_world import PreemptionWorld, budget


class EqualPriority(VictimPolicy):
    """Pods of the same priority may go too, if they say so."""

    def may_evict(self, pod: Pod, victim: Pod) -> bool:
        return victim.priority < pod.priority or victim.labels.get("spot") == "yes"


class Cheapest(EqualPriority):
    """What it costs is written on the pods."""

    def importance(self, victim: Pod) -> tuple[float, ...]:
        return (-float(victim.labels.get("cost", "1")),)

    def cost(self, pod: Pod, victims: Sequence[Pod], violations: int) -> tuple[float, ...]:
        return (sum(float(victim.labels.get("cost", "1")) for victim in victims),)


def searched(world: PreemptionWorld, asked: Pod, policy: VictimPolicy) -> Walk:
    state, rows = world._rejected(asked)
    return world.engine.preemption.search(state, asked, rows, len(rows) + 1, policy)


def victims(walk: Walk) -> dict[str, list[str]]:
    return {found.node_name: [victim.name for victim in found.victims] for found in walk.candidates}


def test_pods_of_the_same_priority_may_go() -> None:
    world = PreemptionWorld(
        node("a").cpu(2),
        node("b").cpu(2),
        pod("spot").node("a").requests(cpu=2).priority(5).label("spot", "yes"),
        pod("firm").node("b").requests(cpu=2).priority(5),
    )
    asked = pod("new").priority(5).requests(cpu=1).build()
    assert world.victims(pod("new").priority(5).requests(cpu=1)) == {}
    walk = searched(world, asked, EqualPriority())
    assert victims(walk) == {"a": ["spot"]}
    assert walk.rejections()["b"][1].reasons[0].code == "NoVictims"


def test_the_policy_orders_victims_and_compares_nodes() -> None:
    world = PreemptionWorld(
        node("a").cpu(2),
        node("b").cpu(2),
        pod("dear").node("a").requests(cpu=1).label("spot", "yes").label("cost", "9"),
        pod("cheap").node("a").requests(cpu=1).label("spot", "yes").label("cost", "2"),
        pod("one").node("b").requests(cpu=2).label("spot", "yes").label("cost", "1"),
    )
    walk = searched(world, pod("new").requests(cpu=1).build(), Cheapest())
    assert victims(walk) == {"a": ["cheap"], "b": ["one"]}, "the dear one is spared"
    assert walk.best is not None and (walk.best.node_name, walk.best.cost) == ("b", (1.0,))


def test_budgets_protect_from_a_policy_too() -> None:
    world = PreemptionWorld(
        node("a").cpu(2),
        pod("guarded").node("a").requests(cpu=1).label("spot", "yes").label("app", "db").label("cost", "1"),
        pod("plain").node("a").requests(cpu=1).label("spot", "yes").label("cost", "5"),
        budget("db", 0, app="db"),  # type: ignore[arg-type]
    )
    walk = searched(world, pod("new").requests(cpu=1).build(), Cheapest())
    assert victims(walk) == {"a": ["plain"]}
    walk = searched(world, pod("new").requests(cpu=2).build(), Cheapest())
    assert walk.best is not None and walk.best.violations == 1


def test_nothing_that_a_policy_found_is_remembered_for_others() -> None:
    world = PreemptionWorld(node("a").cpu(2), pod("spot").node("a").requests(cpu=2).label("spot", "yes"))
    asked = pod("new").requests(cpu=1).build()
    assert victims(searched(world, asked, EqualPriority())) == {"a": ["spot"]}
    assert world.search(asked).candidates == []


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        ("may_evict", "yes", "may_evict must answer True or False, got 'yes'"),
        ("importance", None, "importance must answer a tuple of numbers, got None"),
        ("importance", ("a",), "importance must answer a tuple of numbers"),
        ("cost", 5, "cost must answer a tuple of numbers, got 5"),
        ("cost", (float("nan"),), "cost must answer a tuple of numbers"),
    ],
)
def test_a_wrong_answer_of_a_policy_is_an_error_that_names_it(method: str, answer: Any, message: str) -> None:
    broken: Any = type("Broken", (VictimPolicy,), {method: lambda self, *given: answer})
    world = PreemptionWorld(node("a").cpu(2), pod("low").node("a").requests(cpu=2))
    with pytest.raises(TypeError, match=f"Broken.{message}"):
        searched(world, pod("new").priority(5).requests(cpu=1).build(), broken())


@settings(max_examples=40, deadline=None)
@given(
    there=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.integers(0, 3)), max_size=8),
    cpu=st.integers(0, 4),
    priority=st.integers(0, 3),
)
def test_kube_schedulers_policy_finds_what_the_default_search_finds(
    there: list[tuple[str, int, int]], cpu: int, priority: int
) -> None:
    pods = [pod(f"p{at}").node(where).requests(cpu=c).priority(p) for at, (where, c, p) in enumerate(there)]
    world = PreemptionWorld(node("a").cpu(3), node("b").cpu(4), *pods)
    asked = pod("new").requests(cpu=cpu).priority(priority).build()
    by_default, by_policy = world.search(asked), searched(world, asked, VictimPolicy())
    assert victims(by_default) == victims(by_policy)
    assert [c.cost for c in by_default.candidates] == [c.cost for c in by_policy.candidates]
    assert by_default.message() == by_policy.message()
    assert np.array_equal(by_default._candidate_rows, by_policy._candidate_rows)
