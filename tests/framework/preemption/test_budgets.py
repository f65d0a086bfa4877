"""Whom disruption budgets protect from eviction."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from pilotage.framework.preemption.budgets import DisruptionBudgets
from pilotage.model import Pod
from pilotage.testing import pod
from tests.framework.preemption.preemption_world import budget


def web(number: int, **labels: str) -> Pod:
    builder = pod(f"web-{number}").label("app", "web")
    for key, value in labels.items():
        builder = builder.label(key, value)
    return builder.build()


WEB = [web(number) for number in range(4)]


def budgets(*objects: Any) -> DisruptionBudgets:
    index = DisruptionBudgets()
    for obj in objects:
        index.object_put("PodDisruptionBudget", None, obj)
    return index


def protected(pods: list[Pod], *objects: Any) -> list[str]:
    uids = budgets(*objects).protected(pods)
    return [p.name for p in pods if p.uid in uids]


@pytest.mark.parametrize(
    ("allowed", "names"), [(0, ["web-0", "web-1", "web-2", "web-3"]), (3, ["web-3"]), (4, []), (9, [])]
)
def test_so_many_may_go_as_the_budget_allows(allowed: int, names: list[str]) -> None:
    assert protected(WEB, budget("b", allowed, app="web")) == names


def test_without_budgets_no_one_is_protected() -> None:
    assert protected(WEB) == []


@pytest.mark.parametrize(
    "other",
    [
        budget("empty", 0),
        budget("elsewhere", 0, namespace="other", app="web"),
        budget("others", 0, app="db"),
    ],
)
def test_a_budget_for_others_protects_no_one(other: Any) -> None:
    assert protected(WEB, other) == []


def test_a_pod_without_labels_is_in_no_budget() -> None:
    assert protected([pod("bare").build()], budget("all", 0, app="web")) == []


def test_an_eviction_that_is_counted_already_is_not_counted_again() -> None:
    assert protected(WEB[:2], budget("b", 0, disrupted=("web-0",), app="web")) == ["web-1"]


def test_people_are_told_which_budgets_forbid() -> None:
    found = budgets(budget("few", 1, app="web"), budget("none", 0, app="web")).forbidding(WEB[:2])
    assert found == {WEB[0].uid: ("none",), WEB[1].uid: ("few", "none")}


def test_each_of_several_budgets_counts_for_itself() -> None:
    pods = [web(0, tier="front"), web(1), web(2, tier="front")]
    assert protected(pods, budget("a", 9, app="web"), budget("b", 1, tier="front")) == ["web-2"]


def test_a_pod_that_one_budget_protects_does_not_use_up_the_next() -> None:
    pods = [web(0, tier="front"), web(1)]
    assert protected(pods, budget("a", 0, tier="front"), budget("b", 1, app="web")) == ["web-0"]


def test_the_budgets_of_now_count() -> None:
    index = budgets(budget("b", 0, app="web"))
    assert index.protected(WEB[:1])
    versions = [
        budget("b", 0, app="web"),
        budget("b", 1, app="web"),
        budget("b", 0, app="db"),
        budget("b", 0, app="web"),
    ]
    outcomes = []
    for old, new in itertools.pairwise(versions):
        index.object_put("PodDisruptionBudget", old, new)
        outcomes.append(bool(index.protected(WEB[:1])))
    assert outcomes == [False, False, True]
    index.object_removed("PodDisruptionBudget", versions[-1])
    assert not index.protected(WEB[:1])


def test_what_is_remembered_must_be_forgotten_when_other_pods_are_selected_or_others_allowed() -> None:
    old = budget("b", 0, app="web")
    index = budgets(old)
    versions = [(index.selection, index.allowance)]
    index.object_put("PodDisruptionBudget", old, budget("b", 3, app="web"))
    versions.append((index.selection, index.allowance))
    assert versions[0][0] == versions[1][0] and versions[0][1] != versions[1][1]
    index.object_put("PodDisruptionBudget", old, budget("b", 3, app="db"))
    assert index.selection != versions[1][0]
    before = index.selection
    index.object_removed("PodDisruptionBudget", old)
    assert index.selection != before


def test_whom_a_budget_counts_is_its_concern_whatever_it_allows() -> None:
    index = budgets(budget("b", 100, app="web"))
    assert index.concern(WEB) and not index.concern([pod("bare").build()])
    assert not budgets().concern(WEB)
